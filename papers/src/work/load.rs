#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Load {
    /// At least 1.
    pub threads: usize,
    /// At least 1.
    pub percent: u64,
    pub seed: u64,
}

pub const QUICK: u64 = 5;
pub const FULL: u64 = 100;
pub const SEED: u64 = 1;

impl Load {
    pub(crate) fn numbers(&self) -> std::ops::Range<u64> {
        0..self.threads as u64
    }

    /// Of each thread.
    pub(crate) fn share(&self, full: u64) -> u64 {
        self.of(full).div_ceil(self.threads as u64)
    }

    /// At least 1.
    pub fn of(&self, full: u64) -> u64 {
        u64::try_from(u128::from(full) * u128::from(self.percent) / 100).unwrap_or(u64::MAX).max(1)
    }
}
