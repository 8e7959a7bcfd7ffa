//! `craton.h` and `craton.hpp`, but for caches.

use craton_programs::{Output, Program, cc, cxx, library};
use serde_json::Value;
use std::path::{Path, PathBuf};

/// This path precedes `LD_LIBRARY_PATH`: Cargo's folders there may have an older one.
fn linked(compile: fn(&str, &[&str]) -> PathBuf, source: &str) -> PathBuf {
    let library = library().to_str().expect("the library's path is UTF-8");
    let folder = Path::new(library).parent().expect("the library lies in a folder").display();
    compile(source, &["-w", library, &format!("-Wl,--disable-new-dtags,-rpath,{folder}")])
}

fn passes(compile: fn(&str, &[&str]) -> PathBuf, source: &str, part: &str) -> Output {
    let output = Program::new(linked(compile, source)).arg(part).timeout(300).run();
    output.assert_success();
    output
}

fn own(part: &str) -> Output {
    passes(cc, "own.c", part)
}

fn reports(compile: fn(&str, &[&str]) -> PathBuf, source: &str, part: &str, call: &str, says: &str) {
    let output = Program::new(linked(compile, source)).arg(part).timeout(300).run();
    assert_eq!(output.signal, Some(libc::SIGABRT), "ends by SIGABRT:\n{output}");
    let address = output.stdout.trim_end();
    assert_eq!(output.stderr, format!("craton: {call}({address}): {says}\n"), "{output}");
}

fn misuse(part: &str, call: &str, says: &str) {
    reports(cc, "misuse_own.c", part, call, says);
}

#[test]
fn a_forked_child_asks_for_options_and_statistics_whatever_other_threads_were_at() {
    let output = Program::new(linked(cc, "option_forks.c")).timeout(300).run();
    output.assert_success();
}

#[test]
fn an_object_after_a_heap_is_its_own_whatever_the_heap_left() {
    own("after_heaps");
}

#[test]
fn good_sizes_are_what_objects_get() {
    own("good_sizes");
}

#[test]
fn every_size_that_an_object_can_have_been_asked_for_with_is_right() {
    own("right_sizes");
}

#[test]
fn batches_of_all_sizes_come_and_go() {
    own("batches");
}

#[test]
fn objects_with_a_hint_share_hugepages_with_their_like_alone() {
    own("hints");
}

#[test]
fn heaps_allocate_resize_and_free_also_by_the_plain_calls() {
    own("heaps");
}

#[test]
fn bad_options_of_a_heap_are_refused_and_a_limit_is_kept() {
    own("heap_options");
}

#[test]
fn heaps_that_come_and_go_leave_no_memory_behind() {
    own("heaps_come_and_go");
}

#[test]
fn threads_share_a_heap() {
    own("heap_in_threads");
}

#[test]
fn forked_children_go_on_with_heaps_that_threads_were_using() {
    own("heap_in_forks");
}

#[test]
fn without_memory_every_call_says_so_and_changes_nothing() {
    own("no_memory");
    own("no_room_for_heaps");
}

#[test]
fn options_are_listed_read_and_set() {
    own("options");
}

#[test]
fn statistics_are_one_document_of_json_with_heaps_and_classes() {
    let output = own("statistics");
    let document: Value = serde_json::from_str(&output.stdout).unwrap_or_else(|e| panic!("{e}:\n{output}"));
    assert_eq!(document["version"], 1);
    assert_eq!(document["options"]["thp"], "auto");
    assert!(document["classes"].as_array().is_some_and(|c| c.iter().any(|c| c["object_bytes"] == 112)), "{output}");
    let heaps = document["heaps"].as_array().expect("a list of heaps");
    let heap = heaps.iter().find(|h| h["name"] == "statistics").expect("the heap is listed by its name");
    assert_eq!((&heap["objects"], &heap["limit_bytes"]), (&2.into(), &(8 << 20).into()));
    assert_eq!(heap["classes"][0]["object_bytes"], 1024);
    assert!(heaps.iter().any(|h| h["name"] == "cold" && h["objects"] == 1), "{output}");
}

#[test]
fn a_wrong_size_is_reported_with_the_objects_own() {
    misuse("size_too_large", "free_sized", "size 100 is not that of a 48-byte object");
    misuse("size_too_small", "free_sized", "size 100 is not that of a 1024-byte object");
    misuse("size_of_large", "free_sized", "size 2097152 is not that of a 1048576-byte object");
    misuse("size_of_huge", "free_sized", "size 33554432 is not that of a 67108864-byte object");
    misuse("size_beyond_all", "free_sized", "size 18446744073709551615 is not that of a 48-byte object");
    misuse("aligned_size", "free_aligned_sized", "size 1000 is not that of a 128-byte object");
    misuse("size_of_owned", "free_sized", "size 4000 is not that of a 48-byte object");
    misuse("size_of_cold", "free_sized", "size 4000 is not that of a 48-byte object");
}

#[test]
fn a_wrong_alignment_is_reported() {
    misuse("aligned_otherwise", "free_aligned_sized", "does not lie at a multiple of the alignment 4096");
    misuse("aligned_to_no_power", "free_aligned_sized", "the alignment 3 is not a power of two");
}

#[test]
fn wrong_sizes_and_alignments_of_delete_are_reported() {
    let cpp = |part, call, says| reports(cxx, "own_cxx.cpp", part, call, says);
    cpp("wrong_size", "operator delete", "size 4 is not that of a 208-byte object");
    cpp("wrong_array_size", "operator delete[]", "size 1000 is not that of a 112-byte object");
    cpp("wrong_align", "operator delete", "does not lie at a multiple of the alignment 4096");
    cpp("wrong_aligned_size", "operator delete", "size 64 is not that of a 256-byte object");
}

#[test]
fn bad_pointers_into_heaps_are_reported() {
    misuse("double_in_heap", "craton_heap_free", "double free of a 48-byte object");
    misuse("double_by_free", "free", "double free of a 48-byte object");
    let inside = "not the start of an object: it points 16 bytes into an object of 160 bytes";
    misuse("inside_heap", "free", inside);
    misuse("other_heap", "craton_heap_free", "not an object of this heap");
    misuse("no_object_of_heap", "craton_heap_realloc", "not an object of this heap");
    misuse(
        "freed_after_destroy",
        "free",
        "points into memory that is not allocated: it was freed already, or never was an object",
    );
    misuse("batch_twice", "craton_free_batch", "double free of a 48-byte object");
}

#[test]
fn heaps_that_are_gone_or_never_were_are_reported() {
    misuse("destroyed_twice", "craton_heap_destroy", "this heap has been destroyed");
    misuse("used_after_destroy", "craton_heap_alloc", "this heap has been destroyed");
    misuse("no_heap", "craton_heap_alloc", "not a heap of Craton");
}

#[test]
fn forms_of_new_that_tell_a_size_or_take_a_temperature_work() {
    passes(cxx, "own_cxx.cpp", "sizes");
    passes(cxx, "own_cxx.cpp", "sizes_with_handler");
}

#[test]
fn memory_resources_have_names_and_limits() {
    passes(cxx, "own_cxx.cpp", "resources");
}

#[test]
fn standard_containers_live_in_a_heap() {
    passes(cxx, "own_cxx.cpp", "allocators");
}
