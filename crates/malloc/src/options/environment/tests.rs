use super::*;
use std::ffi::CString;
use std::vec::Vec;

fn items(text: &str) -> Vec<&str> {
    Items(text.as_bytes()).map(|item| core::str::from_utf8(item).unwrap()).collect()
}

fn values(variables: &[&str], key: &str) -> Vec<Vec<u8>> {
    let variables: Vec<CString> = variables.iter().map(|v| CString::new(*v).unwrap()).collect();
    let mut pointers: Vec<*const c_char> = variables.iter().map(|v| v.as_ptr()).collect();
    pointers.push(core::ptr::null());
    let mut found = Vec::new();
    // SAFETY: a null-terminated array of C strings that outlives the call.
    unsafe { find(pointers.as_ptr(), key.as_bytes(), |value| found.push(value.to_vec())) };
    found
}

#[test]
fn commas_separate_options() {
    assert_eq!(items("a=1,b=2,c"), ["a=1", "b=2", "c"]);
    assert_eq!(items("a=1"), ["a=1"]);
    assert!(items("").is_empty());
    assert_eq!(items("a=1,,b=2"), ["a=1", "", "b=2"]);
}

#[test]
fn behind_debug_commas_stand_between_checks_until_the_next_option() {
    assert_eq!(items("debug=audit,poison,stats=1"), ["debug=audit,poison", "stats=1"]);
    assert_eq!(items("stats=1,debug=audit,poison"), ["stats=1", "debug=audit,poison"]);
    assert_eq!(items("debug=audit,"), ["debug=audit"], "a comma too many is left out");
    assert_eq!(items("debug=audit,nonsense,x=y"), ["debug=audit,nonsense", "x=y"]);
}

#[test]
fn every_value_of_a_key_is_found_in_its_order() {
    let variables = ["HOME=/", "CRATON_OPTIONS=stats=1,page_heap=frames,page_heap_=x,page_heap=temeraire", "PATH=/bin"];
    assert_eq!(values(&variables, "page_heap"), [b"frames".to_vec(), b"temeraire".to_vec()]);
    assert_eq!(values(&variables, "stats"), [b"1".to_vec()]);
    assert!(values(&variables, "page").is_empty(), "a key is whole");
}

#[test]
fn without_the_variable_or_an_environment_there_is_nothing() {
    assert!(values(&["XCRATON_OPTIONS=stats=1", "CRATON_OPTIONSX=stats=1"], "stats").is_empty());
    assert!(values(&[], "stats").is_empty());
    // SAFETY: no environment.
    unsafe {
        find(core::ptr::null(), b"stats", |_| unreachable!("nothing is there"));
        assert_eq!(variable(core::ptr::null(), b"A="), None);
    }
}
