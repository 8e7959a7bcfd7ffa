//! Small programs that each do one thing wrong, and what the debugging kit says of it: kind, buffer, offset, and who had it.

#![cfg(target_arch = "x86_64")]

use craton_programs::{Output, Program, cc, cxx, library, side_by_side};
use std::collections::HashMap;
use std::fmt::Write;
use std::path::{Path, PathBuf};

/// Buffers among the other objects of the heap, with bytes around them that nobody may write.
const AMONG: &str = "debug=audit,redzone,poison,verify";
/// Buffers on pages of their own, which cannot be touched before, behind and after.
const APART: &str = "debug=all";

const BOTH: &[&str] = &[AMONG, APART];
const ONLY_APART: &[&str] = &[APART];
const ONLY_AMONG: &[&str] = &[AMONG];
/// And whose memory serves again at once.
const AMONG_NONE_WAITS: &[&str] = &["debug=audit,redzone,verify,quarantine=0"];

/// What a program does wrong, and what has to be said of it.
#[derive(Clone, Copy)]
struct Case {
    part: &'static str,
    options: &'static [&'static str],
    kind: &'static str,
    /// Bytes of the buffer; 0 where what is named is no buffer.
    size: u64,
    /// Where in it or beside it; `None` where that has no meaning.
    offset: Option<i64>,
    /// Functions that must be on the stack that allocated it, in this order.
    allocated: &'static [&'static str],
    /// Likewise on the stack that freed it; none if it was not freed.
    freed: &'static [&'static str],
    /// Likewise on the stack that the mistake was found on.
    found: &'static [&'static str],
}

const MADE: &[&str] = &["make_buffer", "main"];
const MADE_ELSEWHERE: &[&str] = &["make_buffer", "makes_elsewhere"];
const ALIGNED: &[&str] = &["make_aligned", "main"];
const CLEARED: &[&str] = &["make_cleared", "main"];
const MAIN: &[&str] = &["main"];
const GIVEN: &[&str] = &["give_up", "main"];
const GIVEN_ELSEWHERE: &[&str] = &["give_up", "gives_up_elsewhere"];
const NONE: &[&str] = &[];
const OVERFLOW: &str = "overflow";
const UNDERFLOW: &str = "underflow";
const AFTER: &str = "use-after-free";
const TWICE: &str = "double-free";
const BAD: &str = "bad-free";
const MISMATCH: &str = "size-mismatch";
const PAIR: &str = "mismatch";
const CACHE: &str = "wrong-cache";
const FRESH: &str = "uninitialised";

/// A mistake that is found while the buffer is out.
const fn live(part: &'static str, kind: &'static str, size: u64, allocated: &'static [&'static str]) -> Case {
    Case { part, options: BOTH, kind, size, offset: None, allocated, freed: NONE, found: MAIN }
}

