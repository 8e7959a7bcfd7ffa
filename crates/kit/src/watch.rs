//! The bytes beside the newest buffers, watched by the processor.
//!
//! Short reads past a buffer's end (by its alignment) and before its start meet no guard page. So
//! the processor's four watchpoints watch the bytes directly behind and the 8 bytes before the
//! newest buffers. The C library, the system, and vector instructions are not reported: correct
//! programs use them past a text's end.
//!
//! **Cost.** Two system calls an allocation, 5 µs, one each [`PACE_NS`] and [`BURST`] at once.

use crate::table::Buffer;
use core::sync::atomic::{AtomicBool, AtomicU8, AtomicU64, AtomicUsize, Ordering, Ordering::Relaxed};
use craton_os::watch::{self, MOST, Watch};
use craton_os::{maps, process};

/// For each watched buffer, when [`BURST`] came at once.
const PACE_NS: u64 = 200_000;
const BURST: u64 = 256;
const WIDEST: usize = 8;

const UNTRIED: u8 = 0;
const ON: u8 = 1;
const OFF: u8 = 2;

pub(crate) struct Watches {
    state: AtomicU8,
    /// A thread moves watchpoints; others leave their buffers out.
    busy: AtomicBool,
    turn: AtomicUsize,
    full_at_ns: AtomicU64,
    points: [Watch; MOST],
    /// Inverted, since a search for leaks would take them for pointers.
    buffers: [AtomicUsize; MOST],
    watched: [AtomicUsize; MOST],
    /// Code of the C library and this one.
    quiet: [[AtomicUsize; 2]; 2],
}

/// The bytes beside the buffer that no closed page covers. The open page ends at `open_to`.
fn beside(buffer: &Buffer, open_to: usize) -> [Option<(usize, usize)>; 2] {
    let end = buffer.address + buffer.size;
    let slack = open_to.saturating_sub(end);
    let front = (buffer.address - buffer.under >= WIDEST).then_some((buffer.address - WIDEST, WIDEST));
    let widest = 1usize << end.trailing_zeros().min(WIDEST.trailing_zeros());
    let len = if slack == 0 { 0 } else { widest.min(1 << slack.ilog2()) };
    [front, (len > 0).then_some((end, len))]
}

impl Watches {
    pub(crate) const fn new() -> Self {
        Self {
            state: AtomicU8::new(UNTRIED),
            busy: AtomicBool::new(false),
            turn: AtomicUsize::new(0),
            full_at_ns: AtomicU64::new(0),
            points: [const { Watch::new() }; MOST],
            buffers: [const { AtomicUsize::new(0) }; MOST],
            watched: [const { AtomicUsize::new(0) }; MOST],
            quiet: [const { [const { AtomicUsize::new(0) }; 2] }; 2],
        }
    }

    fn set_up(&self) -> bool {
        let own = Self::set_up as *const () as usize;
        for (range, code) in self.quiet.iter().zip([process::code_of_libc(), own]) {
            let found = maps::at(code, |m| {
                range[0].store(m.start, Relaxed);
                range[1].store(m.end, Relaxed);
            });
            if found.is_none() {
                return false;
            }
        }
        watch::install() && self.points[0].is_exact()
    }

    /// No process of tests handles the processor's signals, which masked stores beside a buffer
    /// raise, too.
    #[cfg(all(test, not(loom)))]
    pub(crate) fn turn_off(&self) {
        self.state.store(OFF, Relaxed);
    }

    fn may_move(&self, now_ns: u64) -> bool {
        let full_at = self.full_at_ns.load(Relaxed).max(now_ns);
        let may = full_at - now_ns <= (BURST - 1) * PACE_NS;
        if may {
            self.full_at_ns.store(full_at + PACE_NS, Relaxed);
        }
        may
    }

    pub(crate) fn follow(&self, buffer: &Buffer, open_to: usize, now_ns: u64) {
        // ORDERING: pairs with the Release below: one thread at a time reads and changes the rest.
        if self.state.load(Relaxed) == OFF || self.busy.swap(true, Ordering::Acquire) {
            return;
        }
        let saved = process::errno();
        let is_first = self.state.load(Relaxed) == UNTRIED;
        let is_on = if is_first { self.set_up() } else { true };
        if is_on && self.may_move(now_ns) {
            let all =
                beside(buffer, open_to).into_iter().flatten().all(|(at, len)| self.watch(buffer.address, at, len));
            // Another handler would get the signals.
            let is_ours = watch::is_installed();
            self.state.store(if all && is_ours { ON } else { OFF }, Relaxed);
        } else if !is_on {
            self.state.store(OFF, Relaxed);
        }
        if self.state.load(Relaxed) == OFF {
            self.points.iter().for_each(Watch::stop);
        }
        process::set_errno(saved);
        // ORDERING: pairs with the Acquire above.
        self.busy.store(false, Ordering::Release);
    }

    fn watch(&self, buffer: usize, at: usize, len: usize) -> bool {
        let i = self.turn.load(Relaxed);
        self.turn.store((i + 1) % MOST, Relaxed);
        self.buffers[i].store(!buffer, Relaxed);
        self.watched[i].store(!at, Relaxed);
        self.points[i].set(at, len)
    }

    pub(crate) fn leave(&self, buffer: usize) {
        for (i, of) in self.buffers.iter().enumerate().filter(|(_, of)| of.load(Relaxed) == !buffer) {
            let saved = process::errno();
            of.store(0, Relaxed);
            self.points[i].stop();
            process::set_errno(saved);
        }
    }

    pub(crate) fn buffer_of(&self, address: usize) -> Option<usize> {
        let i = self.watched.iter().position(|at| at.load(Relaxed) == !address)?;
        Some(self.buffers[i].load(Relaxed)).filter(|buffer| *buffer != 0).map(|buffer| !buffer)
    }

    pub(crate) fn is_quiet(&self, code: usize) -> bool {
        // `code` lies behind the instruction.
        self.quiet.iter().any(|[from, to]| (from.load(Relaxed) + 1..=to.load(Relaxed)).contains(&code))
    }

    /// In a forked child: watchpoints are its parent's.
    pub(crate) fn forget(&self) {
        self.points.iter().for_each(Watch::forget);
        self.buffers.iter().for_each(|buffer| buffer.store(0, Relaxed));
        if self.state.load(Relaxed) == ON {
            self.state.store(UNTRIED, Relaxed);
        }
        self.busy.store(false, Relaxed);
    }
}

#[cfg(all(test, not(loom)))]
mod tests;
