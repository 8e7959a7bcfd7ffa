//! The memory that recent demand will want back.
//!
//! **From.** Adaptive hugepage subrelease (Maas et al., ISMM 2021): memory that recent peaks want
//! back is not worth breaking hugepages for. The paper looks back 5 minutes, which a process that
//! falls idle never pays back.

/// Shorter swings keep their memory.
pub const DEMAND_S: u64 = 5;
const EPOCHS: usize = DEMAND_S as usize;
const EPOCH_NS: u64 = 1_000_000_000;

#[derive(Clone, Copy)]
struct Epoch {
    /// The second's number plus 1; 0: unused.
    number: u32,
    high: u32,
}

pub(crate) struct Demand {
    high: u32,
    ring: [Epoch; EPOCHS],
}

impl Demand {
    pub(crate) const NONE: Self = Self { high: 0, ring: [Epoch { number: 0, high: 0 }; EPOCHS] };

    #[inline]
    pub(crate) fn record(&mut self, pages: u32) {
        self.high = self.high.max(pages);
    }

    /// Call before each query, and every second.
    pub(crate) fn fold(&mut self, pages: u32, now_ns: u64) {
        let number = number_of(now_ns);
        let slot = &mut self.ring[number as usize % EPOCHS];
        let before = if slot.number == number { slot.high } else { 0 };
        *slot = Epoch { number, high: before.max(self.high) };
        self.high = pages;
    }

    /// In pages.
    pub(crate) fn wanted(&self, now_ns: u64) -> u32 {
        let now = number_of(now_ns);
        let recent = |e: &&Epoch| e.number > 0 && u64::from(now.wrapping_sub(e.number)) < DEMAND_S;
        self.ring.iter().filter(recent).map(|e| e.high).max().unwrap_or(0)
    }
}

fn number_of(now_ns: u64) -> u32 {
    (now_ns / EPOCH_NS + 1) as u32
}

#[cfg(test)]
mod tests;
