use super::world::{World, world};
use crate::size_class::CLASSES;
use craton_base::{HugePages, Pages};
use craton_pages::{HugeBacking, PageHeapExt, Took};
use craton_sim::{Call, FaultRule, Rng, ThpMode};
use std::vec::Vec;

const MIB: u64 = 1 << 20;

fn large(w: &World, bytes: u64) -> *mut u8 {
    w.heap.allocate_large(bytes as usize, 1, false)
}

fn hard(w: &World, bytes: u64) {
    w.heap.gate.set(None, Some(bytes));
}

#[test]
fn l1_no_more_is_in_use_than_the_hard_limit_and_what_was_freed_can_be_had_again() {
    for limit in [3 * MIB, 8 * MIB + 8192, 21 * MIB] {
        let w = world(64, 64 << 10);
        hard(&w, limit);
        let mut rng = Rng::new(limit);
        let mut out: Vec<*mut u8> = Vec::new();
        let mut refused = 0;
        for round in 0..6000u32 {
            // More is taken than given, then less.
            let taking = if round / 500 % 2 == 0 { 70 } else { 30 };
            if rng.below(100) < taking {
                let object = match rng.below(10) {
                    0 => large(&w, 300 << 10 << rng.below(4)),
                    _ => w.take(1 + rng.below(CLASSES as u64) as usize),
                };
                if object.is_null() { refused += 1 } else { out.push(object) }
            } else if !out.is_empty() {
                w.give(out.swap_remove(rng.below(out.len() as u64) as usize)).unwrap();
            }
            assert!(w.heap.used() <= limit, "{} of {limit} bytes", w.heap.used());
        }
        assert!(refused > 10, "{refused} refusals at {limit}");
        w.heap.pages.lock().check().unwrap();
        out.drain(..).for_each(|o| w.give(o).unwrap());
        w.empty();
        let all = large(&w, limit / 2);
        assert!(!all.is_null());
        w.give(all).unwrap();
    }
}

#[test]
fn l1_a_refill_that_ends_at_the_limit_does_not_pass_it() {
    let w = world(64, 0);
    w.floor.sim().set_thp(ThpMode::Madvise);
    w.heap.pages().set_backing(HugeBacking::ALWAYS);
    w.heap.set_helped(true);
    let spans: Vec<_> = (0..32 * 8).map(|_| large(&w, 256 << 10)).collect();
    let (kept, gone): (Vec<_>, Vec<_>) = spans.into_iter().enumerate().partition(|(i, _)| i % 8 == 0);
    gone.into_iter().for_each(|(_, span)| w.give(span).unwrap());
    w.heap.relieve(0);
    w.heap.tick();
    let more: Vec<_> = (0..40).map(|_| large(&w, 256 << 10)).collect();
    let id = w.heap.begin_refill().expect("10 MiB more, beside broken hugepages");
    // Until it ends, other threads reach the limit.
    let limit = w.heap.used() + MIB;
    hard(&w, limit);
    assert!(w.heap.end_collapse(id, Ok(()), Took::busy(1000)));
    assert!(w.heap.used() <= limit, "{} of {limit} bytes", w.heap.used());
    w.heap.pages.lock().check().unwrap();
    kept.into_iter().map(|(_, span)| span).chain(more).for_each(|span| w.give(span).unwrap());
}

#[test]
fn l1_the_limit_can_be_used_to_its_last_page() {
    let w = world(16, 0);
    hard(&w, 5 * MIB + 8192);
    let (a, b) = (large(&w, 5 * MIB), large(&w, 8192 + 1));
    assert!(!a.is_null() && b.is_null());
    let b = large(&w, 8192);
    assert!(!b.is_null(), "the rest of its hugepage went back to the system");
    assert_eq!(w.heap.used(), 5 * MIB + 8192);
}

#[test]
fn l2_what_is_refused_leaves_what_is_in_use_as_it_was() {
    let w = world(32, 0);
    let before = large(&w, 9 * MIB);
    hard(&w, 16 * MIB);
    let in_use = w.heap.pages.lock().in_use();
    for _ in 0..10 {
        assert!(large(&w, 8 * MIB).is_null() && large(&w, 40 * MIB).is_null());
        let found = w.heap.find(before);
        assert_eq!(w.heap.resize(before, found, 17 << 20), None);
        assert_eq!(w.heap.find(before).usable(), Ok(9 << 20));
    }
    assert_eq!(w.heap.pages.lock().in_use(), in_use);
    assert_eq!(w.heap.gate.huge(), 0);
    assert_eq!(w.heap.resize(before, w.heap.find(before), 15 << 20), Some(before));
    assert!(w.heap.is_refused(2 << 20) && !w.heap.is_refused(1 << 20));
    w.give(before).unwrap();
    assert!(!large(&w, 15 * MIB).is_null());
}

