use super::*;

#[test]
fn the_environment_decides_at_the_first_request_and_nothing_later() {
    let option = Hardening::new();
    assert!(!option.is_on());
    assert!(option.fix(|each| [b"2".as_slice(), b"1", b"on"].into_iter().for_each(each)));
    assert!(option.is_on() && option.set(true), "the value that it has");
    assert!(!option.set(false), "another one comes too late");
    assert!(option.is_on());
}

#[test]
fn the_last_of_several_values_counts() {
    let option = Hardening::new();
    assert!(!option.fix(|each| [b"1".as_slice(), b"0"].into_iter().for_each(each)));
    assert!(!option.set(true) && option.set(false));
}

#[test]
fn a_program_sets_it_before_its_first_request() {
    let option = Hardening::new();
    assert!(option.set(true) && option.is_on());
    assert!(option.fix(|each| each(b"0")), "the program's value precedes the environment's");
}
