//! A processor's cache of recently freed blocks (LLFree §2), with Linux 6.0's sizes: a batch is 63
//! frames, 2 blocks at least; the high mark is the zone's low watermark, 5/4 of √(16 · KiB) KiB, by
//! processors, four batches at least.

use super::CACHED;
use crate::frames::place::{Chain, Place};
use crate::frames::spin::Spin;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

const ORDERS: [u32; 5] = [0, 1, 2, 3, 9];
const BATCH: usize = 63;
const LEAST_BLOCKS: usize = 2;
const LEAST_BATCHES: usize = 4;

/// In frames.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    pub batch: usize,
    pub high: usize,
}

impl Limits {
    pub fn of(frames: usize, processors: usize) -> Self {
        let least_kib = (16 * 4 * frames).isqrt();
        let low_frames = least_kib / 4 * 5 / 4;
        Self { batch: BATCH, high: (low_frames / processors.max(1)).max(LEAST_BATCHES * BATCH) }
    }

    pub fn blocks(&self, order: u32) -> usize {
        (self.batch >> order).max(LEAST_BLOCKS)
    }
}

/// Its methods need its lock.
#[derive(Debug, Default)]
#[repr(align(64))]
pub struct Cache {
    pub lock: Spin,
    lists: [Chain; ORDERS.len()],
    frames: AtomicUsize,
}

fn list_of(order: u32) -> usize {
    if order < 4 { order as usize } else { ORDERS.len() - 1 }
}

impl Cache {
    pub fn has(order: u32) -> bool {
        ORDERS.contains(&order)
    }

    pub fn frames(&self) -> usize {
        self.frames.load(Relaxed)
    }

    fn count(&self, change: impl Fn(usize) -> usize) -> usize {
        let frames = change(self.frames());
        self.frames.store(frames, Relaxed);
        frames
    }

    pub fn alloc(&self, places: &[Place], order: u32) -> Option<u32> {
        let list = &self.lists[list_of(order)];
        let frame = list.first()?;
        list.remove(places, frame);
        places[frame as usize].mark.store(0, Relaxed);
        self.count(|frames| frames - (1 << order));
        Some(frame)
    }

    /// Behind others: blocks are allocated in order.
    pub fn refill(&self, places: &[Place], frame: u32, order: u32) {
        places[frame as usize].mark.store(CACHED, Relaxed);
        self.lists[list_of(order)].push_last(places, frame);
        self.count(|frames| frames + (1 << order));
    }

    pub fn put(&self, places: &[Place], frame: u32, order: u32) -> usize {
        places[frame as usize].mark.store(CACHED, Relaxed);
        self.lists[list_of(order)].push_first(places, frame);
        self.count(|frames| frames + (1 << order))
    }

    /// Of each list in turn the oldest block.
    pub fn flush(&self, places: &[Place], frames: usize, to: impl Fn(u32, u32)) {
        let mut given = 0;
        let blocks = ORDERS.iter().zip(&self.lists).cycle();
        for (order, list) in blocks {
            if given >= frames || self.frames() == 0 {
                return;
            }
            let Some(frame) = list.last() else { continue };
            list.remove(places, frame);
            places[frame as usize].mark.store(0, Relaxed);
            self.count(|frames| frames - (1 << order));
            given += 1 << order;
            to(frame, *order);
        }
    }
}
