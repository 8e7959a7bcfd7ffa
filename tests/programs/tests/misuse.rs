//! Bad pointers.

use craton_programs::{Program, cc, cxx, static_library};
use std::path::{Path, PathBuf};

enum Says {
    /// Just this.
    Text(&'static str),
    /// It starts `offset` bytes before, and has at least `size`.
    IntoLarge { offset: u64, size: u64 },
    /// The owner depends on the heap's later use.
    OneOf(&'static [&'static str]),
}
use Says::{IntoLarge, OneOf, Text};

const FOREIGN: &str = "not allocated by Craton";
const UNALLOCATED: &str = "points into memory that is not allocated: it was freed already, or never was an object";
const DOUBLE_48: &str = "double free of a 48-byte object";
const FREED_48: &str = "already freed: it was a 48-byte object";
const MIB: u64 = 1 << 20;

fn c_programs() -> [(PathBuf, bool); 2] {
    let library = static_library().to_str().expect("the library's path is UTF-8");
    let later = "-Wl,-z,dynamic-undefined-weak";
    [(cc("misuse.c", &["-w", later]), true), (cc("misuse.c", &["-w", "-static", library]), false)]
}

fn c(part: &str, call: &str, says: &Says) {
    for (program, preloaded) in c_programs() {
        reports(&program, preloaded, part, call, says);
    }
}

fn reports(program: &Path, preloaded: bool, part: &str, call: &str, says: &Says) {
    let run = Program::new(program).arg(part).timeout(300);
    let output = if preloaded { run.preloaded() } else { run }.run();
    assert_eq!(output.signal, Some(libc::SIGABRT), "ends by SIGABRT:\n{output}");
    let address = output.stdout.trim_end();
    let start = format!("craton: {call}({address}): ");
    let said = output.stderr.strip_prefix(&start).and_then(|rest| rest.strip_suffix('\n'));
    let said = said.unwrap_or_else(|| panic!("one line from {start:?} on:\n{output}"));
    assert!(!said.contains('\n'), "one line:\n{output}");
    match says {
        Text(text) => assert_eq!(said, *text, "{output}"),
        OneOf(texts) => assert!(texts.contains(&said), "one of {texts:?}:\n{output}"),
        IntoLarge { offset, size } => {
            let rest = said.strip_prefix("points into a large object, which starts at 0x");
            let (at, bytes) = rest.and_then(|r| r.split_once(" and has ")).unwrap_or_else(|| panic!("{output}"));
            let number = |hex: &str| u64::from_str_radix(hex, 16).unwrap_or_else(|_| panic!("{hex:?}:\n{output}"));
            let address = number(address.trim_start_matches("0x"));
            assert_eq!(number(at), address - offset, "{output}");
            let bytes = bytes.strip_suffix(" bytes").and_then(|b| b.parse::<u64>().ok());
            assert!(bytes.is_some_and(|b| (*size..*size + 2 * MIB).contains(&b)), "{size} bytes:\n{output}");
        }
    }
}

#[test]
fn a_small_object_freed_twice_is_reported_at_once() {
    c("double_small", "free", &Text(DOUBLE_48));
}

#[test]
fn a_small_object_freed_twice_is_reported_after_other_frees() {
    c("double_small_later", "free", &Text(DOUBLE_48));
    c("double_small_of_empty_slab", "free", &OneOf(&[DOUBLE_48, UNALLOCATED]));
}

#[test]
fn a_double_free_is_seen_across_threads() {
    c("double_from_thread", "free", &Text(DOUBLE_48));
    c("double_after_thread", "free", &Text(DOUBLE_48));
}

/// A larger class may lend.
const LENT_1000: [&str; 2] = ["double free of a 1024-byte object", "double free of a 1248-byte object"];

#[test]
fn a_double_free_names_the_call_that_made_it() {
    c("double_before_exit", "cfree", &OneOf(&LENT_1000));
    c("free_sized_twice", "free_sized", &Text(DOUBLE_48));
    c("free_aligned_sized_twice", "free_aligned_sized", &Text("double free of a 64-byte object"));
}

