//! A shard: the source of refills for the threads of one home.

mod complete;
mod counts;
mod transfer;
mod waiting;

pub(crate) use complete::Complete;
pub use complete::REUSES;
pub(crate) use counts::Counts;
pub use transfer::Transfer;
pub use waiting::Waiting;

use crate::shuffle::SharedRandom;
use crate::size_class::{self, CLASSES};
use craton_os::{Mutex, Rank};
use craton_slab::SlabCache;

/// More CPUs share them.
pub const SHARDS: usize = if cfg!(loom) { 2 } else { 16 };

/// 1 MiB: more costs more than it saves.
const MOST_COMPLETE: u32 = 128;

#[repr(align(128))]
pub(crate) struct Class(pub(crate) Mutex<SlabCache>);

// A starting program faults in its classes' pages.
const _: () = assert!(cfg!(any(loom, debug_assertions)) || size_of::<Class>() == 128);

pub(crate) struct Shard {
    pub(crate) classes: [Class; CLASSES],
    pub(crate) transfer: Transfer,
    pub(crate) complete: Complete,
    pub(crate) counts: Counts,
    /// Of a hardened heap.
    pub(crate) waiting: Waiting,
    pub(crate) random: SharedRandom,
}

impl Shard {
    #[allow(clippy::declare_interior_mutable_const)] // Each use makes a new one.
    pub(crate) const EMPTY: Self = Self {
        classes: [const { Class(Mutex::ranked(Rank::SizeClass, SlabCache::UNSET)) }; CLASSES],
        transfer: Transfer::EMPTY,
        complete: Complete::NONE,
        counts: Counts::NONE,
        waiting: Waiting::EMPTY,
        random: SharedRandom::NEW,
    };

    pub(crate) fn class(&self, class: usize) -> &Mutex<SlabCache> {
        &self.classes[class - 1].0
    }
}

pub(crate) fn fresh(class: usize) -> SlabCache {
    let geometry = size_class::geometry(class);
    SlabCache::keeping(geometry, (MOST_COMPLETE / geometry.pages.0) as u16)
}
