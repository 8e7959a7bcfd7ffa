//! Spans between threads: none has two owners or is lost, and a user sees the previous one's
//! writes.
//!
//! **Unsafe.** Cells whose races loom detects stand for a span's pages.
#![cfg(loom)]

use craton_base::atomic::model::{check, check_weakened};
use craton_base::loom::cell::UnsafeCell;
use craton_base::loom::thread;
use craton_base::{Density, PageId, PageRange, Pages};
use craton_pages::SpanCache;
use std::sync::Arc;

const ONE: Pages = Pages(1);
const SPANS: u32 = 3;

struct World {
    cache: SpanCache,
    pages: [UnsafeCell<u32>; SPANS as usize],
}

impl World {
    #[allow(clippy::arc_with_non_send_sync)] // loom's threads share what its cells look after.
    fn new() -> Arc<Self> {
        let world = Self { cache: SpanCache::EMPTY, pages: std::array::from_fn(|_| UnsafeCell::new(0)) };
        assert_eq!(world.cache.pages(), Pages(0));
        Arc::new(world)
    }

    fn write(&self, span: PageRange) {
        // SAFETY: loom checks for exclusive access.
        self.pages[span.first.0 as usize].with_mut(|n| unsafe { *n += 1 });
    }

    fn put(&self, span: PageRange) -> u32 {
        self.write(span);
        u32::from(!self.cache.put(0, span, Density::Dense))
    }

    fn pop(&self) -> Option<PageRange> {
        let span = self.cache.pop(0, ONE, ONE, Density::Dense)?;
        self.write(span);
        Some(span)
    }

    fn drain(&self) -> u32 {
        let mut n = 0;
        self.cache.drain(|span, _| {
            self.write(span);
            n += span.len.0;
        });
        n
    }
}

fn span(n: u32) -> PageRange {
    PageRange::new(PageId(n), ONE)
}

fn three_hands() {
    let world = World::new();
    let mut out = world.put(span(0));
    let putter = {
        let world = Arc::clone(&world);
        thread::spawn(move || world.put(span(1)) + u32::from(world.pop().is_some()))
    };
    let drainer = {
        let world = Arc::clone(&world);
        thread::spawn(move || world.drain())
    };
    out += u32::from(world.pop().is_some());
    out += world.put(span(2));
    out += putter.join().unwrap() + drainer.join().unwrap();
    assert_eq!(out + world.drain(), SPANS, "each span is out once");
    assert_eq!(world.cache.pages(), Pages(0));
}

#[test]
fn a_span_is_in_one_hand_and_none_is_lost() {
    check(2, three_hands);
}

#[test]
fn two_takers_of_one_span_do_not_both_get_it() {
    check(4, || {
        let world = World::new();
        assert_eq!(world.put(span(0)), 0);
        let other = {
            let world = Arc::clone(&world);
            thread::spawn(move || world.pop().map(|span| world.put(span)))
        };
        let mine = world.pop().map(|span| world.put(span));
        let theirs = other.join().unwrap();
        assert!(mine.is_some() || theirs.is_some());
        assert_eq!(world.drain(), 1);
    });
}

#[test]
#[should_panic = "Causality violation"]
fn without_its_orderings_a_span_has_two_users() {
    check_weakened(2, three_hands);
}