/// A byte past the end, found where the buffer is freed or where it is written.
const fn past(part: &'static str, size: u64, allocated: &'static [&'static str]) -> Case {
    Case { offset: Some(size as i64), ..live(part, OVERFLOW, size, allocated) }
}

/// A byte before the start.
const fn before(part: &'static str, size: u64, allocated: &'static [&'static str]) -> Case {
    Case { offset: Some(-1), ..live(part, UNDERFLOW, size, allocated) }
}

/// A mistake with a buffer that is freed.
const fn dead(part: &'static str, kind: &'static str, size: u64) -> Case {
    Case { freed: GIVEN, ..live(part, kind, size, MADE) }
}

/// A byte written into one, at offset 5.
const fn written(part: &'static str, size: u64) -> Case {
    Case { offset: Some(5), found: NONE, ..dead(part, AFTER, size) }
}

/// An address inside a buffer, which the program shows the start of.
const fn inside(part: &'static str, size: u64, offset: i64) -> Case {
    Case { offset: Some(offset), ..live(part, BAD, size, MADE) }
}

const MIB: u64 = 1 << 20;

const OVERFLOWS: &[Case] = &[
    past("past_end_of_1", 1, MADE),
    past("past_end_of_13", 13, MADE),
    past("past_end_of_a_class", 48, MADE),
    past("past_end_of_100", 100, MADE),
    past("past_end_of_a_page", 4096, MADE),
    past("past_end_of_large", 300_001, MADE),
    past("past_end_of_huge", 48 * MIB + 5, MADE),
    past("past_end_of_aligned", 100, ALIGNED),
    past("past_end_of_page_aligned", 5000, ALIGNED),
    past("past_end_of_cleared", 57, CLEARED),
    past("past_end_of_grown", 70, &["past_end_of_grown", "main"]),
    past("past_end_of_shrunk", 40, &["past_end_of_shrunk", "main"]),
    past("past_end_of_a_text", 8, &["strdup", "past_end_of_a_text", "main"]),
    past("many_past_end", 24, MADE),
    before("before_start_of_1", 1, MADE),
    before("before_start_of_a_class", 64, MADE),
    before("before_start_of_large", 300_000, MADE),
    before("before_start_of_huge", 48 * MIB, MADE),
    before("before_start_of_aligned", 64, ALIGNED),
    before("before_start_of_cleared", 33, CLEARED),
    Case { found: NONE, ..past("past_end_by_a_thread", 100, MADE) },
    Case { found: NONE, ..past("past_end_freed_by_a_thread", 100, MADE) },
    past("past_end_of_a_threads", 100, MADE_ELSEWHERE),
    past("past_end_and_realloc", 100, MADE),
    past("past_end_and_exit", 100, MADE),
    Case {
        options: AMONG_NONE_WAITS,
        offset: Some(-17),
        found: &["read_byte", "read_before_the_heap", "main"],
        ..live("read_before_the_heap", UNDERFLOW, 100, &["read_before_the_heap", "main"])
    },
    Case { options: ONLY_APART, found: &["read_byte", "read_past_end", "main"], ..past("read_past_end", 4096, MADE) },
    Case { options: ONLY_APART, offset: Some(5100), ..live("far_past_end", OVERFLOW, 100, MADE) },
    Case {
        options: ONLY_APART,
        offset: Some(6000),
        ..live("in_the_tail_given_up", OVERFLOW, 40, &["in_the_tail_given_up", "main"])
    },
    Case { options: ONLY_AMONG, ..live("byte_of_the_redzone_past_end", OVERFLOW, 64, MADE) },
];

const FREED: &[Case] = &[
    written("write_freed_small", 40),
    written("write_freed_page", 5000),
    written("write_freed_large", 300_000),
    written("write_freed_huge", 48 * MIB),
    written("write_freed_later", 40),
    written("write_freed_and_serve_again", 1000),
    written("write_freed_by_a_thread", 40),
    Case { freed: GIVEN_ELSEWHERE, ..written("write_what_a_thread_freed", 40) },
    Case { freed: &["write_moved", "main"], ..written("write_moved", 40) },
    // What was read is used as an address, so that the buffer is only suspected; on pages of their own the read itself is seen.
    Case { found: &["next_number", "read_freed", "main"], ..dead("read_freed", AFTER, 16) },
    Case { found: &["next_number", "read_freed_large"], ..dead("read_freed_large", AFTER, 300_000) },
    Case { found: &["next_number", "reads_elsewhere"], ..dead("read_freed_by_a_thread", AFTER, 16) },
    Case { found: &["call_through", "call_freed", "main"], ..dead("call_freed", AFTER, 16) },
    Case { found: &["next_number", "read_freed_after_a_fork", "main"], ..dead("read_freed_after_a_fork", AFTER, 16) },
    Case { found: &["next_number", "read_freed_in_child", "main"], ..dead("read_freed_by_a_child", AFTER, 16) },
    Case { freed: &["give_up", "write_freed_in_child", "main"], ..written("write_freed_by_a_child", 40) },
    Case { found: &["realloc_freed", "main"], ..dead("realloc_freed", AFTER, 40) },
    Case { found: &["ask_freed", "main"], ..dead("ask_freed", AFTER, 40) },
    Case { found: GIVEN, ..dead("twice_small", TWICE, 40) },
    Case { found: GIVEN, ..dead("twice_large", TWICE, 300_000) },
    Case { found: GIVEN, ..dead("twice_huge", TWICE, 48 * MIB) },
    Case { allocated: ALIGNED, ..dead("twice_aligned", TWICE, 100) },
    Case { allocated: CLEARED, ..dead("twice_cleared", TWICE, 200) },
    Case { found: GIVEN, ..dead("twice_with_others_between", TWICE, 40) },
    Case { freed: GIVEN_ELSEWHERE, found: GIVEN, ..dead("twice_once_by_a_thread", TWICE, 40) },
    Case { freed: GIVEN_ELSEWHERE, found: GIVEN_ELSEWHERE, ..dead("twice_by_threads", TWICE, 40) },
    Case { freed: &["free_moved", "main"], found: GIVEN, ..dead("free_moved", TWICE, 40) },
    Case { found: GIVEN, ..inside("free_middle", 160, 16) },
    Case { found: GIVEN, ..inside("free_middle_by_1", 160, 1) },
    Case { found: GIVEN, ..inside("free_middle_of_large", 300_000, 4096) },
    Case { found: GIVEN_ELSEWHERE, ..inside("free_middle_by_a_thread", 160, 32) },
    Case { found: &["realloc_middle", "main"], ..inside("realloc_middle", 160, 16) },
    Case { found: GIVEN, ..live("free_stack", BAD, 0, NONE) },
    Case { found: GIVEN, ..live("free_global", BAD, 0, NONE) },
];

const SIZED: &[&str] = &["give_up_sized", "main"];

const WRONG: &[Case] = &[
    Case { found: SIZED, ..live("one_more", MISMATCH, 40, MADE) },
    Case { found: SIZED, ..live("one_less", MISMATCH, 40, MADE) },
    Case { found: SIZED, ..live("another_class", MISMATCH, 40, MADE) },
    Case { found: SIZED, ..live("size_of_large", MISMATCH, 300_000, MADE) },
    Case { found: &["give_up_sized", "gives_up_sized_elsewhere"], ..live("size_by_a_thread", MISMATCH, 40, MADE) },
    Case { found: &["give_up_aligned", "main"], ..live("size_of_aligned", MISMATCH, 128, ALIGNED) },
    Case { found: &["give_up_aligned", "main"], ..live("alignment_of_aligned", MISMATCH, 128, MAIN) },
    Case { found: &["next_number", "never_written", "main"], ..live("never_written", FRESH, 16, MADE) },
    Case { found: &["next_number", "written_in_part", "main"], ..live("written_in_part", FRESH, 16, MADE) },
    Case { found: &["next_number", "main"], ..live("never_written_large", FRESH, 300_000, MADE) },
    Case { found: &["next_number", "reads_elsewhere"], ..live("never_written_by_a_thread", FRESH, 16, MADE) },
    Case { found: &["call_through", "called_never_written", "main"], ..live("called_never_written", FRESH, 16, MADE) },
    Case { found: &["next_number", "main"], ..live("never_written_where_it_grew", FRESH, 32, MAIN) },
];

const NUMBERS: &[&str] = &["make_numbers", "main"];
const NUMBERS_GIVEN: &[&str] = &["give_up_numbers", "main"];

const CXX: &[Case] = &[
    past("past_end_of_array", 28, NUMBERS),
    before("before_start_of_array", 28, NUMBERS),
    Case { freed: NUMBERS_GIVEN, found: NUMBERS_GIVEN, ..live("twice_array", TWICE, 28, NUMBERS) },
    Case { offset: Some(4), freed: MAIN, found: NONE, ..live("write_freed_element", AFTER, 400, MAIN) },
    Case { found: &["give_up_object", "main"], ..live("base_of_object", MISMATCH, 56, &["make_object", "main"]) },
    Case { found: SIZED, ..live("sized_delete", MISMATCH, 40, MAIN) },
    Case { found: &["give_up_sized"], ..live("sized_delete_by_a_thread", MISMATCH, 40, MAIN) },
];

/// A buffer that goes back by a function of another family.
const fn pair(part: &'static str, size: u64, found: &'static [&'static str]) -> Case {
    Case { options: PAIRS, found, ..live(part, PAIR, size, MAIN) }
}

const PAIRS: &[&str] = &["debug=audit,mismatch", "debug=mismatch,audit:malloc", APART];
const DELETED: &[&str] = &["give_up_object_of", "main"];
const DELETED_ARRAY: &[&str] = &["give_up_array_of", "main"];
const GIVEN_TO_C: &[&str] = &["give_up_to_c", "main"];

const FAMILIES: &[Case] = &[
    pair("malloc_and_delete", 40, DELETED),
    pair("large_malloc_and_delete", 300_000, DELETED),
    pair("new_and_free", 40, GIVEN_TO_C),
    pair("new_array_and_free", 40, GIVEN_TO_C),
    pair("new_and_delete_array", 40, DELETED_ARRAY),
    pair("new_array_and_delete", 40, DELETED),
    pair("aligned_new_and_delete", 128, DELETED),
    pair("aligned_new_and_free", 128, GIVEN_TO_C),
    pair("new_and_aligned_delete", 4096, MAIN),
    pair("new_and_realloc", 40, MAIN),
];

const TAKEN: &[&str] = &["take_object", "main"];
const RETURNED: &[&str] = &["give_back", "main"];
/// Bytes of an object of the caches.
const NODE: u64 = 40;

const CACHES: &[Case] = &[
    past("past_end_of_object", NODE, TAKEN),
    before("before_start_of_object", NODE, TAKEN),
    Case { offset: Some(5), freed: RETURNED, found: NONE, ..live("write_freed_object", AFTER, NODE, TAKEN) },
    Case { freed: RETURNED, found: &["next_number", "main"], ..live("read_freed_object", AFTER, NODE, TAKEN) },
    Case { freed: RETURNED, found: RETURNED, ..live("twice_object", TWICE, NODE, TAKEN) },
    Case {
        freed: &["give_back", "gives_back_elsewhere"],
        found: RETURNED,
        ..live("twice_object_once_by_a_thread", TWICE, NODE, TAKEN)
    },
    Case { found: RETURNED, ..live("to_another_cache", CACHE, NODE, TAKEN) },
    Case { found: MAIN, ..live("object_to_a_heap", CACHE, NODE, TAKEN) },
    Case { found: GIVEN, ..live("object_to_malloc", CACHE, NODE, TAKEN) },
    Case { found: RETURNED, ..live("buffer_to_a_cache", CACHE, NODE, MADE) },
    Case { offset: Some(8), found: RETURNED, ..live("middle_of_object", BAD, NODE, TAKEN) },
    Case { found: &["next_number", "main"], ..live("field_never_constructed", FRESH, NODE, TAKEN) },
];

/// What a report says.
#[derive(Debug, Default)]
struct Report {
    kind: String,
    address: u64,
    size: u64,
    offset: Option<i64>,
    /// Functions on the stacks, by the word that the line before them begins with.
    stacks: HashMap<String, Vec<String>>,
}

impl Report {
    /// Reads the first report.
    fn read(stderr: &str) -> Result<Self, String> {
        let mut report = Self::default();
        let mut stack = None;
        for line in stderr.lines() {
            let Some(line) = line.strip_prefix("craton: ") else { continue };
            if let Some(text) = line.strip_prefix("BUG ") {
                if !report.kind.is_empty() {
                    break;
                }
                report.kind = text.split(':').next().unwrap_or_default().to_owned();
            } else if let Some(frame) = line.strip_prefix("    #") {
                let Some(stack) = &mut stack else { return Err(format!("a frame without a heading: {line}")) };
                let name = frame.split(' ').nth(2).unwrap_or("?");
                report.stacks.entry(String::clone(stack)).or_default().push(name.to_owned());
            } else if let Some(text) = line.strip_prefix("  ") {
                report.detail(text).ok_or_else(|| format!("a line that says nothing: {line}"))?;
                let heading = text.split(' ').next().unwrap_or_default();
                stack = matches!(heading, "allocated" | "freed" | "found").then(|| heading.to_owned());
            }
        }
        if report.kind.is_empty() { Err("there is no report".to_owned()) } else { Ok(report) }
    }

    fn detail(&mut self, text: &str) -> Option<()> {
        if let Some(rest) = text.strip_prefix("buffer 0x") {
            let (address, rest) = rest.split_once(" of ")?;
            self.address = u64::from_str_radix(address, 16).ok()?;
            self.size = rest.split(' ').next()?.parse().ok()?;
        }
        if let Some((_, rest)) = text.split_once("at offset ") {
            let end = rest.find(|c: char| c != '-' && !c.is_ascii_digit()).unwrap_or(rest.len());
            self.offset = Some(rest[..end].parse().ok()?);
        }
        Some(())
    }

    fn stack(&self, heading: &str) -> &[String] {
        self.stacks.get(heading).map_or(&[], Vec::as_slice)
    }
}

/// Whether the names come in this order, others between them or not.
fn has_names(stack: &[String], names: &[&str]) -> bool {
    let mut rest = stack.iter();
    names.iter().all(|name| rest.any(|n| n.contains(name)))
}

/// What is not as the case says.
fn complaints(case: &Case, output: &Output) -> Result<(), String> {
    let report = Report::read(&output.stderr)?;
    let shown =
        output.stdout.lines().next().and_then(|line| u64::from_str_radix(line.trim_start_matches("0x"), 16).ok());
    let shown = shown.ok_or("the program shows no address")?;
    let mut wrong = String::new();
    let mut expect = |what: &str, is: bool| {
        if !is {
            let _ = writeln!(wrong, "not as expected: {what}");
        }
    };
    expect("ends by a signal", matches!(output.signal, Some(libc::SIGABRT | libc::SIGSEGV)));
    expect("the kind", report.kind == case.kind);
    if case.size > 0 {
        expect("the buffer's address", report.address == shown);
        expect("the buffer's size", report.size == case.size);
    } else {
        expect("the address", output.stderr.contains(&format!("({shown:#x})")));
    }
    expect("the offset", case.offset.is_none() || report.offset == case.offset);
    for (heading, names) in [("allocated", case.allocated), ("freed", case.freed), ("found", case.found)] {
        expect(&format!("who {heading} it"), has_names(report.stack(heading), names));
    }
    expect("that it was freed, or not", report.stacks.contains_key("freed") != case.freed.is_empty());
    expect("a stack of where it was found", !report.stack("found").is_empty());
    if wrong.is_empty() { Ok(()) } else { Err(format!("{wrong}{report:#?}")) }
}

/// Runs all cases of a program, and names those that are not reported as they should be.
fn all_are_reported(program: &PathBuf, cases: &[Case]) {
    let runs: Vec<_> = cases.iter().flat_map(|case| case.options.iter().map(move |options| (case, *options))).collect();
    let failures = side_by_side(&runs, |(case, options)| {
        let output = Program::new(program).arg(case.part).options(options).preloaded().run();
        let why = complaints(case, &output).err()?;
        Some(format!("=== {} under {options}: {why}\n{output}", case.part))
    });
    let failures: Vec<String> = failures.into_iter().flatten().collect();
    assert!(failures.is_empty(), "{}\n{} are not reported as they should be", failures.concat(), failures.len());
}

fn program(source: &str) -> PathBuf {
    cc(&format!("faulty/{source}"), &["-w", "-Wl,-z,dynamic-undefined-weak"])
}

#[test]
fn bytes_written_beside_a_buffer_are_reported() {
    all_are_reported(&program("overflow.c"), OVERFLOWS);
}

#[test]
fn buffers_used_or_freed_after_they_were_freed_are_reported() {
    all_are_reported(&program("freed.c"), FREED);
}

#[test]
fn wrong_sizes_and_what_nobody_wrote_are_reported() {
    all_are_reported(&program("wrong.c"), WRONG);
}

#[test]
fn mistakes_in_cxx_are_reported() {
    all_are_reported(&cxx_program(), CXX);
}

fn cxx_program() -> PathBuf {
    cxx("faulty/cxx.cpp", &["-w", "-fsized-deallocation", "-std=c++17"])
}

#[test]
fn memory_that_goes_back_by_another_family_of_functions_is_reported() {
    all_are_reported(&cxx_program(), FAMILIES);
    // Without the check these go back as ever.
    for case in FAMILIES.iter().filter(|case| case.part != "new_and_aligned_delete") {
        let output = Program::new(cxx_program()).arg(case.part).options("debug=audit,redzone").preloaded().run();
        output.assert_success();
    }
}

#[test]
fn memory_that_goes_back_by_its_own_family_is_not_reported() {
    for options in PAIRS {
        let output = Program::new(cxx_program()).arg("right_pairs").options(options).preloaded().run();
        output.assert_success();
        assert!(!output.stderr.contains("BUG mismatch"), "{output}");
    }
}

/// The program with caches needs the library's own calls, and so is linked with it.
fn with_caches() -> PathBuf {
    let library = library().to_str().expect("the library's path is UTF-8");
    let folder = Path::new(library).parent().expect("the library lies in a folder").display();
    cc("faulty/caches.c", &["-w", library, &format!("-Wl,--disable-new-dtags,-rpath,{folder}")])
}

#[test]
fn mistakes_with_objects_of_caches_are_reported() {
    all_are_reported(&with_caches(), CACHES);
}

#[test]
fn a_cache_with_objects_out_says_where_they_came_from() {
    for options in BOTH {
        let output = Program::new(with_caches()).arg("destroyed_with_objects_out").options(options).run();
        output.assert_success();
        let address = output.stdout.trim_end();
        assert!(output.stderr.contains(address) && output.stderr.contains("take_object"), "{output}");
    }
}

#[test]
fn owners_are_known_however_far_the_log_has_gone_on() {
    // 500 buffers come and go between the two frees, and the log has four entries.
    let options = "audit_log=4,debug=audit,redzone,poison,verify";
    let case = FREED.iter().find(|case| case.part == "twice_with_others_between").unwrap();
    let output = Program::new(program("freed.c")).arg(case.part).options(options).preloaded().run();
    complaints(case, &output).unwrap_or_else(|why| panic!("{why}\n{output}"));
}

#[test]
fn a_pointer_into_a_buffer_is_told_as_such_by_each_check() {
    let program = program("freed.c");
    for check in ["audit", "redzone", "poison", "verify", "guard", "unmap", "leak"] {
        let output = Program::new(&program).arg("free_middle").options(&format!("debug={check}")).preloaded().run();
        let report = Report::read(&output.stderr).unwrap_or_else(|why| panic!("{check}: {why}\n{output}"));
        assert_eq!((report.kind.as_str(), report.size, report.offset), (BAD, 160, Some(16)), "{check}: {output}");
    }
}

#[test]
fn what_was_done_first_is_said_to_be_longer_ago() {
    let output =
        Program::new(program("freed.c")).arg("twice_with_others_between").options("debug=all").preloaded().run();
    let ago = |what: &str| -> f64 {
        let line = output.stderr.lines().find(|line| line.starts_with(&format!("craton:   {what} by"))).expect("told");
        line.rsplit_once(" s ago").and_then(|(before, _)| before.rsplit(' ').next()?.parse().ok()).expect("seconds")
    };
    assert!(ago("allocated") >= ago("freed"), "{output}");
}

/// Buffers that leak, by their part: bytes of each that is told of, and functions on the stack that allocated it.
const LOST: &[(&str, u64, &[&str])] = &[
    ("lost", 100, &["make_buffer", "lose", "main"]),
    ("lost_last", 100, &["make_buffer", "lose", "main"]),
    ("lost_large", 300_000, &["make_buffer", "lose_large", "main"]),
    ("lost_huge", 48 * MIB, &["make_buffer", "lose_huge", "main"]),
    ("lost_circle", 24, &["lose_circle", "main"]),
    ("lost_list", 24, &["lose_list", "main"]),
    ("lost_by_a_thread", 100, &["make_buffer", "lose", "loses_elsewhere"]),
    ("lost_on_an_ended_stack", 100, &["make_buffer", "loses_on_its_stack"]),
    ("overwritten", 100, &["make_buffer", "overwrite", "main"]),
];

/// Parts that lose nothing.
const KEPT: &[&str] =
    &["kept_in_global", "kept_by_the_middle", "kept_by_a_chain", "kept_by_a_thread", "kept_on_a_stack", "kept_here"];

const LEAKS: [&str; 2] = ["debug=audit,leak", "debug=all"];

#[test]
fn buffers_that_nothing_leads_to_are_reported_at_the_exit() {
    let runs: Vec<_> = LOST.iter().flat_map(|lost| LEAKS.map(|options| (lost, options))).collect();
    side_by_side(&runs, |((part, size, names), options)| {
        let output = Program::new(program("leaks.c")).arg(part).options(options).preloaded().run();
        output.assert_success();
        let report = Report::read(&output.stderr).unwrap_or_else(|why| panic!("{part}: {why}\n{output}"));
        assert_eq!((report.kind.as_str(), report.size), ("leak", *size), "{output}");
        assert!(has_names(report.stack("allocated"), names), "{names:?}:\n{output}");
        // Of a circle, either object may be reported.
        let shown = output.stdout.lines().find(|line| line.starts_with("0x"));
        let address = format!("{:#x}", report.address);
        let shown = shown.expect("the program shows what it loses");
        assert!(shown.split('|').any(|a| a == address), "{output}");
    });
}

#[test]
fn buffers_that_something_leads_to_are_not_reported() {
    let parts = KEPT.iter().copied().chain(["overwritten"]);
    let runs: Vec<_> = parts.flat_map(|part| LEAKS.map(|options| (part, options))).collect();
    side_by_side(&runs, |(part, options)| {
        let output = Program::new(program("leaks.c")).arg(part).options(options).preloaded().run();
        output.assert_success();
        let kept: Vec<_> = output.stdout.lines().filter_map(|line| line.strip_prefix('-')).collect();
        assert!(!kept.is_empty(), "{output}");
        for address in kept {
            assert!(!output.stderr.contains(&format!("buffer {address} ")), "{address} is kept:\n{output}");
        }
    });
}

#[test]
fn there_are_as_many_faulty_programs_as_were_promised() {
    let cases = [OVERFLOWS, FREED, WRONG, CXX, CACHES].iter().map(|c| c.len()).sum::<usize>() + LOST.len() + KEPT.len();
    assert!(cases >= 44, "{cases}");
}
