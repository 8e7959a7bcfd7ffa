//! Header and library have the same numbers; no panic leaves a call.

use crate::call::{craton_pheap_message, on};
use crate::code::Code;
use crate::heap::{craton_pheap_close, craton_pheap_create, craton_pheap_open};
use crate::report::craton_pheap_check;
use std::ffi::{CStr, CString};

fn in_c(name: &str) -> String {
    let mut text = String::new();
    for (i, c) in name.chars().enumerate() {
        if i > 0 && c.is_uppercase() {
            text.push('_');
        }
        text.extend(c.to_uppercase());
    }
    text
}

#[test]
fn the_header_has_the_codes_of_the_library() {
    let header = include_str!("../include/craton_pheap.h");
    let codes = header.split("enum craton_pheap_error {").nth(1).and_then(|rest| rest.split("};").next());
    let found: Vec<(String, i32)> = codes
        .expect("the enum of errors")
        .lines()
        .filter_map(|line| line.trim().strip_prefix("CRATON_PHEAP_")?.split_once(" = "))
        .map(|(name, rest)| (name.to_owned(), rest.split(',').next().and_then(|n| n.parse().ok()).expect("a number")))
        .collect();
    let mut expected = vec![("OK".to_owned(), 0)];
    expected.extend(Code::ALL.iter().map(|(name, number)| (in_c(name), *number)));
    assert_eq!(found, expected);
}

#[test]
fn each_code_has_a_text() {
    for (name, number) in Code::ALL {
        assert_ne!(Code::text(*number), Code::text(-1), "{name}");
    }
    assert_eq!(Code::text(0), c"no error");
}

#[test]
fn a_panic_becomes_an_error_and_closes_the_heap_for_all_calls_but_close() {
    let folder = std::env::temp_dir().join(format!("craton-pheap-c-{}", std::process::id()));
    std::fs::create_dir_all(&folder).expect("a folder");
    let path = CString::new(folder.join("a.heap").into_os_string().into_encoded_bytes()).expect("a path");
    let mut heap = std::ptr::null_mut();
    let message = || {
        let text = craton_pheap_message();
        // SAFETY: a string of this thread, which makes no call meanwhile.
        unsafe { CStr::from_ptr(text) }.to_string_lossy().into_owned()
    };
    // SAFETY: a path, no options, and a heap that is open up to its close.
    unsafe {
        assert_eq!(craton_pheap_create(path.as_ptr(), std::ptr::null(), &raw mut heap), 0, "{}", message());
        let status = on("craton_pheap_check", heap, |_| panic!("found at {}", 5));
        assert_eq!(status, Code::Panicked as i32);
        assert!(message().contains("found at 5") && message().contains("a.heap"), "{}", message());
        assert_eq!(craton_pheap_check(heap), Code::Panicked as i32);
        assert_eq!(craton_pheap_close(heap), Code::Panicked as i32);
        heap = std::ptr::null_mut();
        assert_eq!(craton_pheap_open(path.as_ptr(), std::ptr::null(), &raw mut heap), 0, "{}", message());
        assert_eq!((craton_pheap_check(heap), craton_pheap_close(heap)), (0, 0), "{}", message());
    }
    std::fs::remove_dir_all(folder).expect("the folder goes");
}
