//! The guest's offers to its host without a balloon or messages: a byte in shared memory for each
//! huge frame.
//!
//! **From.** HyperAlloc (EuroSys 2025) keeps such states; the protocol is ours.
//! **State.**
//! ```text
//!           offer           begin_taking        end_taking
//! the guest's ──► offered ─────────────► taking ───────────► taken
//!      ▲             │                                         │
//!      └─────────────┴──────────────── take_back ──────────────┘
//! ```
//! **Invariants.** *HB1* The guest touches a frame only in its own state. *HB2* The host drops a
//! frame's memory only while it is `taking`.
//! **Threads.** One host; any CPU of the guest.

use core::sync::atomic::{AtomicU8, Ordering};

pub const MAGIC: u64 = u64::from_le_bytes(*b"crtboard");
/// Before the states: magic, address of the first huge frame, number of states.
pub const HEAD: usize = 24;

/// Where a guest's address lies in the file that is its memory. QEMU's machine `pc` places what is
/// beyond 3 GiB at 4 GiB, if the guest has 3.5 GiB or more; the file has no such hole.
pub fn offset_in_file(address: u64, file_bytes: u64) -> u64 {
    const GIB: u64 = 1 << 30;
    let has_hole = file_bytes >= 7 * GIB / 2;
    if has_hole && address >= 4 * GIB { address - GIB } else { address }
}

const GUESTS: u8 = 0;
const OFFERED: u8 = 1;
const TAKING: u8 = 2;
const TAKEN: u8 = 3;

#[derive(Clone, Copy)]
pub struct Board<'a> {
    states: &'a [AtomicU8],
}

impl<'a> Board<'a> {
    pub fn new(states: &'a [AtomicU8]) -> Self {
        Self { states }
    }

    pub fn len(&self) -> usize {
        self.states.len()
    }

    pub fn is_empty(&self) -> bool {
        self.states.is_empty()
    }

    /// By the guest, whose writes to the frame end here.
    pub fn offer(&self, frame: usize) {
        // ORDERING: pairs with `begin_taking`: the guest's last accesses come before.
        self.states[frame].store(OFFERED, Ordering::Release);
    }

    /// By the guest. Returns whether the host had taken the memory, which then reads as zeros.
    pub fn take_back(&self, frame: usize) -> bool {
        loop {
            let found = self.states[frame].load(Ordering::Relaxed);
            // ORDERING: pairs with `end_taking`: the memory is gone before the guest writes.
            let to_guest =
                || self.states[frame].compare_exchange(found, GUESTS, Ordering::Acquire, Ordering::Relaxed).is_ok();
            match found {
                TAKING => core::hint::spin_loop(),
                GUESTS => return false,
                _ if to_guest() => return found == TAKEN,
                _ => {}
            }
        }
    }

    /// By the host. `false`: not offered.
    pub fn begin_taking(&self, frame: usize) -> bool {
        // ORDERING: acquire pairs with `offer`.
        self.states[frame].compare_exchange(OFFERED, TAKING, Ordering::Acquire, Ordering::Relaxed).is_ok()
    }

    /// By the host, after it dropped the memory.
    pub fn end_taking(&self, frame: usize) {
        // ORDERING: pairs with the acquire of `take_back`.
        self.states[frame].store(TAKEN, Ordering::Release);
    }

    pub fn taken(&self) -> usize {
        self.states.iter().filter(|state| state.load(Ordering::Relaxed) == TAKEN).count()
    }
}

#[cfg(test)]
mod tests;
