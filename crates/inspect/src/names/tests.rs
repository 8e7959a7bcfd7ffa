use super::*;
use crate::memory::{Map, Thread};

struct Own(Vec<Map>);

impl Memory for Own {
    fn read(&self, _: u64, _: &mut [u8]) -> usize {
        0
    }
    fn maps(&self) -> &[Map] {
        &self.0
    }
    fn threads(&self) -> &[Thread] {
        &[]
    }
    fn name(&self) -> String {
        "this process".to_owned()
    }
    fn pid(&self) -> u32 {
        std::process::id()
    }
}

#[unsafe(no_mangle)]
extern "C" fn craton_inspect_names_function(n: u64) -> u64 {
    std::hint::black_box(n) + 1
}

#[test]
fn functions_of_this_program_have_their_names() {
    let text = std::fs::read_to_string("/proc/self/maps").unwrap();
    let own = Own(text.lines().filter_map(crate::live::parse).collect());
    let names = Names::new(&own);
    let pc = craton_inspect_names_function as *const () as u64 + 3;
    let said = names.in_file(pc);
    assert!(said.starts_with(&format!("{pc:#x} craton_inspect_names_function+0x3 (/")), "{said}");
    assert_eq!(names.in_file(1), "0x1");
}

#[test]
fn what_is_no_such_file_has_no_names() {
    assert!(Image::parse(b"#!/bin/sh").is_none());
    let mut header = vec![0xff; 64];
    header[..6].copy_from_slice(b"\x7fELF\x02\x01");
    assert!(Image::parse(&header).is_none_or(|image| image.functions.is_empty()), "numbers that lead nowhere");
}
