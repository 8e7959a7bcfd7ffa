use craton_programs::{Output, Program, cc, cxx, static_library};
use std::path::PathBuf;

const LATER: &str = "-Wl,-z,dynamic-undefined-weak";

fn fully_static(compile: fn(&str, &[&str]) -> PathBuf, source: &str) -> PathBuf {
    let library = static_library().to_str().expect("the library's path is UTF-8");
    compile(source, &["-static", library])
}

fn both(compile: fn(&str, &[&str]) -> PathBuf, source: &str, part: &str) -> Output {
    let linked = fully_static(compile, source);
    let output = Program::new(&linked).arg(part).run();
    output.assert_success();
    output.assert_served(linked.file_name().and_then(|n| n.to_str()).expect("the program has a name"));
    let dynamic = compile(source, &[LATER]);
    let output = Program::new(&dynamic).arg(part).preloaded().run();
    output.assert_success();
    output.assert_served(dynamic.file_name().and_then(|n| n.to_str()).expect("the program has a name"));
    output
}

fn c(part: &str) -> Output {
    both(cc, "conform.c", part)
}

#[test]
fn every_function_aligns_to_16_bytes_and_page_functions_to_pages() {
    c("alignment");
}

#[test]
fn zero_sizes_give_pointers_of_their_own() {
    c("zero_sizes");
}

#[test]
fn success_and_free_leave_errno_alone() {
    c("errno_kept");
}

#[test]
fn sizes_past_ptrdiff_max_are_enomem_and_change_nothing() {
    c("too_much");
}

#[test]
fn products_that_overflow_are_enomem_and_change_nothing() {
    c("overflow");
}

#[test]
fn realloc_of_null_allocates_and_to_zero_frees() {
    c("realloc_ends");
}

#[test]
fn realloc_keeps_contents_from_every_size_to_every_other() {
    c("realloc_jumps");
}

#[test]
fn realloc_keeps_contents_in_small_steps() {
    c("realloc_steps");
}

#[test]
fn posix_memalign_refuses_bad_alignments_and_leaves_place_and_errno() {
    c("posix_memalign_errors");
}

#[test]
fn aligned_alloc_refuses_what_is_no_power_of_two() {
    c("aligned_alloc_errors");
}

#[test]
fn alignments_up_to_a_gibibyte_are_kept() {
    c("alignments");
}

#[test]
fn calloc_zeroes_memory_that_was_used_before() {
    c("calloc_zeroes");
}

#[test]
fn all_usable_bytes_can_be_written_and_belong_to_one_object() {
    c("usable");
}

#[test]
fn the_other_frees_free() {
    c("other_frees");
}

fn introspect(part: &str) -> Output {
    both(cc, "introspect.c", part)
}

#[test]
fn mallinfo2_follows_what_is_allocated() {
    introspect("info_follows");
}

#[test]
fn mallinfo_stops_at_the_largest_int() {
    introspect("old_info_saturates");
}

#[test]
fn malloc_trim_gives_free_memory_back() {
    introspect("trim_gives_back");
}

#[test]
fn mallopt_accepts_what_glibc_knows() {
    introspect("options_of_glibc");
}

#[test]
fn malloc_info_writes_well_formed_xml() {
    let output = introspect("info_as_xml");
    assert!(output.stdout.contains("<class size="), "no size class:\n{output}");
    assert_well_formed(&output.stdout);
}

fn assert_well_formed(text: &str) {
    let mut open = Vec::new();
    let mut roots = 0;
    for piece in text.split_inclusive('>').map(str::trim).filter(|p| !p.is_empty()) {
        let tag = piece.strip_prefix('<').and_then(|p| p.strip_suffix('>'));
        let tag = tag.unwrap_or_else(|| panic!("no tag: {piece:?} in\n{text}"));
        assert!(!tag.contains('<') && tag.matches('"').count() % 2 == 0, "bad tag {piece:?}");
        roots += usize::from(open.is_empty());
        if let Some(name) = tag.strip_prefix('/') {
            assert_eq!(open.pop(), Some(name), "closed out of order in\n{text}");
        } else if !tag.ends_with('/') {
            open.push(tag.split_whitespace().next().expect("a tag has a name"));
        }
    }
    assert!(open.is_empty() && roots == 1, "{open:?} stay open, {roots} elements at the top:\n{text}");
}

#[test]
fn malloc_stats_prints_on_standard_error() {
    let output = introspect("stats_as_text");
    assert!(output.stderr.contains("craton: statistics of process "), "no statistics:\n{output}");
}

fn cpp(part: &str) -> Output {
    both(cxx, "cxx.cpp", part)
}

#[test]
fn every_form_of_new_and_delete_works() {
    cpp("all_forms");
}

#[test]
fn bad_alloc_is_thrown_through_frames_with_destructors() {
    cpp("bad_alloc");
}

#[test]
fn bad_alloc_is_thrown_in_threads() {
    cpp("bad_alloc_in_threads");
}

#[test]
fn nothrow_new_returns_null() {
    cpp("nothrow");
}

#[test]
fn a_new_handler_that_frees_memory_lets_new_succeed() {
    for linked in [fully_static(cxx, "cxx.cpp"), cxx("cxx.cpp", &[LATER])] {
        let limited = Program::new("bash").args(["-c", "ulimit -v 2000000; exec \"$0\" handler_frees_memory"]);
        let output = limited.arg(&linked).preloaded().run();
        output.assert_success();
        output.assert_served(linked.file_name().and_then(|n| n.to_str()).expect("the program has a name"));
    }
}

#[test]
fn a_new_handler_may_throw_something_else() {
    cpp("handler_throws");
}

#[test]
fn the_standard_library_churns_in_threads() {
    cpp("churn");
}
