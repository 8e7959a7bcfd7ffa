//! How much memory goes back to the system, and when.
//!
//! **From.** TEMERAIRE §4.6: whole free hugepages first; breaking hugepages up is the last resort,
//! since it cannot be undone cheaply. What recent demand will want back stays unless all is asked
//! for ([`crate::demand`]). By itself memory goes back at a rate: whole hugepages are more than was
//! due, and the next ticks release less for it.
//!
//! **Not here.** Which pages go: [`crate::huge_cache`], [`crate::filler`] and [`crate::region`]
//! choose them.

use craton_base::{PAGE_SHIFT, PAGE_SIZE, Pages};

/// How far a release may go.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Breaking {
    /// Whole free hugepages only.
    Never,
    /// Hugepages may be broken up for what recent demand will not want back, less a sixteenth.
    Surplus,
    /// All free pages may go.
    Always,
}

/// More was to be released than there is. Nothing has changed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct TooMuch {
    /// Pages asked for.
    pub asked: Pages,
    /// Pages that can be released in this way.
    pub there: Pages,
}

impl core::fmt::Display for TooMuch {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        write!(f, "{} pages were to be released, and {} can be", self.asked.0, self.there.0)
    }
}

/// The work of a tick.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Tick {
    /// Pages that lost their memory.
    pub released: u64,
    /// Hugepages that were collapsed.
    pub collapsed: u32,
    /// More is due; nothing but the length of a step kept it.
    pub more: bool,
}

/// Pages that a step of a tick releases: with one system call each they take half a millisecond,
/// while others wait.
pub(crate) const STEP: Pages = Pages(512);

/// A sixteenth of the wanted pages stays on top of them: the last free pages between spans
/// are the dearest, since for each of them many used ones lose their hugepage.
const MARGIN_PART: u32 = 16;

/// The rate of release, and where it stands.
pub(crate) struct Release {
    bytes_per_s: u64,
    last_ns: u64,
    /// Bytes due; below 0 after more was released than was due.
    due: i64,
    /// Pages released since the start.
    total: u64,
}

impl Release {
    /// No memory goes back by itself.
    pub(crate) const STILL: Self = Self { bytes_per_s: 0, last_ns: 0, due: 0, total: 0 };

    /// How much goes back by itself from now on.
    pub(crate) fn set_rate(&mut self, bytes_per_s: u64, now_ns: u64) {
        *self = Self { bytes_per_s, last_ns: now_ns, due: 0, total: self.total };
    }

    /// The pages due now; what was not there to be released is not due for longer than a second, or
    /// than a page takes.
    pub(crate) fn due(&mut self, now_ns: u64) -> Pages {
        let passed = now_ns.saturating_sub(core::mem::replace(&mut self.last_ns, now_ns));
        let more = u128::from(self.bytes_per_s) * u128::from(passed) / 1_000_000_000;
        let most = if self.bytes_per_s > 0 { self.bytes_per_s.max(PAGE_SIZE as u64) } else { 0 };
        let most = i64::try_from(most).unwrap_or(i64::MAX);
        self.due = self.due.saturating_add(i64::try_from(more).unwrap_or(i64::MAX)).min(most);
        Pages(u32::try_from((self.due >> PAGE_SHIFT).max(0)).unwrap_or(u32::MAX))
    }

    /// Counts pages that went back by the rate; [`Self::count`] has them too.
    pub(crate) fn paced(&mut self, pages: u64) {
        self.due = self.due.saturating_sub_unsigned(pages << PAGE_SHIFT);
    }

    /// Counts pages that lost their memory; returns them.
    pub(crate) fn count(&mut self, pages: u64) -> u64 {
        self.total += pages;
        pages
    }

    pub(crate) fn total(&self) -> u64 {
        self.total
    }

    /// Of `free` pages with memory beside `in_use` others, those that demand will not want back.
    pub(crate) fn surplus(in_use: Pages, free: Pages, wanted: Pages) -> Pages {
        let kept = wanted.0.saturating_add(wanted.0 / MARGIN_PART);
        Pages((in_use.0 + free.0).saturating_sub(kept).min(free.0))
    }
}

#[cfg(test)]
mod tests;
