use craton_lab::measure::Allocator;
use craton_lab::micro::{Config, MicroRow, Status, measurement::Measurement, pattern::Pattern, run};
use std::process::Command;
use std::sync::atomic::AtomicBool;

const PROGRAM: &str = env!("CARGO_BIN_EXE_craton-micro");

fn pair_at_256() -> MicroRow {
    let (stop, allocators) = (AtomicBool::new(false), [Allocator::glibc()]);
    let mut config = Config::standard(true, &allocators, PROGRAM.into(), &stop, &|_| {});
    (config.sizes, config.threads, config.patterns) = (vec![256], vec![1], vec![Pattern::Pair]);
    let mut rows = run(&config).expect("there is a place for files");
    assert_eq!(rows.len(), 1, "{rows:?}");
    rows.remove(0)
}

#[test]
fn a_pair_on_the_c_library_has_a_time() {
    let output = Command::new(PROGRAM).args(["pair", "--size", "64", "--count", "100"]).output().expect("it starts");
    let result = Measurement::parse(&String::from_utf8_lossy(&output.stdout)).expect("a result");
    assert_eq!((result.pattern.as_str(), result.size_bytes, result.operations), ("pair", 64, 800));
    assert!(result.loop_ns.is_some_and(|ns| ns > 0.0), "{result:?}");
}

#[test]
fn wrong_usage_is_exit_status_2() {
    let output = Command::new(PROGRAM).args(["pair", "--size", "big"]).output().expect("it starts");
    assert_eq!(output.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&output.stderr).contains("\"big\""));
}

#[test]
fn instructions_repeat() {
    let first = pair_at_256();
    assert!(first.is_timed(), "{first:?}");
    if matches!(&first.status, Status::NotCounted(why) if why.contains("install valgrind")) {
        return;
    }
    let [first, second] = [first, pair_at_256()].map(|row| row.instructions.unwrap_or_else(|| panic!("{row:?}")));
    assert!(first > 10.0 && first < 1000.0, "{first} instructions for a malloc and a free");
    assert!((first - second).abs() <= first / 100.0, "{first} and {second}");
}
