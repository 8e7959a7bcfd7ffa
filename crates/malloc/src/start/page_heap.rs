//! Which page heap there is: TEMERAIRE's, or one in which LLFree's frames say where short spans go.
//!
//! **What.** The option `page_heap`, and what frames need. A heap begins with the first request, often before the library is told its
//! options: so this one is looked up in the environment then.
//!
//! **State.** The zone of frames and its arrays are one mapping for ever: 66 bytes for each hugepage that the heap may have, of which 2
//! are touched at once, the others where hugepages come into use.
//!
//! **Failure.** Without memory for that the page heap is TEMERAIRE's.
//!
//! **Unsafe.** Lays arrays out in a mapping of its own.

use core::sync::atomic::{AtomicBool, AtomicU8, Ordering::Relaxed};
use craton_base::HugePages;
use craton_base::atomic::{AtomicU16, AtomicU32, AtomicU64};
use craton_frames::{Config, Init, Local, Metadata, Seat, Sizes, Zone};
use craton_heap::page_heap::Frames;
use craton_os::{mapping, process};

/// The heap's largest size with frames: 1 TiB.
const MOST: HugePages = HugePages(1 << 19);

/// The names.
const TEMERAIRE: &[u8] = b"temeraire";
const FRAMES: &[u8] = b"frames";

const NOTHING: u8 = 0;
const HAS_TEMERAIRE: u8 = 1;
const HAS_FRAMES: u8 = 2;

/// Which page heap is wanted, and which there is.
pub(crate) struct Choice {
    /// What was asked for, and whether anything was.
    wants_frames: AtomicBool,
    is_asked: AtomicBool,
    /// What there is.
    has: AtomicU8,
}

impl Choice {
    /// Before the heap is set up.
    pub(crate) const fn new() -> Self {
        Self { wants_frames: AtomicBool::new(false), is_asked: AtomicBool::new(false), has: AtomicU8::new(NOTHING) }
    }

    /// Sets the option. `false` for what is no page heap, and once there is another one.
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

    /// The page heap's name; before there is one, of that which will be.
    pub(crate) fn name(&self) -> &'static str {
        let frames = match self.has.load(Relaxed) {
            NOTHING => self.wants_frames.load(Relaxed),
            has => has == HAS_FRAMES,
        };
        if frames { "frames" } else { "temeraire" }
    }

    /// Whether frames are wanted. Unless the option was set, `find` looks it up: it calls its argument with each value.
    pub(crate) fn wants_frames(&self, find: impl FnOnce(&dyn Fn(&[u8]))) -> bool {
        if !self.is_asked.load(Relaxed) {
            find(&|value| _ = self.set(value));
        }
        self.wants_frames.load(Relaxed)
    }

    /// Notes which page heap there is.
    pub(crate) fn note(&self, frames: bool) {
        self.has.store(if frames { HAS_FRAMES } else { HAS_TEMERAIRE }, Relaxed);
    }
}

/// The capacity of a heap with frames, if it could have so much.
pub(crate) fn capacity(wanted: HugePages) -> HugePages {
    wanted.min(MOST)
}

/// Bytes of an array.
const fn bytes<T>(len: usize) -> usize {
    (len * size_of::<T>()).next_multiple_of(64)
}

/// Frames for a heap of so many hugepages, all of them offline, and the bytes that they take at once and for each hugepage in use.
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
    // The zone is for this mapping alone, so that arrays follow each other.
    let mut next = |bytes: usize| {
        at += bytes;
        at - bytes
    };
    /// # Safety
    /// `len` zeros of a type for which zeros are values lie at `at`, aligned, for ever.
    unsafe fn array<T>(at: usize, len: usize) -> &'static [T] {
        // SAFETY: by the contract.
        unsafe { core::slice::from_raw_parts(at as *const T, len) }
    }
    // SAFETY: the mapping is zero, and ours for ever; each part is as long as was counted above and begins with a cache line. Atomics of
    // zero are values, and a `Local` is made of them.
    let metadata = unsafe {
        Metadata {
            rows: array(next(rows), sizes.rows),
            children: array(next(bytes::<AtomicU32>(sizes.children)), sizes.children),
            trees: array(next(bytes::<AtomicU16>(sizes.trees)), sizes.trees),
            index: array(next(bytes::<AtomicU64>(sizes.index)), sizes.index),
            locals: array(next(bytes::<Local>(sizes.locals)), sizes.locals),
        }
    };
    // What a processor claims would keep hugepages from going offline.
    let config = Config { claims: false, ..Config::new(1) };
    let zone = ZoneOfPages::new(pages, metadata, Init::Offline, config).ok()?;
    let place = next(bytes::<ZoneOfPages>(1)) as *mut ZoneOfPages;
    // SAFETY: as above, the place is counted in and nobody else's.
    let zone = unsafe {
        place.write(zone);
        &*place
    };
    let frames = Seat::new(zone, 0).ok()?;
    Some((frames, [rest, rows / capacity.0.max(1) as usize]))
}

#[cfg(test)]
mod tests;
