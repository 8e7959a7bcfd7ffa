use super::*;

#[test]
fn the_words_begin_with_magic_and_version_and_have_every_number_in_order() {
    let segment = Segment::new();
    segment.refills.store(7, Relaxed);
    add(&segment.refills, 3);
    let words = segment.words();
    assert_eq!((words[0], words[1], words.len()), (MAGIC, VERSION, WORDS));
    for (i, (name, value)) in segment.numbers().into_iter().enumerate() {
        assert_eq!(words[i + 2], value, "{name}");
    }
    assert!(segment.numbers().contains(&("refills", 10)));
}

#[test]
fn a_process_has_started_when_its_number_is_known() {
    let segment = Segment::new();
    assert!(!segment.has_started());
    segment.pid.store(1, Relaxed);
    assert!(segment.has_started());
}
