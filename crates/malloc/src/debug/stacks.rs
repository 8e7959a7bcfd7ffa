//! Stacks of calls, each kept once and named by a number.
//!
//! **State.** One reservation, of which a part can be written when it is filled, so that the rest is in no core file: chains of entries by hash,
//! ```text
//! | next of the chain (4) · frames (4) | return addresses, innermost first (8 each) |
//! ```
//! A stack's number is where its entry begins, in units of 8 bytes; 0 is none.
//!
//! **Threads.** An entry is written, and then becomes the first of its chain by one exchange. Two that write the same one at a time both stay.
//!
//! **Failure.** When the reservation is full, and without one, a new stack is none; how many were not kept is counted.
//!
//! **Unsafe.** Reads and writes entries in the reservation.

use crate::lifecycle;
use core::sync::atomic::{AtomicU32, AtomicU64, AtomicUsize, Ordering, Ordering::Relaxed};
use craton_os::guarded::{self, Opened};
use craton_os::{mapping, unwind};

/// Frames that are kept of a stack.
pub(crate) const DEPTH: usize = 16;
/// Bytes for all stacks: some hundred thousand.
pub(super) const BYTES: usize = 64 << 20;
/// Bytes that can be written together.
const PART: usize = BYTES / 64;
static OPEN: Opened<1> = Opened::new();
const CHAINS: usize = 1 << 16;

static AT: AtomicUsize = AtomicUsize::new(0);
/// Where the reservation's address is, for those who read the memory of another process.
pub(super) const WHERE: *const u8 = (&raw const AT).cast();
/// The first free unit; the number 0 is nobody's.
static NEXT: AtomicU32 = AtomicU32::new(1);
static HEADS: [AtomicU32; CHAINS] = [const { AtomicU32::new(0) }; CHAINS];
static NOT_KEPT: AtomicU64 = AtomicU64::new(0);

fn base() -> Option<usize> {
    // ORDERING: Acquire pairs with the exchange below.
    match AT.load(Ordering::Acquire) {
        0 => {
            let at = guarded::reserve_zeros(BYTES)?;
            // ORDERING: Release pairs with the Acquire above; on failure Acquire pairs with the Release of who was first.
            match AT.compare_exchange(0, at, Ordering::Release, Ordering::Acquire) {
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

/// The calling thread's stack, without the library's own frames; its number.
#[inline(never)]
pub(crate) fn capture() -> u32 {
    // A program that is linked statically asks for memory before the C library can find its call frame information.
    if !lifecycle::is_set_up() {
        return 0;
    }
    let mut frames = [0; DEPTH];
    let n = unwind::capture_outside(&mut frames);
    keep(&frames[..n])
}

/// Keeps a stack; its number.
pub(crate) fn keep(frames: &[usize]) -> u32 {
    let Some(base) = base().filter(|_| !frames.is_empty()) else { return 0 };
    let hash = frames
        .iter()
        .fold(frames.len() as u64, |h, pc| (h ^ *pc as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(29));
    let head = &HEADS[(hash >> 40) as usize % CHAINS];
    // ORDERING: Acquire pairs with the exchange below: whoever sees the number sees the entry.
    let first = head.load(Ordering::Acquire);
    let mut at = first;
    while at != 0 {
        if read(base, at) == frames {
            return at;
        }
        // SAFETY: numbers in chains are those of entries.
        at = unsafe { next(base, at).read() };
    }
    let units = 1 + frames.len() as u32;
    let number = NEXT.fetch_add(units, Relaxed);
    let (from, to) = (number as usize * 8, (number + units) as usize * 8);
    if to > BYTES {
        // Not to come round some day.
        NEXT.store((BYTES / 8) as u32, Relaxed);
    }
    if to > BYTES || !(from / PART..=(to - 1) / PART).all(|part| OPEN.open(part, base + part * PART, PART)) {
        NOT_KEPT.fetch_add(1, Relaxed);
        return 0;
    }
    let entry = base + number as usize * 8;
    // SAFETY: these units are ours alone.
    unsafe {
        ((entry + 4) as *mut u32).write(frames.len() as u32);
        for (i, pc) in frames.iter().enumerate() {
            ((entry + 8 + 8 * i) as *mut usize).write(*pc);
        }
    }
    let mut first = first;
    loop {
        // SAFETY: as above: nobody knows the entry before the exchange.
        unsafe { next(base, number).write(first) };
        // ORDERING: Release pairs with the Acquire above.
        match head.compare_exchange(first, number, Ordering::Release, Relaxed) {
            Ok(_) => return number,
            Err(other) => first = other,
        }
    }
}

fn next(base: usize, number: u32) -> *mut u32 {
    (base + number as usize * 8) as *mut u32
}

fn read(base: usize, number: u32) -> &'static [usize] {
    let entry = base + number as usize * 8;
    // SAFETY: the number is that of an entry, which stays as it is.
    unsafe { core::slice::from_raw_parts((entry + 8) as *const usize, ((entry + 4) as *const u32).read() as usize) }
}

/// The frames of a stack; none for 0.
pub(crate) fn frames(number: u32) -> &'static [usize] {
    match AT.load(Relaxed) {
        0 => &[],
        _ if number == 0 => &[],
        base => read(base, number),
    }
}

/// Where the stacks lie: address and bytes.
pub(super) fn extent() -> (usize, usize) {
    (AT.load(Relaxed), BYTES)
}

/// How many stacks there was no room for.
pub(crate) fn not_kept() -> u64 {
    NOT_KEPT.load(Relaxed)
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn a_stack_has_one_number() {
        let numbers: [u32; 100] = core::array::from_fn(|i| keep(&[i + 1, 2, 3]));
        for (i, number) in numbers.iter().enumerate() {
            assert_eq!(frames(*number), [i + 1, 2, 3]);
            assert_eq!(keep(&[i + 1, 2, 3]), *number);
        }
        assert_ne!(keep(&[1, 2]), numbers[0]);
        assert_eq!(keep(&[]), 0);
        assert_eq!(frames(0), []);
    }
}
