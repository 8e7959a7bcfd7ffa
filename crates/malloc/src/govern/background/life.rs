//! The life of the library's thread: who starts and ends it.
//!
//! **State.**
//! ```text
//! NONE ──► STARTING ──► RUNNING ──► ENDED (by itself)       STARTING ──► REFUSED (by the system; for good)
//!   ▲          ▲ └─◄ ENDED │           │
//!   └───── STOPPING ◄──────┴───────────┘
//! ```
//! One program thread, its signals blocked, owns STARTING and STOPPING.
//!
//! **Threads.** A holder adds its hold, then reads the state; a starter takes the state, then reads
//! the holds. One sees the other.

use craton_base::atomic::{AtomicBool, AtomicU8, AtomicU32, Ordering, Ordering::Relaxed};

const NONE: u8 = 0;
const STARTING: u8 = 1;
const RUNNING: u8 = 2;
const ENDED: u8 = 3;
const STOPPING: u8 = 4;
const REFUSED: u8 = 5;

pub(crate) struct Life {
    state: AtomicU8,
    holds: AtomicU32,
    sealed: AtomicBool,
}

impl Life {
    pub(crate) const fn new() -> Self {
        Self { state: AtomicU8::new(NONE), holds: AtomicU32::new(0), sealed: AtomicBool::new(false) }
    }

    pub(crate) fn may_start(&self) -> bool {
        matches!(self.state.load(Relaxed), NONE | ENDED) && !self.sealed.load(Relaxed)
    }

    pub(crate) fn runs(&self) -> bool {
        matches!(self.state.load(Relaxed), STARTING | RUNNING | STOPPING)
    }

    pub(crate) fn is_running(&self) -> bool {
        self.state.load(Relaxed) == RUNNING
    }

    pub(crate) fn is_calm(&self) -> bool {
        self.holds.load(Relaxed) == 0 && !matches!(self.state.load(Relaxed), STARTING | STOPPING)
    }

    /// `join` awaits a thread that ended itself; `begin` returns whether the system allowed a
    /// start.
    pub(crate) fn start(&self, join: impl FnOnce(), begin: impl FnOnce() -> bool) {
        let old = self.state.load(Relaxed);
        if !matches!(old, NONE | ENDED) {
            return;
        }
        // ORDERING: pairs with `hold` and `seal`: we see the hold, or its owner sees
        // STARTING.
        if self.state.compare_exchange(old, STARTING, Ordering::SeqCst, Relaxed).is_err() {
            return;
        }
        // ORDERING: SeqCst, as above.
        if self.holds.load(Ordering::SeqCst) != 0 || self.sealed.load(Ordering::SeqCst) {
            // ORDERING: pairs with the Acquire in `stop`.
            self.state.store(old, Ordering::Release);
            return;
        }
        if old == ENDED {
            join();
        }
        let state = if begin() { RUNNING } else { REFUSED };
        // ORDERING: pairs with the Acquire in `stop`, and publishes the thread.
        self.state.store(state, Ordering::Release);
    }

    /// `false`: another thread stops it.
    pub(crate) fn end_by_itself(&self) -> bool {
        // ORDERING: pairs with the Acquire in `stop`.
        self.state.compare_exchange(RUNNING, ENDED, Ordering::Release, Relaxed).is_ok()
    }

    /// `undisturbed` blocks signals; `wait` runs while another thread starts or stops it. Returns
    /// the result of `end`, or `false` if no thread ran.
    pub(crate) fn stop(
        &self,
        wait: impl Fn(),
        undisturbed: impl Fn(&dyn Fn() -> Option<bool>) -> Option<bool>,
        end: impl Fn() -> bool,
    ) -> bool {
        loop {
            // ORDERING: pairs with the exchange in `start`.
            match self.state.load(Ordering::SeqCst) {
                NONE | REFUSED => return false,
                STARTING | STOPPING => wait(),
                old => {
                    let ended = undisturbed(&|| {
                        // ORDERING: pairs with the Release in `start`.
                        self.state.compare_exchange(old, STOPPING, Ordering::Acquire, Relaxed).ok()?;
                        let ended = end();
                        // ORDERING: pairs with the Acquire of the next state change.
                        self.state.store(NONE, Ordering::Release);
                        Some(ended)
                    });
                    if let Some(ended) = ended {
                        return ended;
                    }
                }
            }
        }
    }

    /// A running thread needs [`Life::stop`].
    pub(crate) fn hold(&self) {
        // ORDERING: pairs with the exchange in `start`.
        self.holds.fetch_add(1, Ordering::SeqCst);
    }

    pub(crate) fn release(&self) {
        self.holds.fetch_sub(1, Relaxed);
    }

    /// For good; as [`Life::hold`].
    pub(crate) fn seal(&self) {
        // ORDERING: pairs with the exchange in `start`.
        self.sealed.store(true, Ordering::SeqCst);
    }

    pub(crate) fn forked(&self, forks: u32) {
        self.holds.store(forks, Relaxed);
        if self.state.load(Relaxed) != REFUSED {
            self.state.store(NONE, Relaxed);
        }
    }
}

#[cfg(all(test, not(loom)))]
mod tests;
