//! Group commit: one sync point of a disk acknowledges the writes of many connections.
//!
//! **What.** A connection that wrote requests a ticket and keeps its replies. The next sync point
//! makes all tickets requested before it durable. The worker that has run all commands that had
//! arrived makes it ([`Group::lead`]), unless one is under way: then the next one serves it too.
//! With an interval a thread makes the sync points ([`Group::run`]). A leader first waits for as
//! many connections as the last sync point served, at most as long as that took
//! ([`Group::is_due`]): clients that send the next commands upon a reply all come back.
//!
//! **Cost.** A leader sends its own replies without a wake-up. Others run commands meanwhile.
//!
//! **Failure.** A full disk fails the tickets of that sync point, and the next one tries again. Any
//! other failure is the last.
//!
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
    /// Workers that requested them.
    waiting: Vec<usize>,
    /// A sync point is under way.
    is_led: bool,
    is_stopped: bool,
    failed: Option<StoreError>,
    /// Tickets up to here have failed, if `done` is below.
    failed_to: u64,
    /// Tickets of the last sync point, and its time.
    served: u64,
    took: Duration,
}

/// After this time a full disk is tried again.
const RETRY: Duration = Duration::from_millis(100);

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Ticket {
    Waits,
    Durable,
    Failed(StoreError),
}

impl Group {
    /// Covers all that this worker's thread has written.
    pub fn ticket(&self, worker: usize) -> u64 {
        let mut state = self.state();
        state.wanted += 1;
        if !state.waiting.contains(&worker) {
            state.waiting.push(worker);
        }
        if state.wanted == 1 {
            self.changed.notify_one();
        }
        state.begun + 1
    }

    pub fn state_of(&self, ticket: u64) -> Ticket {
        let state = self.state();
        match state.failed {
            _ if state.done >= ticket => Ticket::Durable,
            Some(error) if state.failed_to >= ticket => Ticket::Failed(error),
            _ => Ticket::Waits,
        }
    }

