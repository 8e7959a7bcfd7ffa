//! ListLocal: a list of free blocks for each processor, without any protection.
//!
//! **From.** LLFree §5.4 (3): "a theoretical allocator that maintains per-core lists only, does not
//! need any protection and never drains (ideal case)".
//! **State.** Blocks of one order, at first in equal parts; a freed one joins the list of its
//! processor.
//! **Threads.** One thread at a time uses a processor's list; nothing checks that.
//! **Failure.** A processor whose list is empty gets nothing. Does not notice a double free.

use super::Frames;
use super::place::{NONE, Place, blocks_down, places};
use craton_frames::Request;
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};

/// A list's first block, on a cache line of its own.
#[repr(align(64))]
struct First(AtomicU32);

pub struct ListLocal {
    places: Box<[Place]>,
    order: u32,
    lists: Box<[First]>,
}

impl ListLocal {
    /// All blocks of an order; the first processor has the lowest.
    pub fn new(frames: usize, order: u32, processors: usize) -> Self {
        let lists = (0..processors).map(|_| First(AtomicU32::new(NONE))).collect();
        let local = Self { places: places(frames), order, lists };
        let each = (frames >> order).div_ceil(processors.max(1)).max(1);
        for block in blocks_down(frames, order) {
            local.push(&local.lists[(block as usize >> order) / each], block);
        }
        local
    }

    #[inline]
    fn push(&self, list: &First, block: u32) {
        self.places[block as usize].next.store(list.0.load(Relaxed), Relaxed);
        list.0.store(block, Relaxed);
    }
}

impl Frames for ListLocal {
    #[inline]
    fn get(&self, request: Request) -> Option<usize> {
        let list = self.lists.get(request.processor).filter(|_| request.order == self.order)?;
        let block = list.0.load(Relaxed);
        let next = self.places.get(block as usize)?.next.load(Relaxed);
        list.0.store(next, Relaxed);
        Some(block as usize)
    }

    #[inline]
    fn put(&self, frame: usize, request: Request) -> bool {
        match self.lists.get(request.processor) {
            Some(list) if request.order == self.order && frame < self.places.len() => {
                self.push(list, frame as u32);
                true
            }
            _ => false,
        }
    }

    fn drain(&self, _: usize) {}

    fn free_frames(&self) -> usize {
        let next = |block: &u32| Some(self.places.get(*block as usize)?.next.load(Relaxed));
        let blocks = |list: &First| std::iter::successors(Some(list.0.load(Relaxed)), next).count() - 1;
        self.lists.iter().map(blocks).sum::<usize>() << self.order
    }
}
