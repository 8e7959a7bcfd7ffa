//! A recurring event to wait for.
//!
//! **What.** A waiter reads the event's count, tests its condition, and else sleeps until the count
//! changes: an event between test and sleep ends the sleep at once.
//! **Threads.** The announcer changes its state first; both sides test under their lock, which
//! orders it.

use crate::futex;
use craton_base::atomic::{AtomicU32, Ordering::Relaxed};

/// Has never happened. All zeros.
#[derive(Debug, Default)]
pub struct Event {
    times: AtomicU32,
}

impl Event {
    /// Has never happened.
    pub const fn new() -> Self {
        Self { times: AtomicU32::new(0) }
    }

    /// How often it has happened, modulo 2³².
    pub fn times(&self) -> u32 {
        self.times.load(Relaxed)
    }

    /// Announces the event: wakes all sleepers.
    pub fn announce(&self) {
        self.times.fetch_add(1, Relaxed);
        futex::wake(&self.times, i32::MAX as u32);
    }

    /// Sleeps until the count exceeds `times`, at most `ns` nanoseconds, perhaps less.
    pub fn wait(&self, times: u32, ns: u64) {
        let time = libc::timespec { tv_sec: (ns / 1_000_000_000) as _, tv_nsec: (ns % 1_000_000_000) as _ };
        futex::wait(&self.times, times, &time);
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    extern crate std;
    use super::*;

    #[test]
    fn a_wait_ends_with_its_time_or_at_once_when_it_has_happened_meanwhile() {
        let event = Event::new();
        event.wait(event.times(), 1_000_000);
        let before = event.times();
        event.announce();
        event.wait(before, 600_000_000_000);
        assert_eq!(event.times(), before + 1);
    }

    #[test]
    fn all_sleepers_are_woken() {
        let event = Event::new();
        std::thread::scope(|s| {
            for _ in 0..3 {
                s.spawn(|| {
                    while event.times() == 0 {
                        event.wait(0, 600_000_000_000);
                    }
                });
            }
            std::thread::sleep(std::time::Duration::from_millis(20));
            event.announce();
        });
    }
}
