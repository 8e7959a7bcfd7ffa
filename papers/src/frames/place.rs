//! Stands for the frames' memory, or for Linux's `struct page`: a cache line for each frame.
//!
//! **What.** A [`Place`] has two links and a mark. A [`Chain`] is a doubly linked list of them.
//!
//! **From.** LLFree §5.4: "All list allocators store their next pointers in a 64 B aligned array".
//!
//! **Threads.** All accesses are relaxed, since the chain's lock orders them.

use std::sync::atomic::{AtomicU32, Ordering::Relaxed};

/// The end of a list.
pub const NONE: u32 = u32::MAX;

/// The record of a free frame.
#[derive(Debug)]
#[repr(align(64))]
pub struct Place {
    /// The frame behind it in its list.
    pub next: AtomicU32,
    /// The frame before it.
    pub previous: AtomicU32,
    /// The allocator's mark; 0 at first.
    pub mark: AtomicU32,
}

/// A place for each frame, in no list. All are written, so that none is untouched when it is
/// measured.
pub fn places(frames: usize) -> Box<[Place]> {
    let place = |_| Place { next: AtomicU32::new(NONE), previous: AtomicU32::new(NONE), mark: AtomicU32::new(0) };
    (0..frames).map(place).collect()
}

/// The first frames of an order's blocks within this many frames, in descending order.
pub fn blocks_down(frames: usize, order: u32) -> impl Iterator<Item = u32> {
    (0..frames >> order).rev().map(move |block| (block << order) as u32)
}

#[derive(Debug)]
pub struct Chain {
    first: AtomicU32,
    last: AtomicU32,
}

impl Default for Chain {
    fn default() -> Self {
        Self { first: AtomicU32::new(NONE), last: AtomicU32::new(NONE) }
    }
}

impl Chain {
    pub fn first(&self) -> Option<u32> {
        Some(self.first.load(Relaxed)).filter(|frame| *frame != NONE)
    }

    pub fn last(&self) -> Option<u32> {
        Some(self.last.load(Relaxed)).filter(|frame| *frame != NONE)
    }

    pub fn push_first(&self, places: &[Place], frame: u32) {
        let next = self.first.load(Relaxed);
        self.link(places, NONE, frame, next);
    }

    pub fn push_last(&self, places: &[Place], frame: u32) {
        let previous = self.last.load(Relaxed);
        self.link(places, previous, frame, NONE);
    }

    fn link(&self, places: &[Place], previous: u32, frame: u32, next: u32) {
        let place = &places[frame as usize];
        place.previous.store(previous, Relaxed);
        place.next.store(next, Relaxed);
        self.next_of(places, previous).store(frame, Relaxed);
        self.previous_of(places, next).store(frame, Relaxed);
    }

    /// Takes out a frame, which is in this chain.
    pub fn remove(&self, places: &[Place], frame: u32) {
        let place = &places[frame as usize];
        let (previous, next) = (place.previous.load(Relaxed), place.next.load(Relaxed));
        self.next_of(places, previous).store(next, Relaxed);
        self.previous_of(places, next).store(previous, Relaxed);
    }

    /// What says which frame is behind this one; behind none, the first is.
    fn next_of<'a>(&'a self, places: &'a [Place], frame: u32) -> &'a AtomicU32 {
        if frame == NONE { &self.first } else { &places[frame as usize].next }
    }

    fn previous_of<'a>(&'a self, places: &'a [Place], frame: u32) -> &'a AtomicU32 {
        if frame == NONE { &self.last } else { &places[frame as usize].previous }
    }

    /// First to last.
    #[cfg(test)]
    pub fn iter<'a>(&self, places: &'a [Place]) -> impl Iterator<Item = u32> + 'a {
        let next = |frame: &u32| Some(places[*frame as usize].next.load(Relaxed)).filter(|frame| *frame != NONE);
        std::iter::successors(self.first(), next)
    }
}

#[cfg(test)]
mod tests;
