extern crate std;
use super::*;
use std::vec::Vec;

fn transaction(n: u64) -> Transaction {
    let action = if n.is_multiple_of(2) { Action::Alloc } else { Action::Free };
    Transaction { time_ns: n + 1, address: 16 * n as usize, size: n as usize, stack: n as u32, thread: 7, action }
}

#[test]
fn the_newest_are_kept_and_all_are_counted() {
    let entries: Vec<Entry> = (0..5).map(|_| Entry::default()).collect();
    // SAFETY: the entries outlive the log, which alone uses them.
    let log = Log::new(unsafe { Table::new(entries.as_ptr().cast_mut(), 5) }, 5);
    for n in 0..12 {
        log.add(transaction(n));
        let mut seen = Vec::new();
        log.each(|t| {
            seen.push(t);
            true
        });
        let expected: Vec<_> = (0..=n).rev().take(5).map(transaction).collect();
        assert_eq!(seen, expected);
        assert_eq!((log.count(), log.kept()), (n + 1, (n + 1).min(5)));
    }
    let mut told = 0;
    log.each(|_| {
        told += 1;
        told < 2
    });
    assert_eq!(told, 2, "it ends when it is told so");
}

#[test]
fn a_log_without_entries_keeps_nothing() {
    let log = Log::EMPTY;
    log.add(transaction(1));
    assert_eq!(log.count(), 0);
    log.each(|_| panic!("there is nothing"));
}
