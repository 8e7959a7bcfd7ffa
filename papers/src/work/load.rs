//! How much a workload is asked to do.

/// The request to a workload.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Load {
    /// Threads that share the work, at least 1; ignored by workloads with one thread.
    pub threads: usize,
    /// Amount of work in percent of the full one, at least 1.
    pub percent: u64,
    /// Where the random numbers start.
    pub seed: u64,
}

/// The amount of a quick run, in percent.
pub const QUICK: u64 = 5;
/// The amount of a full run, in percent.
pub const FULL: u64 = 100;
/// The seed of the standard loads.
pub const SEED: u64 = 1;

impl Load {
    /// The numbers of the threads.
    pub(crate) fn numbers(&self) -> std::ops::Range<u64> {
        0..self.threads as u64
    }

    /// The share of each thread in `full` units of work.
    pub(crate) fn share(&self, full: u64) -> u64 {
        self.of(full).div_ceil(self.threads as u64)
    }

    /// This load's part of `full` units of work, at least 1.
    pub fn of(&self, full: u64) -> u64 {
        u64::try_from(u128::from(full) * u128::from(self.percent) / 100).unwrap_or(u64::MAX).max(1)
    }
}
