//! A wild write into freed memory ends the process with one line, or is harmless.

use craton_programs::{Output, Program, cc, library, side_by_side};
use std::path::Path;

fn run(part: &str, options: &str) -> Output {
    let library = library().to_str().expect("the library's path is UTF-8");
    let folder = Path::new(library).parent().expect("the library lies in a folder").display();
    let program = cc("attacks.c", &["-w", library, &format!("-Wl,--disable-new-dtags,-rpath,{folder}")]);
    let program = Program::new(program).arg(part).timeout(300);
    if options.is_empty() { program.run() } else { program.options(options).run() }
}

fn line_of(part: &str) -> String {
    let output = run(part, "");
    assert_eq!(output.signal, Some(libc::SIGABRT), "{part} ends by SIGABRT:\n{output}");
    assert!(output.stdout.is_empty(), "{part}:\n{output}");
    let line = output.stderr.strip_prefix("craton: ").and_then(|rest| rest.strip_suffix('\n'));
    let line = line.unwrap_or_else(|| panic!("{part}: one line of the library:\n{output}"));
    assert!(!line.contains('\n'), "{part}: one line:\n{output}");
    line.to_owned()
}

fn stops(part: &str, size: usize) {
    let line = line_of(part);
    let rest = line.strip_prefix(&format!("the list of free objects of {size} bytes leads to 0x"));
    let rest = rest.unwrap_or_else(|| panic!("{part}: {line}"));
    let cause = rest.split_once(", which is no intact one; ").map(|(_, cause)| cause);
    assert!(cause.is_some_and(|cause| cause.starts_with("a write to freed memory, ")), "{part}: {line}");
}

fn does_no_harm(part: &str, options: &str) {
    let output = run(part, options);
    let is_found = output.signal == Some(libc::SIGABRT) && output.stderr.contains("craton: ");
    assert!(is_found || output.status == Some(0) && output.stdout == "harmless\n", "{part} {options}:\n{output}");
}

#[test]
fn an_overwritten_link_stops_the_next_request_but_one() {
    for part in ["link_of_8_bytes", "link_of_16_bytes", "link_to_stack", "link_to_itself", "link_to_code"] {
        stops(part, 48);
    }
    stops("link_of_16", 16);
    stops("link_of_1000", 1024);
    stops("link_to_unaligned", 48);
}

#[test]
fn a_link_to_other_objects_stops_whether_they_are_out_or_of_another_size() {
    stops("link_to_live", 48);
    stops("link_to_smaller", 1024);
    stops("link_into_large", 48);
}

#[test]
fn every_call_that_allocates_checks_what_goes_out() {
    for part in ["link_by_calloc", "link_by_realloc", "link_by_batch"] {
        stops(part, 48);
    }
    stops("link_by_aligned_alloc", 64);
    stops("link_by_realloc_of_another", 1024);
}

#[test]
fn a_write_behind_the_end_into_a_free_neighbour_is_stopped() {
    stops("overflow_48", 48);
    stops("overflow_1000", 1024);
    does_no_harm("overflow_20000", "");
}

#[test]
fn a_changed_bit_of_a_link_is_stopped() {
    stops("low_byte_48", 48);
    stops("low_byte_1000", 1024);
    stops("low_byte_20000", 20160);
}

#[test]
fn an_object_that_is_freed_again_without_its_mark_goes_out_once() {
    stops("freed_again_48", 48);
    stops("freed_again_1000", 1024);
    stops("freed_again_20000", 20160);
}

#[test]
fn a_slab_counts_as_complete_only_when_all_its_objects_are_there() {
    stops("freed_again_on_slab_48", 48);
    stops("freed_again_on_slab_1000", 1024);
    does_no_harm("freed_again_on_slab_48", "caches=cpu");
    does_no_harm("freed_again_on_slab_1000", "caches=cpu");
}

#[test]
fn a_list_that_ends_too_early_is_stopped() {
    stops("link_to_null_on_slab", 20160);
}

#[test]
fn an_object_that_is_overwritten_whole_is_stopped() {
    stops("cleared", 48);
    stops("filled", 48);
    stops("never_out", 48);
}

#[test]
fn objects_on_slabs_are_checked_when_they_are_fetched() {
    for part in ["deep_200", "deep_250", "deep_290", "deep_299", "deep_mark_250"] {
        stops(part, 48);
    }
    // They are last on a slab's list, or their slab was empty and is carved anew.
    for part in ["deep_0", "deep_100", "deep_mark_0"] {
        does_no_harm(part, "");
    }
}

#[test]
fn objects_are_checked_on_their_way_back_to_slabs() {
    for part in ["flushed_link", "flushed_mark", "flushed_live"] {
        stops(part, 48);
    }
}

#[test]
fn a_link_to_another_free_object_makes_no_two_owners() {
    for part in ["link_to_freed_48", "link_to_freed_48_released", "link_to_freed_among_live"] {
        let output = run(part, "");
        assert_eq!((output.status, output.stdout.as_str()), (Some(0), "harmless\n"), "{part}:\n{output}");
    }
}

#[test]
fn objects_of_heaps_with_names_are_checked() {
    stops("heap_link_48", 48);
    stops("heap_link_1000", 1024);
    stops("heap_mark", 48);
    stops("hinted_link", 48);
    does_no_harm("heap_itself", "");
}