#[test]
fn l2_where_the_system_takes_nothing_back_a_request_is_refused_and_undone() {
    let w = world(32, 0);
    w.heap.pages.lock().set_backing(HugeBacking::ALWAYS);
    let (a, b) = (large(&w, 6 * MIB), large(&w, 2 * MIB));
    w.give(a).unwrap();
    hard(&w, 10 * MIB);
    w.faults.set_only(Call::Unback, FaultRule::From(1));
    let in_use = w.heap.pages.lock().in_use();
    // The limit allows other spans only after a release.
    assert!(large(&w, 7 * MIB).is_null());
    assert_eq!(w.heap.pages.lock().in_use(), in_use);
    w.heap.pages.lock().check().unwrap();
    assert!(w.faults.refused() > 0);
    w.faults.set(FaultRule::Never);
    let c = large(&w, 7 * MIB);
    assert!(!c.is_null() && w.heap.used() <= 10 * MIB);
    w.give(b).unwrap();
    w.give(c).unwrap();
    w.empty();
}

#[test]
fn huge_objects_count_whole_and_make_free_memory_go() {
    let w = world(64, 0);
    let (a, b) = (large(&w, 20 * MIB), large(&w, MIB));
    w.give(a).unwrap();
    hard(&w, 50 * MIB);
    assert!(large(&w, 50 * MIB).is_null());
    let huge = large(&w, 48 * MIB);
    assert!(!huge.is_null() && w.heap.gate.huge() == 48 * MIB);
    assert!(w.heap.used() <= 50 * MIB, "{} bytes", w.heap.used());
    assert_eq!(w.heap.resize(huge, w.heap.find(huge), 60 << 20), None);
    assert_eq!(w.heap.find(huge).usable(), Ok(48 << 20));
    let huge = w.heap.resize(huge, w.heap.find(huge), 40 << 20).unwrap();
    assert_eq!(w.heap.gate.huge(), 40 * MIB);
    let huge = w.heap.resize(huge, w.heap.find(huge), 49 << 20).unwrap();
    w.give(huge).unwrap();
    assert_eq!(w.heap.gate.huge(), 0);
    w.give(b).unwrap();
    w.empty();
}

#[test]
fn a_hard_limit_below_what_is_in_use_refuses_more_until_enough_is_freed() {
    let w = world(32, 0);
    let objects: Vec<_> = (0..10).map(|_| large(&w, 2 * MIB)).collect();
    hard(&w, 10 * MIB);
    for (n, object) in objects.into_iter().enumerate() {
        let more = large(&w, MIB);
        assert_eq!(more.is_null(), n <= 5, "with {n} objects freed");
        if !more.is_null() {
            w.give(more).unwrap();
        }
        w.give(object).unwrap();
    }
    w.empty();
}

#[test]
fn relief_gives_back_what_is_needed_and_not_all() {
    let w = world(64, 0);
    w.heap.pages.lock().set_backing(HugeBacking::ALWAYS);
    let objects: Vec<_> = (0..40).map(|_| large(&w, MIB)).collect();
    objects.into_iter().for_each(|o| w.give(o).unwrap());
    let used = w.heap.used();
    assert!(used >= 15 * MIB, "the heap keeps some of what was freed: {used}");
    let (now, released) = w.heap.relieve(used - 3 * MIB);
    assert!(now <= used - 3 * MIB && now >= used - 6 * MIB, "{used} to {now}");
    assert_eq!(released << 13, used - now);
    assert_eq!(w.heap.relieve(now), (now, 0));
    assert_eq!(w.heap.relieve(0).0, 0);
    assert_eq!((w.heap.releasable(), w.heap.surplus()), (Pages(0), Pages(0)));
    w.heap.pages.lock().check().unwrap();
}

#[test]
fn somebody_is_to_look_when_the_soft_limit_is_passed_and_the_limit_counts_anew_below_it() {
    let w = world(64, 0);
    w.heap.gate.set(Some(10 * MIB), None);
    let a = large(&w, 8 * MIB);
    assert!(!w.heap.gate.is_outside(w.heap.used()));
    let b = large(&w, 4 * MIB);
    let used = w.heap.used();
    assert!(w.heap.gate.is_outside(used));
    w.heap.gate.rearm_above(used);
    assert!(!w.heap.gate.is_outside(used));
    w.give(b).unwrap();
    w.heap.relieve(0);
    // The heap saw its memory fall below the limit.
    assert!(w.heap.gate.is_outside(10 * MIB + 1) && w.heap.gate.low() == 0);
    w.give(a).unwrap();
}

#[test]
fn hugepages_are_not_collapsed_close_to_a_limit() {
    let w = world(64, 0);
    let a = large(&w, HugePages(10).bytes().0 as u64);
    assert!(w.heap.collapse_is_due());
    w.heap.gate.set(Some(24 * MIB), None);
    assert!(!w.heap.collapse_is_due());
    w.heap.gate.set(Some(64 * MIB), None);
    assert!(w.heap.collapse_is_due());
    w.give(a).unwrap();
}
