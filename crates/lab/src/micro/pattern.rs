//! The patterns: the operations that a measurement repeats.
//!
//! **What.** [`Pattern`]s by name, with the sizes and numbers of threads for which each makes
//! sense.
//!
//! **Units.** An operation is what a figure is about: mostly one allocation and its free.
//!
//! **Failure.** An unknown name is an error that lists the known ones.

/// The largest object, in bytes; the empty functions return memory of this size.
pub const MOST_BYTES: usize = 4 << 20;
/// The most live bytes of a pattern: the 10,000 objects of a batch, and the cold ones.
pub const LIVE_BYTES: usize = 64 << 20;
/// Objects that [`Pattern::LiveRandom`] and [`Pattern::UsableSize`] keep.
pub const SLOTS: usize = 64;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Pattern {
    /// Allocates, writes a word, frees.
    Pair,
    /// As [`Pattern::Pair`], with a word written to each 4 KiB: the cost of pages that were
    /// released.
    TouchedPair,
    /// Allocates this number of objects, then frees them, the last one first.
    BatchLifo(usize),
    /// Allocates this number of objects, then frees them, the first one first.
    BatchFifo(usize),
    /// Frees one of 64 objects at random, and allocates another of 0.5 to 1.5 times the size.
    LiveRandom,
    /// A process's first objects: allocated, every page written, never freed.
    Cold,
    /// Batches that one thread allocates and the next one frees.
    Remote,
    /// As [`Pattern::Pair`], by `calloc`.
    Calloc,
    /// Doubles an object by `realloc` from 16 bytes to the size, then frees it: one operation.
    ReallocGrow,
    /// `malloc_usable_size` of 64 objects in turn: one operation is one call.
    UsableSize,
}

impl Pattern {
    pub const ALL: [Self; 12] = [
        Self::Pair,
        Self::TouchedPair,
        Self::BatchLifo(64),
        Self::BatchFifo(64),
        Self::BatchLifo(10_000),
        Self::BatchFifo(10_000),
        Self::LiveRandom,
        Self::Cold,
        Self::Remote,
        Self::Calloc,
        Self::ReallocGrow,
        Self::UsableSize,
    ];

    /// The name, as the program takes and tables show it.
    pub fn name(self) -> String {
        match self {
            Self::Pair => "pair".to_owned(),
            Self::TouchedPair => "touched-pair".to_owned(),
            Self::BatchLifo(objects) => format!("batch-lifo-{objects}"),
            Self::BatchFifo(objects) => format!("batch-fifo-{objects}"),
            Self::LiveRandom => "live-random".to_owned(),
            Self::Cold => "cold".to_owned(),
            Self::Remote => "remote".to_owned(),
            Self::Calloc => "calloc".to_owned(),
            Self::ReallocGrow => "realloc-grow".to_owned(),
            Self::UsableSize => "usable-size".to_owned(),
        }
    }

    pub fn find(name: &str) -> Result<Self, String> {
        Self::ALL.into_iter().find(|pattern| pattern.name() == name).ok_or_else(|| {
            let names: Vec<String> = Self::ALL.into_iter().map(Self::name).collect();
            format!("{name:?} is no pattern; patterns: {}", names.join(", "))
        })
    }

    /// Whether the pattern makes sense with objects of `size` bytes, within [`LIVE_BYTES`].
    pub fn takes(self, size: usize) -> bool {
        match self {
            Self::BatchLifo(objects) | Self::BatchFifo(objects) => size.saturating_mul(objects) <= LIVE_BYTES,
            // Smaller ones have no page to themselves.
            Self::TouchedPair => size >= 8 << 10,
            _ => true,
        }
    }

    /// Whether the pattern is interesting on this number of threads: it touches shared state.
    pub fn runs_on(self, threads: usize) -> bool {
        match self {
            Self::Remote => threads > 1,
            Self::Pair | Self::LiveRandom | Self::BatchLifo(_) | Self::BatchFifo(_) => true,
            _ => threads == 1,
        }
    }

    /// Objects in a batch of [`Pattern::Remote`].
    pub fn remote_batch(size: usize) -> usize {
        (LIVE_BYTES / 16 / size.max(1)).clamp(16, 1000)
    }
}

#[cfg(test)]
mod tests;
