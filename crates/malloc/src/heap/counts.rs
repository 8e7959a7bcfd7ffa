//! Counts of refills, in each shard on a line of its own.
//!
//! **What.** Threads of different homes would pass the line of the process's segment back and forth with every refill. The segment hears
//! of a shard's refills in dozens; whoever reads the statistics through the library has all of them told first.
//!
//! **Threads.** Numbers that nobody decides by: models leave them out, and so must be spared what they do from run to run.
//!
//! **Units.** Refills; objects.

use super::Heap;
use crate::hooks::Hooks;
use crate::segment::{self, SEGMENT};
use core::sync::atomic::{AtomicU32, AtomicU64, Ordering::Relaxed};
use craton_base::{Clock, Floor};

/// Refills of which the segment hears at a time.
const DOZEN: u32 = 12;
/// The process's first refills are told one by one: a small program does not make more.
const FIRST: u64 = 1024;

/// Refills from one shard of which the segment has not heard.
#[repr(align(64))]
pub(super) struct Counts {
    refills: AtomicU32,
    objects: AtomicU64,
}

impl Counts {
    #[allow(clippy::declare_interior_mutable_const)] // A value to begin with: every use of it is a new one.
    pub(super) const NONE: Self = Self { refills: AtomicU32::new(0), objects: AtomicU64::new(0) };

    fn tell(&self) {
        segment::add(&SEGMENT.refills, self.refills.swap(0, Relaxed).into());
        segment::add(&SEGMENT.objects_out, self.objects.swap(0, Relaxed));
    }
}

impl<F: Floor, C: Clock, H: Hooks> Heap<F, C, H> {
    /// Counts a chain of `objects` that left for a cache.
    #[inline]
    pub(super) fn count_refill(&self, home: usize, objects: u32) {
        let counts = &self.shards[home].counts;
        counts.objects.fetch_add(objects.into(), Relaxed);
        let refills = counts.refills.fetch_add(1, Relaxed) + 1;
        if refills >= DOZEN || SEGMENT.refills.load(Relaxed) < FIRST {
            counts.tell();
        }
    }

    /// Tells the segment of all refills.
    pub(crate) fn tell_refills(&self) {
        self.shards().iter().for_each(|shard| shard.counts.tell());
    }

    /// Slabs of a class that have room and some object in use, and those that are complete.
    pub(crate) fn fullness(&self, class: usize) -> (u32, u32) {
        (0..self.shards().len()).fold((0, 0), |(partial, complete), home| {
            let slabs = self.slabs(home, class);
            (partial + slabs.partial(&self.layout().records), complete + slabs.complete())
        })
    }
}
