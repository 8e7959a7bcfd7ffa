//! ListCAS: free blocks in one list without a lock.
//!
//! **From.** LLFree §5.4 (2), "a LIFO lock-free list", which is Treiber's stack (1986).
//! **State.** The head is a word: block 32 · tag 32. Each change increments the tag, against ABA.
//! **Failure.** Does not notice a double free. 2^32 changes during one operation could go unseen.

use super::Frames;
use super::place::{NONE, Place, blocks_down, places};
use craton_frames::Request;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

/// The list's head, on a cache line of its own.
#[repr(align(64))]
struct Head(AtomicU64);

pub struct ListCas {
    places: Box<[Place]>,
    order: u32,
    head: Head,
}

/// The head after `before`, with another first block.
fn after(before: u64, first: u32) -> u64 {
    u64::from(first) | (before >> 32).wrapping_add(1) << 32
}

impl ListCas {
    /// All blocks of an order, the lowest first.
    pub fn new(frames: usize, order: u32) -> Self {
        let list = Self { places: places(frames), order, head: Head(AtomicU64::new(u64::from(NONE))) };
        blocks_down(frames, order).for_each(|block| list.push(block));
        list
    }

    fn next_of(&self, head: u64) -> Option<&AtomicU32> {
        self.places.get(head as u32 as usize).map(|place| &place.next)
    }

    fn push(&self, block: u32) {
        let place = &self.places[block as usize];
        let mut head = self.head.0.load(Ordering::Relaxed);
        loop {
            place.next.store(head as u32, Ordering::Relaxed);
            // ORDERING: pairs with the Acquires of `get`, which read the link; every change of the head is a read-modify-write,
            // so that later ones keep this one visible.
            match self.head.0.compare_exchange_weak(head, after(head, block), Ordering::Release, Ordering::Relaxed) {
                Ok(_) => return,
                Err(now) => head = now,
            }
        }
    }
}

impl Frames for ListCas {
    #[inline]
    fn get(&self, request: Request) -> Option<usize> {
        if request.order != self.order {
            return None;
        }
        // ORDERING: pairs with the Release of `push`.
        let mut head = self.head.0.load(Ordering::Acquire);
        loop {
            let next = self.next_of(head)?.load(Ordering::Relaxed);
            // ORDERING: pairs with the Release of `push`.
            match self.head.0.compare_exchange_weak(head, after(head, next), Ordering::Acquire, Ordering::Acquire) {
                Ok(_) => return Some(head as u32 as usize),
                Err(now) => head = now,
            }
        }
    }

    #[inline]
    fn put(&self, frame: usize, request: Request) -> bool {
        let is_ours = request.order == self.order && frame < self.places.len();
        if is_ours {
            self.push(frame as u32);
        }
        is_ours
    }

    fn drain(&self, _: usize) {}

    fn free_frames(&self) -> usize {
        let next = |head: &u64| Some(u64::from(self.next_of(*head)?.load(Ordering::Relaxed)));
        (std::iter::successors(Some(self.head.0.load(Ordering::Relaxed)), next).count() - 1) << self.order
    }
}

#[cfg(test)]
mod tests;
