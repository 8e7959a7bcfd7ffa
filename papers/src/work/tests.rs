use super::*;
use std::collections::BTreeSet;

#[test]
fn names_are_unique_and_fit_a_file_name() {
    let names: BTreeSet<&str> = WORKLOADS.iter().map(|w| w.name).collect();
    assert_eq!(names.len(), WORKLOADS.len());
    for workload in WORKLOADS {
        assert!(!workload.name.is_empty() && !workload.about.is_empty() && !workload.from.is_empty());
        assert!(workload.name.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-'));
        assert!(workload.threads >= 1, "{}", workload.name);
    }
}

#[test]
fn the_quick_load_of_every_workload_gives_its_checksum() {
    for workload in WORKLOADS {
        let load = workload.load(QUICK);
        let sum = (workload.run)(&load);
        assert_eq!(sum, workload.known[0], "{} gives {sum:#018x}", workload.name);
    }
}

#[test]
fn another_seed_gives_another_checksum() {
    for workload in WORKLOADS {
        let load = Load { percent: 1, ..workload.load(1) };
        assert_ne!((workload.run)(&load), (workload.run)(&Load { seed: 2, ..load }), "{}", workload.name);
    }
}

#[test]
fn threads_do_not_change_what_is_repeated() {
    for workload in WORKLOADS {
        for threads in [1, 3] {
            let load = Load { threads, percent: 1, seed: 7 };
            assert_eq!((workload.run)(&load), (workload.run)(&load), "{} on {threads} threads", workload.name);
        }
    }
}

#[test]
fn amounts_are_never_nothing() {
    let load = |percent| Load { threads: 1, percent, seed: 1 };
    assert_eq!(load(5).of(200), 10);
    assert_eq!(load(1).of(3), 1);
    assert_eq!(load(u64::MAX).of(u64::MAX), u64::MAX);
}
