use super::*;
use std::process::ExitStatus;

#[test]
fn the_parts_of_each_program_are_those_of_its_table() {
    for (source, least) in [
        ("attacks.c", 60),
        ("faulty/overflow.c", 25),
        ("faulty/freed.c", 15),
        ("faulty/reads.c", 25),
        ("faulty/cxx.cpp", 5),
    ] {
        let parts = parts(source);
        assert!(parts.len() >= least, "{source}: {parts:?}");
    }
    assert!(parts("attacks.c").contains(&"object_cache") && parts("faulty/overflow.c").contains(&"far_past_end"));
}

#[test]
fn parts_are_judged_by_signal_and_words() {
    let output = |raw, stdout: &str, stderr: &str| Output {
        status: ExitStatus::from_raw(raw),
        stdout: stdout.to_owned(),
        stderr: stderr.to_owned(),
    };
    assert_eq!(judge(&output(6, "", "craton: the list of free objects"), true), End::Found);
    assert_eq!(judge(&output(0, "harmless\n", ""), true), End::Harmless);
    assert_eq!(judge(&output(0, "arbitrary\n", ""), true), End::Missed);
    assert_eq!(judge(&output(11, "", ""), true), End::Bare);
    assert_eq!(judge(&output(0, "0x10\n", ""), false), End::Missed);
    assert_eq!(judge_right(&output(0, "-0x10\n", "")), End::Harmless);
    assert_eq!(judge_right(&output(0, "-0x10\n", "craton: BUG leak: nothing leads to a buffer")), End::False);
    assert_eq!(judge_right(&output(11, "", "")), End::False);
}

#[test]
fn as_many_bugs_are_planted_as_were_promised_and_some_programs_are_right() {
    let all: Vec<&str> = FAULTY.iter().flat_map(|source| parts(source)).collect();
    let right = all.iter().filter(|part| RIGHT.iter().any(|right| part.starts_with(right))).count();
    assert!(all.len() - right >= 138 && right >= 8, "{} bugs, {right} right programs", all.len() - right);
    assert!(all.contains(&ON_HEAP));
}
