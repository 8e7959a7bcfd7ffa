//! What threads of a loom model may race on.

use super::Heap;
use craton_base::atomic::Ordering;
use craton_base::{Medium, Space};

impl<M: Medium + Space> Heap<M> {
    /// Touches atomics and objects' claims while one thread runs, which gets the first lane.
    pub fn touch(&self, objects: &[u64]) {
        for word in [&self.epoch, &self.settled, &self.counter, &self.generation, &self.now_ms] {
            word.load(Ordering::Relaxed);
        }
        self.tick();
        self.seats.are_many();
        for (index, lane) in self.lanes.iter().enumerate() {
            lane.epoch();
            lane.lock();
            lane.unlock();
            self.seats.locks(index as u32);
        }
        for unit in 0..self.medium.len() >> crate::layout::UNIT_SHIFT {
            self.units.get(unit << crate::layout::UNIT_SHIFT);
        }
        drop(self.enter(0));
        objects.iter().for_each(|at| self.units.unclaim(*at));
    }
}
