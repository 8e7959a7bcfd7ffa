use super::*;
use crate::live::parse;
use std::fs;

#[test]
fn this_function_has_its_name_file_and_line() {
    let text = fs::read_to_string("/proc/self/maps").unwrap();
    let maps: Vec<Map> = text.lines().filter_map(parse).collect();
    let mut lines = Lines::new(&maps);
    let here = this_function_has_its_name_file_and_line as *const () as u64 + 1;
    let frame = lines.frames(here).last().unwrap().clone();
    assert!(frame.function.ends_with("this_function_has_its_name_file_and_line"), "{frame:?}");
    assert!(frame.file.unwrap().ends_with("lines/tests.rs"));
    assert!(frame.line.is_some_and(|line| (1..40).contains(&line)));
}

#[test]
fn code_without_a_file_is_named_by_its_address() {
    let mut lines = Lines::new(&[]);
    assert_eq!(lines.frames(0x1235)[0].function, "0x1234");
}
