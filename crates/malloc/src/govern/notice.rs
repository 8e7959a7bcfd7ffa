//! At most once a minute, a line about a hard limit that refused a request, or a soft one that free
//! memory could not keep. Runs without locks.

use crate::statics::{HEAP, LIMITS};
use crate::thread::nested;
use core::sync::atomic::{AtomicU64, Ordering::Relaxed};
use craton_heap::size_class::{CLASSES, size_of_class};
use craton_os::{Line, precise_ns, probe, process};

const EVERY_NS: u64 = 60_000_000_000;

fn is_due(next_ns: &AtomicU64, now_ns: u64) -> bool {
    let next = next_ns.load(Relaxed);
    now_ns >= next && next_ns.compare_exchange(next, now_ns + EVERY_NS, Relaxed, Relaxed).is_ok()
}

#[cold]
pub(super) fn soft(limit: u64, used: u64) {
    probe::soft_limit(limit as usize, used as usize);
    if is_due(&LIMITS.next_lines_ns[0], precise_ns()) {
        let line = size(Line::new().text("craton: the soft limit of "), limit);
        print(size(line.text(" is passed, and no more memory is free: "), used).text(" in use"), used);
    }
}

#[cold]
pub(super) fn hard(limit: u64, request: usize) {
    probe::hard_limit(limit as usize, request);
    if is_due(&LIMITS.next_lines_ns[1], precise_ns()) {
        let used = HEAP.used();
        let line = size(Line::new().text("craton: the hard limit of "), limit).text(" refused a request of ");
        print(size(size(line, request as u64).text(": "), used).text(" in use"), used);
    }
}

fn print(line: Line, used: u64) {
    let saved = process::errno();
    let bytes = |class: usize| HEAP.class_stats(class).objects_out * size_of_class(class) as u64;
    let most = nested::within(|| (1..=CLASSES).map(|class| (bytes(class), class)).max());
    let line = match most {
        Some((bytes, class)) if bytes > used / 8 => {
            size(line.text(", "), bytes).text(" in objects of ").size(size_of_class(class))
        }
        _ => line,
    };
    line.print();
    process::set_errno(saved);
}

fn size(line: Line, bytes: u64) -> Line {
    match bytes {
        ..1024 => line.size(bytes as usize),
        1024..0x10_0000 => line.number(bytes >> 10).text(" KiB"),
        _ => line.number(bytes >> 20).text(".").number(((bytes & 0xf_ffff) * 10) >> 20).text(" MiB"),
    }
}

#[cfg(all(test, not(loom)))]
mod tests;
