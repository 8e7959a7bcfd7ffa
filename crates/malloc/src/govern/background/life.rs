//! Whether the heap's own thread is there, and who may start and end it.
//!
//! **State.**
//! ```text
//! NONE ──► STARTING ──► RUNNING ──► ENDED (by itself)       STARTING ──► REFUSED (by the system; for good)
//!   ▲          ▲ └─◄ ENDED │           │
//!   └───── STOPPING ◄──────┴───────────┘
//! ```
//! STARTING and STOPPING belong to one thread of the program, which has its signals blocked meanwhile.
//!
//! **Threads.** Who wants no thread says so and then looks at the state; who starts one takes the state and then looks whether anybody wants none:
//! one of them sees the other.

use craton_base::atomic::{AtomicBool, AtomicU8, AtomicU32, Ordering, Ordering::Relaxed};

const NONE: u8 = 0;
const STARTING: u8 = 1;
const RUNNING: u8 = 2;
const ENDED: u8 = 3;
const STOPPING: u8 = 4;
const REFUSED: u8 = 5;

/// The life of a thread that is started and ended again and again.
pub(crate) struct Life {
    state: AtomicU8,
    /// Those who want no thread to be started for now.
    holds: AtomicU32,
    /// Somebody wants none ever again.
    sealed: AtomicBool,
}

impl Life {
    /// Before the first start.
    pub(crate) const fn new() -> Self {
        Self { state: AtomicU8::new(NONE), holds: AtomicU32::new(0), sealed: AtomicBool::new(false) }
    }

    /// Whether there is no thread, and one may be started.
    pub(crate) fn may_start(&self) -> bool {
        matches!(self.state.load(Relaxed), NONE | ENDED) && !self.sealed.load(Relaxed)
    }

    /// Whether there is a thread, or about to be or to end.
    pub(crate) fn runs(&self) -> bool {
        matches!(self.state.load(Relaxed), STARTING | RUNNING | STOPPING)
    }

    /// Whether there is a thread that nobody starts or ends.
    pub(crate) fn is_running(&self) -> bool {
        self.state.load(Relaxed) == RUNNING
    }

    /// Whether nobody starts or ends the thread, or keeps it from being started.
    pub(crate) fn is_calm(&self) -> bool {
        self.holds.load(Relaxed) == 0 && !matches!(self.state.load(Relaxed), STARTING | STOPPING)
    }

    /// Starts the thread by `begin`, which says whether the system allows it, unless somebody is at it or wants none. One that ended by
    /// itself is waited for by `join` before.
    pub(crate) fn start(&self, join: impl FnOnce(), begin: impl FnOnce() -> bool) {
        let old = self.state.load(Relaxed);
        if !matches!(old, NONE | ENDED) {
            return;
        }
        // ORDERING: SeqCst pairs with the additions to `holds`: either we see the hold, or its owner sees that we are at it, and waits.
        if self.state.compare_exchange(old, STARTING, Ordering::SeqCst, Relaxed).is_err() {
            return;
        }
        // ORDERING: SeqCst, as above.
        if self.holds.load(Ordering::SeqCst) != 0 || self.sealed.load(Ordering::SeqCst) {
            // ORDERING: Release pairs with the Acquire in `stop`.
            self.state.store(old, Ordering::Release);
            return;
        }
        if old == ENDED {
            join();
        }
        let state = if begin() { RUNNING } else { REFUSED };
        // ORDERING: Release pairs with the Acquire in `stop`: whoever stops the thread sees which one it is.
        self.state.store(state, Ordering::Release);
    }

    /// The thread's own wish to end, while nobody else ends it; it does so if this says so.
    pub(crate) fn end_by_itself(&self) -> bool {
        // ORDERING: Release pairs with the Acquire in `stop`.
        self.state.compare_exchange(RUNNING, ENDED, Ordering::Release, Relaxed).is_ok()
    }

    /// Ends the thread by `end`, and returns what that says; `false` when there was none. `undisturbed` does what it is given where no signal
    /// interrupts it; `wait` is called while somebody else starts or ends the thread.
    pub(crate) fn stop(
        &self,
        wait: impl Fn(),
        undisturbed: impl Fn(&dyn Fn() -> Option<bool>) -> Option<bool>,
        end: impl Fn() -> bool,
    ) -> bool {
        loop {
            // ORDERING: SeqCst pairs with the exchange in `start`, which looks for holds after it.
            match self.state.load(Ordering::SeqCst) {
                NONE | REFUSED => return false,
                STARTING | STOPPING => wait(),
                old => {
                    let ended = undisturbed(&|| {
                        // ORDERING: Acquire pairs with the Release in `start`.
                        self.state.compare_exchange(old, STOPPING, Ordering::Acquire, Relaxed).ok()?;
                        let ended = end();
                        // ORDERING: Release pairs with the Acquire of the next one who changes the state.
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

    /// No thread is started until [`Life::release`], by anybody; one may be there until [`Life::stop`].
    pub(crate) fn hold(&self) {
        // ORDERING: SeqCst pairs with the exchange in `start`.
        self.holds.fetch_add(1, Ordering::SeqCst);
    }

    /// Takes one [`Life::hold`] back.
    pub(crate) fn release(&self) {
        self.holds.fetch_sub(1, Relaxed);
    }

    /// No thread is started any more, by anybody; one may be there until [`Life::stop`].
    pub(crate) fn seal(&self) {
        // ORDERING: SeqCst pairs with the exchange in `start`.
        self.sealed.store(true, Ordering::SeqCst);
    }

    /// In a forked child, which has no thread and where nobody else is at anything.
    pub(crate) fn forked(&self) {
        self.holds.store(0, Relaxed);
        if self.state.load(Relaxed) != REFUSED {
            self.state.store(NONE, Relaxed);
        }
    }
}

#[cfg(all(test, not(loom)))]
mod tests;
