//! Stand-ins for `craton-micro` and valgrind.

use super::report::{ratios, table};
use super::*;
use crate::scratch::Scratch;
use std::cell::{Cell, RefCell};
use std::path::Path;
use std::process::Command;
use std::sync::atomic::Ordering::Relaxed;

const PROGRAM: &str = r#"#!/bin/sh
while [ $# -gt 0 ]; do
    [ "$1" = --count ] && count=$2
    shift
done
echo "{\"pattern\":\"pair\",\"size_bytes\":16,\"threads\":1,\"operations\":$((2 * count)),\"ns_median\":${NS:-10},\
\"ns_min\":9,\"loop_ns\":2,\"steps\":[[1,700]],\"malloc_from\":\"${FROM:-/lib/libc.so.6}\"}"
"#;

/// 7 instructions for the loop, 57 in all.
const VALGRIND: &str = r#"#!/bin/sh
file=${2#--callgrind-out-file=}
shift 2
per=57
for word; do
    [ "$last" = --count ] && count=$word
    [ "$word" = only ] && per=7
    last=$word
done
echo "summary: $((1000000 + 2 * count * per))" >"$file"
exec "$@"
"#;

fn rows_of(config: &Config<'_>) -> Vec<MicroRow> {
    run(config).expect("there is a place for files")
}

struct Programs(Scratch);

impl Programs {
    fn new(program: &str, valgrind: &str) -> Self {
        let directory = Scratch::new("a test").unwrap();
        for (name, text) in [("program", program), ("valgrind", valgrind)] {
            let path = directory.path().join(name);
            // By another process: a file open here while another test forks could not be executed.
            let write = ["-c", "printf %s \"$1\" >\"$2\" && chmod 700 \"$2\"", "sh", text];
            assert!(Command::new("sh").args(write).arg(&path).status().unwrap().success());
        }
        Self(directory)
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    fn config<'a>(&self, allocators: &'a [Allocator], stop: &'a AtomicBool) -> Config<'a> {
        Config {
            sizes: vec![16, 64],
            threads: vec![1],
            patterns: vec![Pattern::Pair],
            valgrind: self.path("valgrind").into(),
            ..Config::standard(true, allocators, self.path("program"), stop, &|_| {})
        }
    }

    fn rows(&self, allocators: &[Allocator]) -> Vec<MicroRow> {
        rows_of(&self.config(allocators, &AtomicBool::new(false)))
    }
}

fn named(name: &str, ns: &str) -> Allocator {
    Allocator { name: name.to_owned(), env: vec![("NS".into(), ns.into())], ..Allocator::glibc() }
}

#[test]
fn rows_have_times_and_instructions_without_the_loops() {
    let rows = Programs::new(PROGRAM, VALGRIND).rows(&[Allocator::glibc(), named("other", "20")]);
    let seen: Vec<_> = rows.iter().map(|r| (r.allocator.as_str(), r.size_bytes, r.ns_median, r.instructions)).collect();
    // The loop's 7 contain the empty functions' 3, which the allocator's replace.
    let expected = [("glibc", 16, 10.0, Some(53.0)), ("other", 16, 20.0, Some(53.0))];
    assert_eq!(seen[..2], expected);
    assert_eq!(seen[2..], [("glibc", 64, 10.0, None), ("other", 64, 20.0, None)]);
    assert!(rows.iter().all(|r| r.status == Status::Ok && r.loop_ns == 2.0 && r.ns_min == 9.0), "{rows:?}");
    assert_eq!(rows[0].loop_instructions, Some(4.0));
    let json = serde_json::to_value(&rows[0]).unwrap();
    assert_eq!((&json["status"], &json["instructions"]), (&"ok".into(), &53.0.into()));
}

#[test]
fn allocators_take_turns_and_the_full_form_has_three_rounds() {
    let programs = Programs::new(PROGRAM, VALGRIND);
    let allocators = [Allocator::glibc(), named("other", "20")];
    let turns = RefCell::new(Vec::new());
    let progress = |p: Progress<'_>| turns.borrow_mut().push((p.allocator.to_owned(), p.done, p.total));
    let stop = AtomicBool::new(false);
    let mut config = programs.config(&allocators, &stop);
    (config.quick, config.sizes, config.counted_sizes, config.progress) = (false, vec![16], Vec::new(), &progress);
    let rows = rows_of(&config);
    assert_eq!(rows.len(), 2);
    let expected: Vec<_> = (0..6).map(|i| (["glibc", "other"][i % 2].to_owned(), i, 6)).collect();
    assert_eq!(*turns.borrow(), expected);
}

#[test]
fn a_cold_run_has_a_row_for_the_first_object() {
    let programs = Programs::new(PROGRAM, VALGRIND);
    let allocators = [Allocator::glibc()];
    let stop = AtomicBool::new(false);
    let mut config = programs.config(&allocators, &stop);
    (config.patterns, config.sizes) = (vec![Pattern::Cold], vec![16]);
    let seen: Vec<_> = rows_of(&config).into_iter().map(|row| (row.pattern, row.ns_median)).collect();
    assert_eq!(seen, [("cold".to_owned(), 10.0), ("cold-first".to_owned(), 700.0)]);
}

#[test]
fn a_library_that_did_not_serve_has_no_number() {
    let programs = Programs::new(PROGRAM, VALGRIND);
    // A text file: the dynamic linker goes on without it.
    let broken = Allocator::preloaded("broken", programs.path("program"));
    let missing = Allocator::preloaded("missing", "/no/such/library.so");
    let mut other = Allocator::preloaded("other", programs.path("program"));
    other.env.push(("FROM".into(), "/lib/libc.so.6".into()));
    let rows = programs.rows(&[Allocator::glibc(), broken, missing, other]);
    assert_eq!(rows.len(), 8);
    for row in rows.iter().filter(|row| row.allocator != "glibc") {
        assert!(matches!(row.status, Status::NotServed(_)) && !row.is_timed() && row.instructions.is_none(), "{row:?}");
    }
    assert!(rows[1].status.to_string().contains("cannot be preloaded"), "{:?}", rows[1]);
    assert!(rows[2].status.to_string().contains("/no/such/library.so"), "{:?}", rows[2]);
    assert!(rows[0].is_timed() && rows[0].instructions.is_some());
}

#[test]
fn malloc_must_come_from_where_it_was_meant_to() {
    let programs = Programs::new(PROGRAM, VALGRIND);
    let mut disguised = Allocator::glibc();
    disguised.env.push(("FROM".into(), "/lib/libother.so".into()));
    let rows = programs.rows(&[disguised]);
    assert_eq!(rows[0].status, Status::NotServed("malloc came from /lib/libother.so".to_owned()));
}

#[test]
fn a_program_that_fails_is_a_row_with_its_words() {
    let allocators = [Allocator::glibc()];
    let status = |program: &str| Programs::new(program, VALGRIND).rows(&allocators)[0].status.to_string();
    assert_eq!(status("#!/bin/sh\necho no memory >&2; exit 3"), "failed: exit 3: no memory");
    assert_eq!(status("#!/bin/sh\nkill -11 $$"), "failed: signal 11");
    assert!(status("#!/bin/sh\necho hello").contains("\"hello\" is no result"));
    assert!(status("#!/no/such/shell").contains("cannot start"));
}

#[test]
fn without_valgrind_there_are_times_and_the_reason() {
    let programs = Programs::new(PROGRAM, VALGRIND);
    let allocators = [Allocator::glibc()];
    let stop = AtomicBool::new(false);
    let mut config = programs.config(&allocators, &stop);
    config.valgrind = "craton-no-such-valgrind".into();
    let rows = rows_of(&config);
    assert!(rows[0].is_timed() && rows[0].instructions.is_none(), "{rows:?}");
    let Status::NotCounted(why) = &rows[0].status else { panic!("{rows:?}") };
    assert!(why.contains("craton-no-such-valgrind") && why.contains("install valgrind"), "{why}");
}

#[test]
fn an_allocator_that_fails_under_valgrind_alone_keeps_its_times_and_is_tried_once() {
    let failure = "[ \"$NS\" = 20 ] && { echo \"$*\" >>\"$0.runs\"; echo reservation >&2; exit 1; }\nper=57";
    let fails = VALGRIND.replace("per=57", failure);
    let programs = Programs::new(PROGRAM, &fails);
    let allocators = [Allocator::glibc(), named("other", "20")];
    let stop = AtomicBool::new(false);
    let mut config = programs.config(&allocators, &stop);
    config.counted_sizes = vec![16, 64];
    let rows = rows_of(&config);
    for row in &rows {
        let other = row.allocator == "other";
        assert_eq!((row.is_timed(), row.instructions.is_none()), (true, other), "{row:?}");
        assert_eq!(row.status.to_string().contains("reservation"), other, "{row:?}");
    }
    let runs = std::fs::read_to_string(programs.path("valgrind.runs")).unwrap();
    assert!(runs.contains("--size 16 ") && !runs.contains("--size 64 "), "{runs}");
}

#[test]
fn stopped_in_the_middle_the_rows_so_far_come_back() {
    let programs = Programs::new(PROGRAM, VALGRIND);
    let allocators = [Allocator::glibc(), named("other", "20")];
    let (stop, seen) = (AtomicBool::new(false), Cell::new(0));
    let run_until = |last: usize| {
        stop.store(false, Relaxed);
        seen.set(0);
        let progress = |_: Progress<'_>| {
            seen.set(seen.get() + 1);
            stop.store(seen.get() == last, Relaxed);
        };
        let mut config = programs.config(&allocators, &stop);
        config.progress = &progress;
        rows_of(&config)
    };
    let rows = run_until(3);
    assert_eq!(rows.iter().map(|r| r.size_bytes).collect::<Vec<_>>(), [16, 16]);
    let rows = run_until(5);
    assert_eq!((rows.len(), rows.iter().all(|r| r.is_timed() && r.instructions.is_none())), (4, true));
}

fn row(allocator: &str, size_bytes: usize, ns: f64, instructions: Option<f64>) -> MicroRow {
    MicroRow {
        allocator: allocator.to_owned(),
        pattern: "pair".to_owned(),
        size_bytes,
        threads: 1,
        ns_median: ns,
        ns_min: ns,
        loop_ns: 1.0,
        instructions,
        loop_instructions: instructions.map(|_| 6.0),
        status: if ns > 0.0 { Status::Ok } else { Status::Failed("signal 11".to_owned()) },
    }
}

#[test]
fn ratios_are_means_over_the_sizes_that_both_have() {
    let mut rows = vec![
        row("glibc", 16, 20.0, Some(100.0)),
        row("glibc", 64, 40.0, Some(50.0)),
        row("craton", 16, 10.0, Some(50.0)),
        row("craton", 64, 10.0, Some(50.0)),
        row("slow", 16, 0.0, None),
        row("slow", 64, 5.0, Some(25.0)),
        row("fast", 16, 10.0, Some(200.0)),
    ];
    rows.push(MicroRow { threads: 2, ..row("glibc", 16, 1.0, None) });
    let ratios = ratios(&rows, "craton");
    let close = |name: &str, value: f64| {
        let ratio = ratios.get(name).unwrap_or_else(|| panic!("no {name} in {ratios:?}"));
        assert!((ratio - value).abs() < 1e-9, "{name}: {ratio} instead of {value}");
    };
    close("pair_ns_vs_glibc", 0.125f64.sqrt());
    close("pair_instructions_vs_glibc", 0.5f64.sqrt());
    close("pair_ns_vs_slow", 2.0);
    close("pair_instructions_vs_slow", 2.0);
    close("pair_instructions_vs_fast", 0.25);
    close("pair_instructions_vs_best_peer", 2.0);
    assert_eq!(ratios.len(), 7);
}

#[test]
fn without_a_peer_or_without_craton_there_is_nothing_to_compare() {
    let rows = [row("glibc", 16, 20.0, Some(100.0)), row("craton", 16, 10.0, Some(50.0))];
    assert!(!ratios(&rows, "craton").contains_key("pair_instructions_vs_best_peer"));
    assert!(ratios(&rows[..1], "craton").is_empty());
}

#[test]
fn the_table_has_a_column_for_each_allocator_and_a_reason_for_each_dash() {
    let rows = [row("glibc", 16, 20.0, Some(100.0)), row("craton", 16, 0.0, None), row("glibc", 64, 120.6, None)];
    let expected = "\
ns of one operation, the loop's included (median)
pattern  bytes  threads  glibc  craton  loop
pair        16        1   20.0       -   1.0
pair        64        1    121       -   1.0

Instructions of one operation, without the loop's
pattern  bytes  threads  glibc  craton  loop
pair        16        1    100       -   6.0

craton: failed: signal 11 (1 rows)
";
    assert_eq!(table(&rows), expected);
    assert_eq!(table(&[]).lines().count(), 2);
}

#[test]
fn the_standard_forms_measure_what_can_be_measured() {
    let stop = AtomicBool::new(false);
    for quick in [true, false] {
        let config = Config::standard(quick, &[], Path::new("craton-micro").to_owned(), &stop, &|_| {});
        assert!(config.counted_sizes.iter().all(|size| config.sizes.contains(size)));
        assert!(config.counted_patterns.iter().all(|pattern| config.patterns.contains(pattern)));
        assert!(config.sizes.iter().all(|size| (8..=pattern::MOST_BYTES).contains(size)));
    }
}
