//! Stands for a frame's memory, or for Linux's `struct page`: a cache line (LLFree §5.4). The
//! chain's lock orders all accesses.

use std::sync::atomic::{AtomicU32, Ordering::Relaxed};

pub const NONE: u32 = u32::MAX;

#[derive(Debug)]
#[repr(align(64))]
pub struct Place {
    pub next: AtomicU32,
    pub previous: AtomicU32,
    /// 0 at first.
    pub mark: AtomicU32,
}

/// Written, so that no page is untouched when measured.
pub fn places(frames: usize) -> Box<[Place]> {
    let place = |_| Place { next: AtomicU32::new(NONE), previous: AtomicU32::new(NONE), mark: AtomicU32::new(0) };
    (0..frames).map(place).collect()
}

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

    pub fn remove(&self, places: &[Place], frame: u32) {
        let place = &places[frame as usize];
        let (previous, next) = (place.previous.load(Relaxed), place.next.load(Relaxed));
        self.next_of(places, previous).store(next, Relaxed);
        self.previous_of(places, next).store(previous, Relaxed);
    }

    fn next_of<'a>(&'a self, places: &'a [Place], frame: u32) -> &'a AtomicU32 {
        if frame == NONE { &self.first } else { &places[frame as usize].next }
    }

    fn previous_of<'a>(&'a self, places: &'a [Place], frame: u32) -> &'a AtomicU32 {
        if frame == NONE { &self.last } else { &places[frame as usize].previous }
    }

    #[cfg(test)]
    pub fn iter<'a>(&self, places: &'a [Place]) -> impl Iterator<Item = u32> + 'a {
        let next = |frame: &u32| Some(places[*frame as usize].next.load(Relaxed)).filter(|frame| *frame != NONE);
        std::iter::successors(self.first(), next)
    }
}

#[cfg(test)]
mod tests;
