//! The operations that a measurement repeats.

pub const MOST_BYTES: usize = 4 << 20;
/// Of the 10,000 objects of a batch, and of the cold ones.
pub const LIVE_BYTES: usize = 64 << 20;
pub const SLOTS: usize = 64;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Pattern {
    /// Allocates, writes a word, frees.
    Pair,
    /// A pair that writes a word in each 4 KiB: the cost of released pages.
    TouchedPair,
    /// Allocated, then freed, the last first.
    BatchLifo(usize),
    BatchFifo(usize),
    /// Frees one of 64 objects at random, and allocates one of 0.5 to 1.5 times the size.
    LiveRandom,
    /// A process's first objects: every page written, never freed.
    Cold,
    /// One thread allocates, the next frees.
    Remote,
    Calloc,
    ReallocGrow,
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

    pub fn takes(self, size: usize) -> bool {
        match self {
            Self::BatchLifo(objects) | Self::BatchFifo(objects) => size.saturating_mul(objects) <= LIVE_BYTES,
            // Smaller ones share pages.
            Self::TouchedPair => size >= 8 << 10,
            _ => true,
        }
    }

    pub fn runs_on(self, threads: usize) -> bool {
        match self {
            Self::Remote => threads > 1,
            Self::Pair | Self::LiveRandom | Self::BatchLifo(_) | Self::BatchFifo(_) => true,
            _ => threads == 1,
        }
    }

    pub fn remote_batch(size: usize) -> usize {
        (LIVE_BYTES / 16 / size.max(1)).clamp(16, 1000)
    }
}

#[cfg(test)]
mod tests;
