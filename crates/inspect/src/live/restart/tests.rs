use super::*;
use object::elf::NT_PRSTATUS;

#[test]
fn a_call_that_answers_eintr_is_seen_by_its_answer() {
    let thread = |answer: i64| {
        let mut bytes = vec![0; 27 * 8];
        bytes[ANSWER_AT..ANSWER_AT + 8].copy_from_slice(&answer.to_le_bytes());
        Thread { sets: vec![(NT_PRSTATUS, bytes)], ..Thread::default() }
    };
    assert!(is_interrupted(&thread(-4)));
    assert!(!is_interrupted(&thread(4)) && !is_interrupted(&thread(-514)) && !is_interrupted(&Thread::default()));
}
