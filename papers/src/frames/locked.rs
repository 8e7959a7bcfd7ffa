//! ListLocked: free blocks in one list, whose head a lock guards.
//!
//! **From.** LLFree §5.4 (1): "a lock-based shared singly-linked list (Windows, Darwin)".
//! **Failure.** Does not notice a double free.

use super::Frames;
use super::place::{NONE, Place, blocks_down, places};
use super::spin::Spin;
use craton_frames::Request;
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};

pub struct ListLocked {
    places: Box<[Place]>,
    order: u32,
    lock: Spin,
    first: AtomicU32,
}

impl ListLocked {
    /// All blocks of an order, the lowest first.
    pub fn new(frames: usize, order: u32) -> Self {
        let list = Self { places: places(frames), order, lock: Spin::default(), first: AtomicU32::new(NONE) };
        blocks_down(frames, order).for_each(|block| list.push(block));
        list
    }

    fn push(&self, block: u32) {
        self.places[block as usize].next.store(self.first.load(Relaxed), Relaxed);
        self.first.store(block, Relaxed);
    }
}

impl Frames for ListLocked {
    #[inline]
    fn get(&self, request: Request) -> Option<usize> {
        if request.order != self.order {
            return None;
        }
        let _held = self.lock.lock();
        let block = self.first.load(Relaxed);
        let next = self.places.get(block as usize)?.next.load(Relaxed);
        self.first.store(next, Relaxed);
        Some(block as usize)
    }

    #[inline]
    fn put(&self, frame: usize, request: Request) -> bool {
        if request.order != self.order || frame >= self.places.len() {
            return false;
        }
        let _held = self.lock.lock();
        self.push(frame as u32);
        true
    }

    fn drain(&self, _: usize) {}

    fn free_frames(&self) -> usize {
        let next = |block: &u32| Some(self.places.get(*block as usize)?.next.load(Relaxed));
        (std::iter::successors(Some(self.first.load(Relaxed)), next).count() - 1) << self.order
    }
}
