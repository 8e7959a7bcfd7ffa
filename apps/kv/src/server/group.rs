//! Group commit: one sync point of a disk acknowledges the writes of many connections.
//!
//! **What.** A connection that wrote asks for a ticket and keeps its replies. The syncing thread
//! makes a sync point, after which all tickets asked for before it are good.
//! **Threads.** `begun` counts sync points that began, `done` those that ended. A write that saw
//! `begun = n` after its commit is durable when `done > n`: that sync point began after it.

use crate::store::StoreError;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

#[derive(Default)]
pub struct Group {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Default)]
struct State {
    begun: u64,
    done: u64,
    /// Tickets since the last flush began.
    wanted: u64,
    is_stopped: bool,
    failed: Option<StoreError>,
}

/// A pause in which no ticket is asked for, after which all are thought to be there.
const QUIET: Duration = Duration::from_micros(30);
/// The longest wait for more tickets.
const MOST_WAIT: Duration = Duration::from_millis(2);

/// The state of a ticket.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Ticket {
    Waits,
    Durable,
    Failed(StoreError),
}

impl Group {
    /// A ticket for everything that this thread has written.
    pub fn ticket(&self) -> u64 {
        let mut state = self.state();
        state.wanted += 1;
        if state.wanted == 1 {
            self.changed.notify_one();
        }
        state.begun + 1
    }

    pub fn state_of(&self, ticket: u64) -> Ticket {
        let state = self.state();
        match state.failed {
            _ if state.done >= ticket => Ticket::Durable,
            Some(error) => Ticket::Failed(error),
            None => Ticket::Waits,
        }
    }

    /// Makes sync points as they are asked for, at most one in `interval`, until stopped or until
    /// one fails. `wake` is called after each.
    pub fn run(&self, interval: Duration, sync: impl Fn() -> Result<(), StoreError>, wake: impl Fn()) {
        // Time of the last flush, and the number of its tickets.
        let (mut took, mut last) = (Duration::ZERO, 0);
        loop {
            let next = Instant::now() + interval;
            let mut state = self.state();
            while state.wanted == 0 && !state.is_stopped {
                state = self.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
            }
            while !state.is_stopped {
                let left = next.saturating_duration_since(Instant::now());
                if left.is_zero() {
                    break;
                }
                state = self.changed.wait_timeout(state, left).unwrap_or_else(PoisonError::into_inner).0;
            }
            // Clients whose replies have just left send their next commands now. One flush for all
            // of them is better than two, each for a half.
            let end = Instant::now() + (took / 2).min(MOST_WAIT);
            while state.wanted < last && !state.is_stopped && Instant::now() < end {
                let before = state.wanted;
                drop(state);
                std::thread::sleep(QUIET);
                state = self.state();
                if state.wanted == before {
                    break;
                }
            }
            if state.wanted == 0 {
                return;
            }
            last = std::mem::take(&mut state.wanted);
            state.begun += 1;
            let start = Instant::now();
            drop(state);
            let result = sync();
            took = start.elapsed();
            let mut state = self.state();
            match result {
                Ok(()) => state.done += 1,
                Err(error) => state.failed = Some(error),
            }
            drop(state);
            wake();
            if result.is_err() {
                return;
            }
        }
    }

    /// Ends [`run`](Self::run) after a last sync point, if one is asked for.
    pub fn stop(&self) {
        self.state().is_stopped = true;
        self.changed.notify_all();
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicU64, Ordering};

    #[test]
    fn a_ticket_is_good_only_after_a_sync_point_that_began_later() {
        let group = Group::default();
        let (written, durable) = (AtomicU64::new(0), AtomicU64::new(0));
        let sync = &|| {
            let seen = written.load(Ordering::SeqCst);
            std::thread::sleep(Duration::from_micros(200));
            durable.store(seen, Ordering::SeqCst);
            Ok(())
        };
        std::thread::scope(|scope| {
            let syncing = scope.spawn(|| group.run(Duration::ZERO, sync, || {}));
            let writers: Vec<_> = (0..3)
                .map(|_| {
                    scope.spawn(|| {
                        for _ in 0..200 {
                            let mine = written.fetch_add(1, Ordering::SeqCst) + 1;
                            let ticket = group.ticket();
                            while group.state_of(ticket) == Ticket::Waits {
                                std::thread::yield_now();
                            }
                            assert!(durable.load(Ordering::SeqCst) >= mine);
                        }
                    })
                })
                .collect();
            writers.into_iter().for_each(|writer| writer.join().unwrap());
            group.stop();
            syncing.join().unwrap();
        });
    }

    #[test]
    fn a_failed_sync_point_fails_all_tickets_that_wait() {
        let group = Group::default();
        let ticket = group.ticket();
        group.run(Duration::ZERO, || Err(StoreError::System(5)), || {});
        assert_eq!(group.state_of(ticket), Ticket::Failed(StoreError::System(5)));
        assert_eq!(group.state_of(0), Ticket::Durable);
    }
}
