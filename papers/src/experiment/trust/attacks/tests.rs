use super::*;
use std::process::ExitStatus;

#[test]
fn the_parts_of_each_program_are_those_of_its_table() {
    for (source, least) in [("attacks.c", 60), ("faulty/overflow.c", 25), ("faulty/freed.c", 15), ("faulty/cxx.cpp", 5)]
    {
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
}
