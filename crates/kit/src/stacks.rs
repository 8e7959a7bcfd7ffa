//! Stacks of calls, each kept once, by number.
//!
//! One reservation, opened in parts, to stay out of core files. A number is an offset in units of 8
//! bytes, 0 no stack:
//! ```text
//! | next of the chain (4) · frames (4) | return addresses, innermost first (8 each) |
//! ```
//! Two threads may leave a stack twice.
//!
//! **Unsafe.** Reads and writes entries in the reservation.

use crate::sample;
use core::sync::atomic::{AtomicU32, AtomicU64, AtomicUsize, Ordering, Ordering::Relaxed};
use craton_os::guarded::{self, Opened};
use craton_os::{mapping, unwind};

pub(crate) const DEPTH: usize = 16;
pub(crate) const BYTES: usize = 64 << 20;
const PART: usize = BYTES / 64;
const CHAINS: usize = 1 << 16;
/// Units of a sample's fixed place.
const PLACE: usize = 1 + DEPTH;
const PLACES: usize = 2 * sample::PLACES;

pub(crate) struct Stacks {
    at: AtomicUsize,
    open: Opened<1>,
    used: AtomicU32,
    /// 0: not made.
    places: AtomicU32,
    not_kept: AtomicU64,
    heads: [AtomicU32; CHAINS],
}

impl Stacks {
    pub(crate) const AT: usize = core::mem::offset_of!(Self, at);

    pub(crate) const fn new() -> Self {
        Self {
            at: AtomicUsize::new(0),
            open: Opened::new(),
            used: AtomicU32::new(0),
            places: AtomicU32::new(0),
            not_kept: AtomicU64::new(0),
            heads: [const { AtomicU32::new(0) }; CHAINS],
        }
    }

    fn base(&self) -> Option<usize> {
        // ORDERING: pairs with the exchange below.
        match self.at.load(Ordering::Acquire) {
            0 => {
                let at = guarded::reserve_zeros(BYTES)?;
                // ORDERING: pairs with the Acquire above and with a loser's Acquire here.
                match self.at.compare_exchange(0, at, Ordering::Release, Ordering::Acquire) {
                    Ok(_) => Some(at),
                    Err(other) => {
                        mapping::unmap(at, BYTES);
                        Some(other)
                    }
                }
            }
            at => Some(at),
        }
    }

    /// Without the library's frames.
    #[inline(never)]
    pub(crate) fn capture(&self) -> u32 {
        let mut frames = [0; DEPTH];
        let n = unwind::capture_outside(&mut frames);
        self.keep(&frames[..n])
    }

    /// The next stack there replaces it: a long run has stacks without end.
    #[inline(never)]
    pub(crate) fn capture_at(&self, place: usize) -> u32 {
        let mut frames = [0; DEPTH];
        let n = unwind::capture_outside(&mut frames);
        let first = match self.places.load(Relaxed) {
            0 => self.make_places(),
            first => first,
        };
        let Some(base) = self.base().filter(|_| first != 0 && place < PLACES && n > 0) else { return 0 };
        let number = first + (place * PLACE) as u32;
        if self.write(base, number, &frames[..n]) { number } else { 0 }
    }

    fn make_places(&self) -> u32 {
        let first = 1 + self.used.fetch_add((PLACES * PLACE) as u32, Relaxed);
        match self.places.compare_exchange(0, first, Relaxed, Relaxed) {
            Ok(_) => first,
            Err(other) => other,
        }
    }

    fn write(&self, base: usize, number: u32, frames: &[usize]) -> bool {
        let (from, to) = (number as usize * 8, (number as usize + PLACE) * 8);
        if to > BYTES || !(from / PART..=(to - 1) / PART).all(|part| self.open.open(part, base + part * PART, PART)) {
            self.not_kept.fetch_add(1, Relaxed);
            return false;
        }
        let entry = base + from;
        // SAFETY: the caller's units.
        unsafe {
            for (i, pc) in frames.iter().enumerate() {
                ((entry + 8 + 8 * i) as *mut usize).write(*pc);
            }
            ((entry + 4) as *mut u32).write(frames.len() as u32);
        }
        true
    }

    pub(crate) fn keep(&self, frames: &[usize]) -> u32 {
        let Some(base) = self.base().filter(|_| !frames.is_empty()) else { return 0 };
        let hash = frames
            .iter()
            .fold(frames.len() as u64, |h, pc| (h ^ *pc as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(29));
        let head = &self.heads[(hash >> 40) as usize % CHAINS];
        // ORDERING: pairs with the exchange below: the number's reader sees the entry.
        let first = head.load(Ordering::Acquire);
        let mut at = first;
        while at != 0 {
            if read(base, at) == frames {
                return at;
            }
            // SAFETY: chains hold entries' numbers.
            at = unsafe { next(base, at).read() };
        }
        let units = 1 + frames.len() as u32;
        let number = 1 + self.used.fetch_add(units, Relaxed);
        let (from, to) = (number as usize * 8, (number + units) as usize * 8);
        if to > BYTES {
            self.used.store((BYTES / 8) as u32, Relaxed);
        }
        if to > BYTES || !(from / PART..=(to - 1) / PART).all(|part| self.open.open(part, base + part * PART, PART)) {
            self.not_kept.fetch_add(1, Relaxed);
            return 0;
        }
        let entry = base + number as usize * 8;
        // SAFETY: `fetch_add` reserved these units.
        unsafe {
            ((entry + 4) as *mut u32).write(frames.len() as u32);
            for (i, pc) in frames.iter().enumerate() {
                ((entry + 8 + 8 * i) as *mut usize).write(*pc);
            }
        }
        let mut first = first;
        loop {
            // SAFETY: no other thread knows the entry before the exchange.
            unsafe { next(base, number).write(first) };
            // ORDERING: pairs with the Acquire above.
            match head.compare_exchange(first, number, Ordering::Release, Relaxed) {
                Ok(_) => return number,
                Err(other) => first = other,
            }
        }
    }

    pub(crate) fn frames(&self, number: u32) -> &'static [usize] {
        match self.at.load(Relaxed) {
            0 => &[],
            _ if number == 0 => &[],
            base => read(base, number),
        }
    }

    /// All numbers of stacks are below it.
    pub(crate) fn numbers(&self) -> usize {
        // The last one's units lie behind its number.
        (self.used.load(Relaxed) as usize + 1).min(BYTES / 8)
    }

    pub(crate) fn range(&self) -> (usize, usize) {
        (self.at.load(Relaxed), BYTES)
    }

    pub(crate) fn not_kept(&self) -> u64 {
        self.not_kept.load(Relaxed)
    }
}

fn next(base: usize, number: u32) -> *mut u32 {
    (base + number as usize * 8) as *mut u32
}

fn read(base: usize, number: u32) -> &'static [usize] {
    let entry = base + number as usize * 8;
    // SAFETY: an entry's number; entries stay.
    unsafe { core::slice::from_raw_parts((entry + 8) as *const usize, ((entry + 4) as *const u32).read() as usize) }
}

#[cfg(all(test, not(loom)))]
mod tests;
