//! The list allocators of LLFree §5.4: free blocks of one order, linked in their [`Place`]s. Double
//! frees go unnoticed.
//!
//! [`Locked`]: one head under a lock ("Windows, Darwin"). [`Cas`]: Treiber's lock-free stack
//! (1986). Its head is block 32 · tag 32; each change increments the tag against ABA: 2^32 changes
//! during one operation could go unseen. [`Local`]: a list for each processor, used by one thread
//! at a time, unchecked ("ideal case").

use super::Frames;
use super::place::{NONE, Place, blocks_down, places};
use super::spin::Spin;
use craton_frames::Request;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

pub trait Heads: Sync {
    fn pop(&self, places: &[Place], processor: usize) -> Option<u32>;

    /// False: the processor has no list.
    fn push(&self, places: &[Place], processor: usize, block: u32) -> bool;

    fn firsts(&self) -> Vec<u32>;
}

pub struct List<H> {
    places: Box<[Place]>,
    order: u32,
    heads: H,
}

impl<H: Heads> List<H> {
    /// The lowest first, in equal parts.
    pub fn new(frames: usize, order: u32, heads: H) -> Self {
        let list = Self { places: places(frames), order, heads };
        let each = (frames >> order).div_ceil(list.heads.firsts().len().max(1)).max(1);
        for block in blocks_down(frames, order) {
            list.heads.push(&list.places, (block as usize >> order) / each, block);
        }
        list
    }
}

impl<H: Heads> Frames for List<H> {
    #[inline]
    fn get(&self, request: Request) -> Option<usize> {
        if request.order != self.order {
            return None;
        }
        self.heads.pop(&self.places, request.processor).map(|block| block as usize)
    }

    #[inline]
    fn put(&self, frame: usize, request: Request) -> bool {
        let is_ours = request.order == self.order && frame < self.places.len();
        is_ours && self.heads.push(&self.places, request.processor, frame as u32)
    }

    fn drain(&self, _: usize) {}

    fn free_frames(&self) -> usize {
        let next = |block: &u32| Some(self.places.get(*block as usize)?.next.load(Ordering::Relaxed));
        let blocks = |first| std::iter::successors(Some(first), next).count() - 1;
        self.heads.firsts().into_iter().map(blocks).sum::<usize>() << self.order
    }
}

#[repr(align(64))]
pub struct First(AtomicU32);

impl First {
    #[inline]
    fn pop(&self, places: &[Place]) -> Option<u32> {
        let block = self.0.load(Ordering::Relaxed);
        let next = places.get(block as usize)?.next.load(Ordering::Relaxed);
        self.0.store(next, Ordering::Relaxed);
        Some(block)
    }

    #[inline]
    fn push(&self, places: &[Place], block: u32) {
        places[block as usize].next.store(self.0.load(Ordering::Relaxed), Ordering::Relaxed);
        self.0.store(block, Ordering::Relaxed);
    }
}

impl Default for First {
    fn default() -> Self {
        Self(AtomicU32::new(NONE))
    }
}

#[derive(Default)]
pub struct Locked {
    lock: Spin,
    first: First,
}

impl Heads for Locked {
    #[inline]
    fn pop(&self, places: &[Place], _: usize) -> Option<u32> {
        let _held = self.lock.lock();
        self.first.pop(places)
    }

    #[inline]
    fn push(&self, places: &[Place], _: usize, block: u32) -> bool {
        let _held = self.lock.lock();
        self.first.push(places, block);
        true
    }

    fn firsts(&self) -> Vec<u32> {
        vec![self.first.0.load(Ordering::Relaxed)]
    }
}

pub struct Local(Box<[First]>);

impl Local {
    pub fn new(processors: usize) -> Self {
        Self((0..processors).map(|_| First::default()).collect())
    }
}

impl Heads for Local {
    #[inline]
    fn pop(&self, places: &[Place], processor: usize) -> Option<u32> {
        self.0.get(processor)?.pop(places)
    }

    #[inline]
    fn push(&self, places: &[Place], processor: usize, block: u32) -> bool {
        self.0.get(processor).map(|first| first.push(places, block)).is_some()
    }

    fn firsts(&self) -> Vec<u32> {
        self.0.iter().map(|first| first.0.load(Ordering::Relaxed)).collect()
    }
}

#[repr(align(64))]
pub struct Cas(AtomicU64);

impl Default for Cas {
    fn default() -> Self {
        Self(AtomicU64::new(NONE.into()))
    }
}

impl Cas {
    fn after(before: u64, first: u32) -> u64 {
        u64::from(first) | (before >> 32).wrapping_add(1) << 32
    }
}

impl Heads for Cas {
    #[inline]
    fn pop(&self, places: &[Place], _: usize) -> Option<u32> {
        // ORDERING: pairs with the Release of `push`.
        let mut head = self.0.load(Ordering::Acquire);
        loop {
            let next = places.get(head as u32 as usize)?.next.load(Ordering::Relaxed);
            // ORDERING: pairs with the Release of `push`.
            match self.0.compare_exchange_weak(head, Self::after(head, next), Ordering::Acquire, Ordering::Acquire) {
                Ok(_) => return Some(head as u32),
                Err(now) => head = now,
            }
        }
    }

    #[inline]
    fn push(&self, places: &[Place], _: usize, block: u32) -> bool {
        let mut head = self.0.load(Ordering::Relaxed);
        loop {
            places[block as usize].next.store(head as u32, Ordering::Relaxed);
            // ORDERING: pairs with the Acquires of `pop`; every change of the head is a
            // read-modify-write, so that later ones keep this one visible.
            match self.0.compare_exchange_weak(head, Self::after(head, block), Ordering::Release, Ordering::Relaxed) {
                Ok(_) => return true,
                Err(now) => head = now,
            }
        }
    }

    fn firsts(&self) -> Vec<u32> {
        vec![self.0.load(Ordering::Relaxed) as u32]
    }
}

#[cfg(test)]
mod tests;