#[test]
fn a_mark_that_was_read_makes_no_other() {
    for part in ["forged_copy", "forged_by_xor", "forged_by_sum", "forged_by_factor", "forged_by_ratio"] {
        stops(part, 48);
    }
}

#[test]
fn objects_that_threads_pass_on_are_checked() {
    for part in ["link_in_other_thread", "passed_link", "passed_mark", "passed_to_itself"] {
        stops(part, 48);
    }
}

#[test]
fn bad_frees_are_named() {
    let says = |part: &str, what: &str| {
        let line = line_of(part);
        assert!(line.starts_with("free(0x") && line.ends_with(what), "{part}: {line}");
    };
    says("free_fake", "): not allocated by Craton");
    says("free_foreign", "): not allocated by Craton");
    says("free_interior", "): not the start of an object: it points 16 bytes into an object of 160 bytes");
    says("free_twice", "): double free of a 48-byte object");
    says("free_twice_in_thread", "): double free of a 48-byte object");
}

const NO_OBJECT: &str = "points into memory that is not allocated: it was freed already, or never was an object";

fn is_no_object(part: &str, options: &str, call: &str) {
    let output = run(part, options);
    let line = output.stderr.strip_prefix("craton: ").and_then(|rest| rest.strip_suffix('\n'));
    let is_named = line.is_some_and(|line| line.starts_with(&format!("{call}(0x")) && line.ends_with(NO_OBJECT));
    assert!(is_named && output.signal == Some(libc::SIGABRT), "{part} {options}:\n{output}");
}

#[test]
fn the_place_behind_a_slabs_last_object_is_none() {
    for options in ["", "caches=cpu", "hardened=1"] {
        for part in ["free_tail_48", "free_tail_80", "free_tail_100", "free_tail_1100"] {
            is_no_object(part, options, "free");
        }
        is_no_object("resize_tail", options, "realloc");
        is_no_object("measure_tail", options, "malloc_usable_size");
    }
}

#[test]
fn a_place_that_its_slab_has_not_cut_is_no_object() {
    for options in ["", "caches=cpu", "hardened=1"] {
        for part in ["free_uncut_16", "free_uncut_48", "free_uncut_on_next_page", "free_uncut_10000"] {
            is_no_object(part, options, "free");
        }
        is_no_object("resize_uncut", options, "realloc");
    }
}

#[test]
fn a_second_free_after_the_slab_was_cut_anew_is_found() {
    for part in ["free_before_cut_48", "free_before_cut_64", "free_before_cut_kept"] {
        is_no_object(part, "", "free");
        does_no_harm(part, "caches=cpu");
    }
}

#[test]
fn a_place_that_an_object_cache_has_not_cut_is_no_object() {
    for part in ["cache_uncut_48", "cache_uncut_160"] {
        let line = line_of(part);
        assert!(line.starts_with("craton_cache_free(0x") && line.contains("double free of a"), "{part}: {line}");
    }
}

#[test]
fn new_objects_show_no_address() {
    for options in ["", "caches=cpu", "hardened=1"] {
        let output = run("read_new", options);
        assert_eq!((output.status, output.stdout.as_str()), (Some(0), "harmless\n"), "{options}:\n{output}");
    }
}

#[test]
fn what_lies_apart_from_objects_cannot_be_overwritten_through_them() {
    for part in ["large_memory_1m", "large_memory_300k", "object_cache"] {
        does_no_harm(part, "");
    }
}

/// Their arrays lie apart, slabs' lists do not.
#[test]
fn processors_caches_do_no_worse() {
    for part in
        ["link_of_8_bytes", "freed_again_48", "cleared", "deep_250", "deep_mark_250", "flushed_live", "low_byte_48"]
    {
        does_no_harm(part, "caches=cpu");
    }
}

#[test]
fn hardened_none_does_worse() {
    let source = include_str!("../c/attacks.c");
    let parts: Vec<&str> = source.split("PART(").skip(2).filter_map(|rest| Some(rest.split_once(')')?.0)).collect();
    assert!(parts.len() > 60, "{parts:?}");
    let cases: Vec<(&str, &str)> =
        parts.iter().flat_map(|part| [(*part, "hardened=1"), (*part, "hardened=1,caches=cpu")]).collect();
    side_by_side(&cases, |(part, options)| {
        let output = run(part, options);
        let is_harmless = output.status == Some(0) && output.stdout == "harmless\n";
        let is_found = output.signal == Some(libc::SIGABRT) && output.stderr.contains("craton: ");
        let may_fault = ["link_to_null", "link_to_nowhere"].contains(part) && output.signal == Some(libc::SIGSEGV);
        assert!(is_harmless || is_found || may_fault, "{part} {options}:\n{output}");
    });
}

/// Reading the mark there faults.
#[test]
fn a_link_to_nowhere_ends_the_process() {
    for part in ["link_to_null", "link_to_nowhere"] {
        let output = run(part, "");
        assert!(matches!(output.signal, Some(libc::SIGABRT | libc::SIGSEGV)), "{part}:\n{output}");
        assert!(output.stdout.is_empty(), "{part}:\n{output}");
    }
}