#[test]
fn a_large_or_huge_object_freed_twice_is_reported() {
    c("double_large", "free", &Text("double free of a 1048576-byte object"));
    c("double_large_later", "free", &Text("double free of a 1048576-byte object"));
    c("double_large_from_thread", "free", &Text("double free of a 3145728-byte object"));
    c("double_huge", "free", &Text("double free of a 67108864-byte object"));
    c("double_huge_later", "free", &Text("double free of a 67108864-byte object"));
    c("double_huge_delayed", "free", &Text("double free of a 134217728-byte object"));
    c("double_calloc", "free", &Text("double free of a 106496-byte object"));
    c("double_aligned", "free", &Text("double free of a 8192-byte object"));
}

#[test]
fn an_object_of_size_zero_freed_twice_is_reported() {
    c("double_zero", "free", &Text("double free of a 16-byte object"));
}

#[test]
fn what_realloc_gave_up_is_reported() {
    c("moved_small", "free", &Text(DOUBLE_48));
    c("cut_off_large", "free", &OneOf(&[UNALLOCATED, FOREIGN]));
    c("cut_off_huge", "free", &OneOf(&[UNALLOCATED, FOREIGN]));
}

#[test]
fn a_pointer_into_a_small_object_is_reported_with_its_offset() {
    c("inside_small_1", "free", &Text("not the start of an object: it points 1 byte into an object of 160 bytes"));
    c("inside_small_16", "free", &Text("not the start of an object: it points 16 bytes into an object of 160 bytes"));
    let page = "not the start of an object: it points 64 bytes into an object of 4096 bytes";
    c("inside_aligned", "free", &Text(page));
    let looked_at = "not the start of an object: it points 16 bytes into an object of 160 bytes";
    c("usable_inside", "malloc_usable_size", &Text(looked_at));
    c("realloc_inside", "realloc", &Text("not the start of an object: it points 32 bytes into an object of 160 bytes"));
}

#[test]
fn a_pointer_into_a_large_or_huge_object_is_reported_with_its_start() {
    c("inside_large_16", "free", &IntoLarge { offset: 16, size: MIB });
    c("inside_large_page", "free", &IntoLarge { offset: 65536, size: MIB });
    c("usable_inside_large", "malloc_usable_size", &IntoLarge { offset: 4096, size: MIB });
    c("inside_huge_16", "free", &IntoLarge { offset: 16, size: 64 * MIB });
    c("inside_huge_end", "free", &IntoLarge { offset: 64 * MIB - 4096, size: 64 * MIB });
}

#[test]
fn addresses_that_malloc_never_gave_are_reported() {
    for part in ["stack", "statics", "text", "low", "last_byte", "high", "noncanonical", "foreign"] {
        c(part, "free", &Text(FOREIGN));
    }
    c("unallocated", "free", &OneOf(&[UNALLOCATED, FOREIGN]));
}

#[test]
fn a_place_that_malloc_has_fetched_but_not_given_is_reported() {
    c("not_given_yet", "free", &Text(DOUBLE_48));
}

#[test]
fn realloc_of_a_freed_object_is_reported() {
    c("realloc_freed_small", "realloc", &Text(FREED_48));
    c("realloc_freed_large", "realloc", &Text("already freed: it was a 1048576-byte object"));
    c("realloc_freed_huge", "realloc", &Text("already freed: it was a 67108864-byte object"));
    c("moved_huge", "free", &Text("double free of a 67108864-byte object"));
}

#[test]
fn realloc_of_a_foreign_pointer_is_reported() {
    c("realloc_foreign", "realloc", &Text(FOREIGN));
    c("reallocarray_foreign", "reallocarray", &Text(FOREIGN));
    c("realloc_foreign_to_0", "realloc", &Text(FOREIGN));
}

#[test]
fn malloc_usable_size_of_garbage_is_reported() {
    c("usable_garbage", "malloc_usable_size", &Text(FOREIGN));
    c("usable_freed", "malloc_usable_size", &Text(FREED_48));
}

#[test]
fn an_object_deleted_twice_is_reported() {
    let program = cxx("misuse_cxx.cpp", &["-w"]);
    reports(&program, true, "plain", "operator delete", &Text(DOUBLE_48));
    reports(&program, true, "array", "operator delete[]", &Text(DOUBLE_48));
    reports(&program, true, "sized", "operator delete", &Text(DOUBLE_48));
    reports(&program, true, "aligned", "operator delete", &Text("double free of a 64-byte object"));
}
