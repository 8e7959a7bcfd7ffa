//! Programs with one bug each.

#![cfg(target_arch = "x86_64")]

mod cases;

use cases::*;
use craton_programs::{Output, Program, cc, cxx, library, side_by_side};
use std::collections::HashMap;
use std::fmt::Write;
use std::path::{Path, PathBuf};

#[derive(Debug, Default)]
struct Report {
    kind: String,
    address: u64,
    size: u64,
    offset: Option<i64>,
    /// By the first word of the line before them.
    stacks: HashMap<String, Vec<String>>,
}

impl Report {
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

fn has_names(stack: &[String], names: &[&str]) -> bool {
    let mut rest = stack.iter();
    names.iter().all(|name| rest.any(|n| n.contains(name)))
}

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
    if case.size > 0 || !case.allocated.is_empty() {
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
fn reads_beside_buffers_and_of_freed_ones_are_reported() {
    all_are_reported(&program("reads.c"), READS);
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
    // 500 buffers between the two frees, and the log has four entries.
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
    let cases = [OVERFLOWS, FREED, READS, WRONG, CXX, FAMILIES, CACHES].iter().map(|c| c.len()).sum::<usize>()
        + LOST.len()
        + KEPT.len();
    assert!(cases >= 138, "{cases}");
}
