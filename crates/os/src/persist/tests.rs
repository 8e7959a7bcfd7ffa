extern crate std;
use super::*;
use core::sync::atomic::{AtomicU16, AtomicU64, Ordering};
use std::string::String;

#[test]
fn what_is_used_is_what_the_system_says_that_there_is() {
    let said = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let flags: String = said.lines().filter(|line| line.starts_with("flags")).take(1).collect();
    let has = |name: &str| flags.split_whitespace().any(|flag| flag == name);
    let best = ["clwb", "clflushopt", "clflush"].into_iter().find(|name| has(name) && !cfg!(feature = "portable"));
    assert_eq!(WriteBack::detect().map(WriteBack::name), best);
}

#[test]
fn words_are_as_they_were_after_they_were_written_back() {
    let Some(best) = WriteBack::detect() else { return };
    let words: [AtomicU64; 9] = core::array::from_fn(|_| AtomicU64::new(0));
    let half = AtomicU16::new(7);
    for (value, word) in (1..).zip(&words) {
        word.store(value, Ordering::Relaxed);
        best.flush(word);
        best.flush(&half);
    }
    best.fence();
    assert!((1..).zip(&words).all(|(value, word)| word.load(Ordering::Relaxed) == value));
    assert_eq!(half.load(Ordering::Relaxed), 7);
}

#[test]
fn each_instruction_of_the_cpu_keeps_contents() {
    let Some(best) = WriteBack::detect() else { return };
    #[repr(align(64))]
    struct Aligned([u64; 16]);
    let mut lines = Aligned([7; 16]);
    let line: craton_base::Line = core::array::from_fn(|word| word as u64);
    // A CPU that has one has those after it.
    let all = [Instruction::Clwb, Instruction::Clflushopt, Instruction::Clflush];
    for instruction in all.into_iter().skip_while(|i| *i != best.instruction) {
        let write_back = WriteBack { instruction };
        // SAFETY: an aligned line of the array.
        unsafe {
            write_back.store_line(lines.0.as_mut_ptr().add(8), &line);
            write_back.flush_at(lines.0.as_ptr().cast());
        }
        write_back.fence();
        assert_eq!((&lines.0[..8], &lines.0[8..]), (&[7; 8][..], &line[..]));
    }
}
