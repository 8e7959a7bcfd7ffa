//! Which lane a thread uses, until it ends: the next one gets the lane with its cached objects.
//! Threads beyond the number of lanes share the last.

use crate::sync::{Mutex, MutexGuard, words};
use craton_base::atomic::{AtomicBool, AtomicU64, Ordering};
use std::cell::{Cell, RefCell};
use std::sync::{Arc, PoisonError, Weak};

/// Never used twice.
static HEAPS: AtomicU64 = AtomicU64::new(1);

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Seat {
    pub lane: u32,
    pub shared: bool,
}

/// Of one open heap.
pub struct Seats {
    heap: u64,
    shared: u32,
    free: Mutex<Vec<u32>>,
    /// A second thread has come: threads lock their lanes from now on.
    many: AtomicBool,
    /// Lanes whose threads lock: all but perhaps the first thread's.
    locks: Box<[AtomicBool]>,
}

words! {
    /// The heap used last.
    static LAST: Cell<(u64, Seat)> = const { Cell::new((0, Seat { lane: 0, shared: true })) };
    static HELD: Held = const { Held(RefCell::new(Vec::new())) };
}

struct Held(RefCell<Vec<(Weak<Seats>, u64, Seat)>>);

impl Drop for Held {
    fn drop(&mut self) {
        // A failing model's words end outside of loom.
        if cfg!(loom) && std::thread::panicking() {
            return;
        }
        // A later destructor must not use the lane that another thread gets.
        let _ = LAST.try_with(|last| last.set((0, Seat { lane: 0, shared: true })));
        for (seats, _, seat) in self.0.borrow_mut().drain(..) {
            if let Some(seats) = seats.upgrade().filter(|_| !seat.shared) {
                // ORDERING: pairs with the acquire in `locks`.
                seats.locks[seat.lane as usize].store(true, Ordering::Release);
                seats.lock().push(seat.lane);
            }
        }
    }
}

impl Seats {
    pub fn new(lanes: u32) -> Arc<Self> {
        let free = (0..lanes - 1).rev().collect();
        Arc::new(Self {
            heap: HEAPS.fetch_add(1, Ordering::Relaxed),
            shared: lanes - 1,
            free: Mutex::new(free),
            many: AtomicBool::new(lanes == 1),
            locks: (0..lanes).map(|_| AtomicBool::new(true)).collect(),
        })
    }

    #[inline]
    pub fn are_many(&self) -> bool {
        self.many.load(Ordering::Relaxed)
    }

    #[inline]
    pub fn set_locks(&self, lane: u32) {
        if !self.locks[lane as usize].load(Ordering::Relaxed) {
            // ORDERING: pairs with the acquire in `locks`: unlocked operations have ended.
            self.locks[lane as usize].store(true, Ordering::Release);
        }
    }

    /// No operation of the lane runs without its lock.
    pub fn locks(&self, lane: u32) -> bool {
        // ORDERING: pairs with the releases in `set_locks` and `drop`.
        self.locks[lane as usize].load(Ordering::Acquire)
    }

    fn lock(&self) -> MutexGuard<'_, Vec<u32>> {
        self.free.lock().unwrap_or_else(PoisonError::into_inner)
    }

    #[inline]
    pub fn seat(self: &Arc<Self>) -> Seat {
        let (heap, seat) = LAST.try_with(Cell::get).unwrap_or((0, self.standing()));
        if heap == self.heap { seat } else { self.find() }
    }

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
            let mut free = self.lock();
            let is_first = free.len() + 1 == self.locks.len();
            if !is_first {
                self.many.store(true, Ordering::Relaxed);
            }
            let lane = free.pop();
            if let Some(lane) = lane {
                // ORDERING: pairs with the acquire in `locks`.
                self.locks[lane as usize].store(self.are_many(), Ordering::Release);
            }
            drop(free);
            let seat = lane.map_or(self.standing(), |lane| Seat { lane, shared: false });
            // A thread that shares tries again later.
            if !seat.shared {
                held.push((Arc::downgrade(self), self.heap, seat));
            }
            seat
        });
        // A thread whose words end could not release a lane.
        let Ok(seat) = seat else { return self.standing() };
        let _ = LAST.try_with(|last| last.set((self.heap, seat)));
        seat
    }
}
