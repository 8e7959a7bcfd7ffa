//! A buddy allocator with per-CPU [`cache`]s for orders 0 to 3 and 9, as Linux 5.13 and later
//! (LLFree §2). As in Linux's `buddy_merge_likely`, a block whose next buddy is free goes to the
//! end of its list.
//!
//! A place's mark: 0 if allocated or not a block's first frame, 1 + order for a free block,
//! [`CACHED`] in a cache. The lock guards lists, marks of blocks, and the count.

mod cache;

use super::place::{Chain, Place, places};
use super::spin::{Held, Spin};
use super::{Frames, MAX_ORDER};
use cache::{Cache, Limits};
use craton_frames::Request;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

const CACHED: u32 = 0x100;

pub struct Buddy {
    zone: Zone,
    caches: Box<[Cache]>,
    limits: Limits,
}

struct Zone {
    places: Box<[Place]>,
    lock: Spin,
    orders: [Chain; MAX_ORDER as usize + 1],
    free: AtomicUsize,
}

impl Zone {
    fn chain(&self, order: u32) -> &Chain {
        &self.orders[order as usize]
    }

    fn mark(&self, frame: u32, mark: u32) {
        self.places[frame as usize].mark.store(mark, Relaxed);
    }

    fn is_block(&self, frame: u32, order: u32) -> bool {
        self.places.get(frame as usize).is_some_and(|place| place.mark.load(Relaxed) == 1 + order)
    }

    fn count(&self, change: impl Fn(usize) -> usize) {
        self.free.store(change(self.free.load(Relaxed)), Relaxed);
    }

    fn alloc(&self, _held: &Held<'_>, order: u32) -> Option<u32> {
        let (mut at, frame) = (order..=MAX_ORDER).find_map(|at| Some((at, self.chain(at).first()?)))?;
        self.chain(at).remove(&self.places, frame);
        self.mark(frame, 0);
        while at > order {
            at -= 1;
            let upper = frame + (1 << at);
            self.mark(upper, 1 + at);
            self.chain(at).push_first(&self.places, upper);
        }
        self.count(|free| free - (1 << order));
        Some(frame)
    }

    fn free(&self, _held: &Held<'_>, mut frame: u32, mut order: u32) {
        self.count(|free| free + (1 << order));
        while order < MAX_ORDER && self.is_block(frame ^ 1 << order, order) {
            let buddy = frame ^ 1 << order;
            self.chain(order).remove(&self.places, buddy);
            self.mark(buddy, 0);
            frame &= buddy;
            order += 1;
        }
        self.mark(frame, 1 + order);
        let parent = frame & !(1 << order);
        let will_join = order + 1 < MAX_ORDER && self.is_block(parent ^ 1 << (order + 1), order + 1);
        let chain = self.chain(order);
        if will_join { chain.push_last(&self.places, frame) } else { chain.push_first(&self.places, frame) }
    }
}

impl Buddy {
    pub fn new(frames: usize, processors: usize) -> Self {
        let orders = std::array::from_fn(|_| Chain::default());
        let zone = Zone { places: places(frames), lock: Spin::default(), orders, free: AtomicUsize::new(frames) };
        let mut at = 0;
        while at < frames {
            let fits = |order: &u32| at % (1 << order) == 0 && at + (1 << order) <= frames;
            let order = (0..=MAX_ORDER).rev().find(fits).unwrap_or(0);
            zone.mark(at as u32, 1 + order);
            zone.chain(order).push_last(&zone.places, at as u32);
            at += 1 << order;
        }
        let caches = (0..processors).map(|_| Cache::default()).collect();
        Self { zone, caches, limits: Limits::of(frames, processors) }
    }

    fn get_cached(&self, cache: &Cache, order: u32) -> Option<u32> {
        let _cache = cache.lock.lock();
        if let Some(frame) = cache.alloc(&self.zone.places, order) {
            return Some(frame);
        }
        let held = self.zone.lock.lock();
        for _ in 0..self.limits.blocks(order) {
            let Some(frame) = self.zone.alloc(&held, order) else { break };
            cache.refill(&self.zone.places, frame, order);
        }
        drop(held);
        cache.alloc(&self.zone.places, order)
    }

    fn flush(&self, cache: &Cache, frames: usize) {
        let held = self.zone.lock.lock();
        cache.flush(&self.zone.places, frames, |frame, order| self.zone.free(&held, frame, order));
    }
}

impl Frames for Buddy {
    fn get(&self, request: Request) -> Option<usize> {
        let (order, cache) = (request.order, self.caches.get(request.processor)?);
        if order > MAX_ORDER {
            return None;
        }
        let find = || {
            if Cache::has(order) {
                self.get_cached(cache, order)
            } else {
                let held = self.zone.lock.lock();
                self.zone.alloc(&held, order)
            }
        };
        let found = find().or_else(|| {
            // As under memory pressure: cached blocks may join.
            (0..self.caches.len()).for_each(|processor| self.drain(processor));
            find()
        });
        found.map(|frame| frame as usize)
    }

    fn put(&self, frame: usize, request: Request) -> bool {
        let order = request.order;
        let (Some(cache), Some(place)) = (self.caches.get(request.processor), self.zone.places.get(frame)) else {
            return false;
        };
        // Detected while the mark remains.
        if order > MAX_ORDER || !frame.is_multiple_of(1 << order) || place.mark.load(Relaxed) != 0 {
            return false;
        }
        if Cache::has(order) {
            let _cache = cache.lock.lock();
            if cache.put(&self.zone.places, frame as u32, order) >= self.limits.high {
                self.flush(cache, self.limits.batch);
            }
        } else {
            self.zone.free(&self.zone.lock.lock(), frame as u32, order);
        }
        true
    }

    fn drain(&self, processor: usize) {
        if let Some(cache) = self.caches.get(processor) {
            let _cache = cache.lock.lock();
            self.flush(cache, usize::MAX);
        }
    }

    fn free_frames(&self) -> usize {
        self.zone.free.load(Relaxed) + self.caches.iter().map(Cache::frames).sum::<usize>()
    }
}

#[cfg(test)]
mod tests;
