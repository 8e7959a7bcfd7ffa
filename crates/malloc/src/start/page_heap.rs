//! The option `page_heap`: TEMERAIRE's, or one whose short spans LLFree's frames place. The frames'
//! zone and arrays are one permanent mapping: 66 bytes for each possible hugepage, 2 of them
//! touched at once. Without memory for it TEMERAIRE's serves.
//!
//! **Unsafe.** Lays arrays out in a mapping.

use core::sync::atomic::{AtomicBool, AtomicU8, Ordering::Relaxed};
use craton_base::HugePages;
use craton_base::atomic::{AtomicU16, AtomicU32, AtomicU64};
use craton_frames::{Config, Init, Local, Metadata, Seat, Sizes, Zone};
use craton_heap::page_heap::Frames;
use craton_os::{mapping, process};

/// 1 TiB.
const MOST: HugePages = HugePages(1 << 19);

const TEMERAIRE: &[u8] = b"temeraire";
const FRAMES: &[u8] = b"frames";

const NOTHING: u8 = 0;
const HAS_TEMERAIRE: u8 = 1;
const HAS_FRAMES: u8 = 2;

pub(crate) struct Choice {
    wants_frames: AtomicBool,
    is_asked: AtomicBool,
    has: AtomicU8,
}

impl Choice {
    pub(crate) const fn new() -> Self {
        Self { wants_frames: AtomicBool::new(false), is_asked: AtomicBool::new(false), has: AtomicU8::new(NOTHING) }
    }

    /// `false` for unknown names, and once another page heap exists.
    pub(crate) fn set(&self, value: &[u8]) -> bool {
        if value != TEMERAIRE && value != FRAMES {
            return false;
        }
        let wants = value == FRAMES;
        match self.has.load(Relaxed) {
            NOTHING => {
                self.wants_frames.store(wants, Relaxed);
                self.is_asked.store(true, Relaxed);
                true
            }
            has => wants == (has == HAS_FRAMES),
        }
    }

    /// The actual page heap, or the requested one before.
    pub(crate) fn name(&self) -> &'static str {
        let frames = match self.has.load(Relaxed) {
            NOTHING => self.wants_frames.load(Relaxed),
            has => has == HAS_FRAMES,
        };
        if frames { "frames" } else { "temeraire" }
    }

    /// If unset, `find` reads the environment's values.
    pub(crate) fn wants_frames(&self, find: impl FnOnce(&dyn Fn(&[u8]))) -> bool {
        if !self.is_asked.load(Relaxed) {
            find(&|value| _ = self.set(value));
        }
        self.wants_frames.load(Relaxed)
    }

    pub(crate) fn record(&self, frames: bool) {
        self.has.store(if frames { HAS_FRAMES } else { HAS_TEMERAIRE }, Relaxed);
    }
}

pub(crate) fn capacity(wanted: HugePages) -> HugePages {
    wanted.min(MOST)
}

const fn bytes<T>(len: usize) -> usize {
    (len * size_of::<T>()).next_multiple_of(64)
}

/// All offline; returns the bytes touched at once, and per hugepage.
pub(crate) fn frames(capacity: HugePages) -> Option<(Frames, [usize; 2])> {
    type ZoneOfPages = Zone<'static, craton_frames::Pages>;
    let pages = capacity.pages().0 as usize;
    let sizes = Sizes::of::<craton_frames::Pages>(pages, 1);
    let rows = bytes::<AtomicU64>(sizes.rows);
    let rest = bytes::<AtomicU32>(sizes.children)
        + bytes::<AtomicU16>(sizes.trees)
        + bytes::<AtomicU64>(sizes.index)
        + bytes::<Local>(sizes.locals)
        + bytes::<ZoneOfPages>(1);
    let page = process::page_size();
    let mut at = mapping::map((rows + rest).next_multiple_of(page), page)?;
    let mut next = |bytes: usize| {
        at += bytes;
        at - bytes
    };
    /// # Safety
    /// `len` zeros lie at `at`, aligned, for ever; zero is a value of the type.
    unsafe fn array<T>(at: usize, len: usize) -> &'static [T] {
        // SAFETY: by the contract.
        unsafe { core::slice::from_raw_parts(at as *const T, len) }
    }
    // SAFETY: zeros, ours for ever; each part has the length counted above and starts a cache line.
    // Zero is valid for atomics, hence for a `Local`.
    let metadata = unsafe {
        Metadata {
            rows: array(next(rows), sizes.rows),
            children: array(next(bytes::<AtomicU32>(sizes.children)), sizes.children),
            trees: array(next(bytes::<AtomicU16>(sizes.trees)), sizes.trees),
            index: array(next(bytes::<AtomicU64>(sizes.index)), sizes.index),
            locals: array(next(bytes::<Local>(sizes.locals)), sizes.locals),
        }
    };
    // A CPU's claims would keep hugepages online.
    let config = Config { claims: false, ..Config::new(1) };
    let zone = ZoneOfPages::new(pages, metadata, Init::Offline, config).ok()?;
    let place = next(bytes::<ZoneOfPages>(1)) as *mut ZoneOfPages;
    // SAFETY: as above; the place is counted in and unshared.
    let zone = unsafe {
        place.write(zone);
        &*place
    };
    let frames = Seat::new(zone, 0).ok()?;
    Some((frames, [rest, rows / capacity.0.max(1) as usize]))
}

#[cfg(test)]
mod tests;
