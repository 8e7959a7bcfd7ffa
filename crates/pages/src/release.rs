//! How much memory goes back to the system, and when.
//!
//! **From.** TEMERAIRE §4.6: breaking is the last resort, since it cannot be undone cheaply.
//! [`AUTO_RATE`] is a quarter of the surplus's highest each second: all is gone 4 s after demand
//! forgot it.

use craton_base::{PAGE_SHIFT, PAGE_SIZE, Pages};

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Breaking {
    /// Only whole free hugepages.
    Never,
    /// What recent demand does not want back, less 1/32.
    Surplus,
    Always,
}

/// Nothing has changed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct TooMuch {
    pub asked: Pages,
    /// Can be released this way.
    pub there: Pages,
}

impl core::fmt::Display for TooMuch {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        write!(f, "{} pages were to be released, and {} can be", self.asked.0, self.there.0)
    }
}

#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Tick {
    /// Pages.
    pub released: u64,
    /// Hugepages.
    pub collapsed: u32,
    /// Only the step's bound stopped it.
    pub more: bool,
}

/// 0.5 ms of system calls, while other threads wait.
pub const STEP: Pages = Pages(512);

/// The last free pages cost many used ones their hugepage. On fleet profiles 1/16 holds up to 8.4 %
/// beyond spans, 1/32 at most 5.7 % for 1 to 4 % of the hugepages.
pub const MARGIN_PART: u32 = 32;

/// Follows the surplus.
pub const AUTO_RATE: u64 = u64::MAX;
/// Bytes a second, and the part of the highest surplus since there was none.
const AUTO_LEAST: u64 = 64 << 20;
const AUTO_PART: u64 = 4;

pub(crate) struct Release {
    /// As set, and in effect.
    set: u64,
    bytes_per_s: u64,
    last_ns: u64,
    /// Negative after releasing too much.
    due: i64,
    total: u64,
}

impl Release {
    pub(crate) const STILL: Self = Self { set: 0, bytes_per_s: 0, last_ns: 0, due: 0, total: 0 };

    pub(crate) fn set_rate(&mut self, bytes_per_s: u64, now_ns: u64) {
        let first = if bytes_per_s == AUTO_RATE { AUTO_LEAST } else { bytes_per_s };
        *self = Self { set: bytes_per_s, bytes_per_s: first, last_ns: now_ns, due: 0, total: self.total };
    }

    /// A debt lapses after a second, or a page's time.
    pub(crate) fn due(&mut self, now_ns: u64, surplus: Pages) -> Pages {
        if self.set == AUTO_RATE {
            let part = surplus.bytes().0 as u64 / AUTO_PART;
            self.bytes_per_s = if surplus.0 == 0 { AUTO_LEAST } else { self.bytes_per_s.max(part) };
        }
        let passed = now_ns.saturating_sub(core::mem::replace(&mut self.last_ns, now_ns));
        let more = u128::from(self.bytes_per_s) * u128::from(passed) / 1_000_000_000;
        let most = if self.bytes_per_s > 0 { self.bytes_per_s.max(PAGE_SIZE as u64) } else { 0 };
        let most = i64::try_from(most).unwrap_or(i64::MAX);
        self.due = self.due.saturating_add(i64::try_from(more).unwrap_or(i64::MAX)).min(most);
        Pages(u32::try_from((self.due >> PAGE_SHIFT).max(0)).unwrap_or(u32::MAX))
    }

    /// [`Self::count`] counts them too.
    pub(crate) fn paced(&mut self, pages: u64) {
        self.due = self.due.saturating_sub_unsigned(pages << PAGE_SHIFT);
    }

    pub(crate) fn count(&mut self, pages: u64) -> u64 {
        self.total += pages;
        pages
    }

    pub(crate) fn total(&self) -> u64 {
        self.total
    }

    pub(crate) fn surplus(in_use: Pages, free: Pages, wanted: Pages) -> Pages {
        let kept = wanted.0.saturating_add(wanted.0 / MARGIN_PART);
        Pages((in_use.0 + free.0).saturating_sub(kept).min(free.0))
    }
}

#[cfg(test)]
mod tests;