    /// Makes sync points on request, at most one in `interval`, until stopped or until one fails
    /// for another reason than a full disk. After each, calls `wake` for the workers whose tickets
    /// it has decided.
    pub fn run(&self, interval: Duration, sync: impl Fn() -> Result<(), StoreError>, wake: impl Fn(usize)) {
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
            if state.wanted == 0 {
                return;
            }
            drop(state);
            let Some((waiting, failed)) = self.sync(&sync) else { return };
            waiting.into_iter().for_each(&wake);
            if failed.is_some_and(|why| !why.is_full()) {
                return;
            }
            if failed.is_some() {
                let state = self.state();
                let is_on = |state: &mut State| !state.is_stopped;
                drop(self.changed.wait_timeout_while(state, RETRY, is_on));
            }
        }
    }

    /// Whether a leader that has waited so long should make a sync point.
    pub fn is_due(&self, waited: Duration) -> bool {
        let state = self.state();
        state.wanted >= state.served || waited >= state.took
    }

    /// Makes a sync point in this thread, if one is requested and none is under way. Wakes other
    /// workers that it has served, and those that requested one meanwhile.
    pub fn lead(&self, worker: usize, sync: impl Fn() -> Result<(), StoreError>, wake: impl Fn(usize)) -> bool {
        let Some((mut waiting, _)) = self.sync(&sync) else { return false };
        waiting.extend_from_slice(&self.state().waiting);
        waiting.into_iter().filter(|other| *other != worker).for_each(wake);
        true
    }

    /// Returns the workers whose tickets the sync point decided, and its failure.
    fn sync(&self, sync: &impl Fn() -> Result<(), StoreError>) -> Option<(Vec<usize>, Option<StoreError>)> {
        let mut state = self.state();
        if state.wanted == 0 || state.is_led {
            return None;
        }
        state.is_led = true;
        state.served = std::mem::take(&mut state.wanted);
        state.begun += 1;
        let (begun, waiting) = (state.begun, std::mem::take(&mut state.waiting));
        drop(state);
        let start = Instant::now();
        let result = sync();
        let took = start.elapsed();
        let mut state = self.state();
        (state.is_led, state.took) = (false, took);
        match result {
            Ok(()) => (state.done, state.failed) = (begun, None),
            Err(error) if error.is_full() && !state.is_stopped => {
                (state.failed, state.failed_to) = (Some(error), begun);
                // The records wait for room.
                state.wanted += 1;
            }
            Err(error) => (state.failed, state.failed_to) = (Some(error), u64::MAX),
        }
        Some((waiting, result.err()))
    }

    /// Ends [`run`](Self::run) after a last sync point, if one is requested.
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
            let syncing = scope.spawn(|| group.run(Duration::ZERO, sync, |_| {}));
            let writers: Vec<_> = (0..3)
                .map(|_| {
                    scope.spawn(|| {
                        for _ in 0..200 {
                            let mine = written.fetch_add(1, Ordering::SeqCst) + 1;
                            let ticket = group.ticket(0);
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
    fn leaders_serve_each_other_one_at_a_time() {
        let group = Group::default();
        let (written, durable) = (AtomicU64::new(0), AtomicU64::new(0));
        let (leaders, syncs) = (AtomicU64::new(0), AtomicU64::new(0));
        let sync = &|| {
            assert_eq!(leaders.fetch_add(1, Ordering::SeqCst), 0);
            let seen = written.load(Ordering::SeqCst);
            std::thread::yield_now();
            durable.store(seen, Ordering::SeqCst);
            syncs.fetch_add(1, Ordering::SeqCst);
            leaders.fetch_sub(1, Ordering::SeqCst);
            Ok(())
        };
        std::thread::scope(|scope| {
            for worker in 0..3 {
                let (group, written, durable) = (&group, &written, &durable);
                scope.spawn(move || {
                    for _ in 0..200 {
                        let mine = written.fetch_add(1, Ordering::SeqCst) + 1;
                        let ticket = group.ticket(worker);
                        while group.state_of(ticket) == Ticket::Waits {
                            group.lead(worker, sync, |other| assert_ne!(other, worker));
                        }
                        assert!(durable.load(Ordering::SeqCst) >= mine);
                    }
                });
            }
        });
        assert!(!group.lead(0, sync, |_| {}), "no ticket is asked for");
        assert!(syncs.load(Ordering::SeqCst) <= 600);
    }

    #[test]
    fn a_leader_waits_for_as_many_connections_as_the_last_sync_point_served() {
        let group = Group::default();
        let sync = || {
            std::thread::sleep(Duration::from_millis(1));
            Ok(())
        };
        (0..3).for_each(|worker| _ = group.ticket(worker));
        assert!(group.is_due(Duration::ZERO), "none was served before");
        assert!(group.lead(0, sync, |_| {}));
        (0..2).for_each(|worker| _ = group.ticket(worker));
        assert!(!group.is_due(Duration::ZERO), "a third may come back");
        assert!(group.is_due(Duration::from_secs(1)), "it took less");
        group.ticket(2);
        assert!(group.is_due(Duration::ZERO));
    }

    #[test]
    fn a_failed_sync_point_fails_all_tickets_that_wait() {
        let group = Group::default();
        let ticket = group.ticket(0);
        group.run(Duration::ZERO, || Err(StoreError::System(5)), |_| {});
        assert_eq!(group.state_of(ticket), Ticket::Failed(StoreError::System(5)));
        assert_eq!(group.state_of(ticket + 1), Ticket::Failed(StoreError::System(5)));
        assert_eq!(group.state_of(0), Ticket::Durable);
    }

    #[test]
    fn a_full_disk_fails_its_tickets_and_is_tried_again() {
        let group = Group::default();
        let (full, seen) = (StoreError::System(28), AtomicU64::new(0));
        let first = group.ticket(3);
        let sync = || {
            let n = seen.fetch_add(1, Ordering::SeqCst);
            if n < 2 { Err(full) } else { Ok(()) }
        };
        let wake = |worker| {
            assert_eq!(worker, 3);
            if seen.load(Ordering::SeqCst) > 1 {
                return;
            }
            assert_eq!(group.state_of(first), Ticket::Failed(full));
            assert_eq!(group.state_of(first + 1), Ticket::Waits);
        };
        std::thread::scope(|scope| {
            let syncing = scope.spawn(|| group.run(Duration::ZERO, sync, wake));
            // The third attempt makes the records durable, without a new ticket.
            while group.state_of(first) != Ticket::Durable {
                std::thread::yield_now();
            }
            // Served before the stop or by it.
            let last = group.ticket(3);
            group.stop();
            syncing.join().unwrap();
            assert_eq!(group.state_of(last), Ticket::Durable);
        });
        assert_eq!(seen.load(Ordering::SeqCst), 4);
    }
}
