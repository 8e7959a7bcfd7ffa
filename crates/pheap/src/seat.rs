//! Which lane a thread uses.
//!
//! **What.** A thread takes a lane at its first operation on a heap and keeps it until it ends.
//! The next thread takes the lane with its cached objects. The last lane is shared by the threads
//! beyond the number of lanes.
//! **Threads.** The thread's own words; a lock where a lane is taken or released.

use std::cell::{Cell, RefCell};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError, Weak};

/// Numbers of open heaps, never used twice.
static HEAPS: AtomicU64 = AtomicU64::new(1);

/// A lane, and whether other threads use it too.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Seat {
    pub lane: u32,
    pub shared: bool,
}

/// The lanes of one open heap that no thread has.
pub struct Seats {
    heap: u64,
    shared: u32,
    free: Mutex<Vec<u32>>,
}

thread_local! {
    /// The heap used last, and the seat there.
    static LAST: Cell<(u64, Seat)> = const { Cell::new((0, Seat { lane: 0, shared: true })) };
    static HELD: Held = const { Held(RefCell::new(Vec::new())) };
}

struct Held(RefCell<Vec<(Weak<Seats>, u64, Seat)>>);

impl Drop for Held {
    fn drop(&mut self) {
        for (seats, _, seat) in self.0.borrow_mut().drain(..) {
            if let Some(seats) = seats.upgrade().filter(|_| !seat.shared) {
                seats.lock().push(seat.lane);
            }
        }
    }
}

impl Seats {
    pub fn new(lanes: u32) -> Arc<Self> {
        let free = (0..lanes - 1).rev().collect();
        Arc::new(Self { heap: HEAPS.fetch_add(1, Ordering::Relaxed), shared: lanes - 1, free: Mutex::new(free) })
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Vec<u32>> {
        self.free.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The calling thread's seat.
    #[inline]
    pub fn seat(self: &Arc<Self>) -> Seat {
        let (heap, seat) = LAST.try_with(Cell::get).unwrap_or((0, self.standing()));
        if heap == self.heap { seat } else { self.find() }
    }

    /// Where threads are that cannot have a lane.
    fn standing(&self) -> Seat {
        Seat { lane: self.shared, shared: true }
    }

    #[cold]
    #[inline(never)]
    fn find(self: &Arc<Self>) -> Seat {
        let seat = HELD.try_with(|held| {
            let mut held = held.0.borrow_mut();
            if let Some((_, _, seat)) = held.iter().find(|(_, heap, _)| *heap == self.heap) {
                return *seat;
            }
            held.retain(|(seats, ..)| seats.strong_count() > 0);
            let lane = self.lock().pop();
            let seat = lane.map_or(self.standing(), |lane| Seat { lane, shared: false });
            // A thread that shares looks again, at the next use after another heap's.
            if !seat.shared {
                held.push((Arc::downgrade(self), self.heap, seat));
            }
            seat
        });
        // While the thread's words end, it must not take a lane that it could not release.
        let Ok(seat) = seat else { return self.standing() };
        let _ = LAST.try_with(|last| last.set((self.heap, seat)));
        seat
    }
}
