//! The patterns: what a measurement does over and over.
//!
//! **What.** The list of [`Pattern`]s with their names, and what each can be asked: which sizes, how many threads.
//! **Units.** An operation is the thing whose cost is reported: of most patterns one allocation and its free.
//! **Failure.** A name that is none is an error that lists those that are.

/// The largest size of an object, in bytes; the empty functions hand out memory of so much.
pub const MOST_BYTES: usize = 4 << 20;
/// What a pattern may keep allocated at a time: the 10,000 objects of a batch, and the cold ones.
pub const LIVE_BYTES: usize = 64 << 20;
/// Objects that [`Pattern::LiveRandom`] and [`Pattern::UsableSize`] keep.
pub const SLOTS: usize = 64;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Pattern {
    /// Allocates, writes a word, frees.
    Pair,
    /// As [`Pattern::Pair`], with a word written to each 4 KiB: what it costs that pages went back to the system.
    TouchedPair,
    /// Allocates so many objects, then frees them, the last one first.
    BatchLifo(usize),
    /// Allocates so many objects, then frees them, the first one first.
    BatchFifo(usize),
    /// Frees one of 64 objects at random and allocates another, of half to one and a half times the size.
    LiveRandom,
    /// The first objects of a process: allocated, every page of them written, never freed.
    Cold,
    /// Batches that one thread allocates and the next one frees.
    Remote,
    /// As [`Pattern::Pair`], by `calloc`.
    Calloc,
    /// From 16 bytes to the size, doubled by `realloc` each time, then freed: one operation.
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
            format!("{name:?} is no pattern; there are {}", names.join(", "))
        })
    }

    /// Whether the pattern makes sense with objects of `size` bytes, and keeps little enough memory.
    pub fn takes(self, size: usize) -> bool {
        match self {
            Self::BatchLifo(objects) | Self::BatchFifo(objects) => size.saturating_mul(objects) <= LIVE_BYTES,
            // Smaller ones have no page of their own.
            Self::TouchedPair => size >= 8 << 10,
            _ => true,
        }
    }

    /// Whether the pattern is worth running on so many threads: those that touch what threads share.
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
