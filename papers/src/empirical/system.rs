//! A simulated system's hugepages, and forks.

use craton_sim::{SimFloor, ThpMode, VirtualClock};

#[derive(Clone, Copy, PartialEq, Debug)]
pub struct System {
    pub thp: ThpMode,
    /// Of the largest target.
    pub frames_percent: Option<u32>,
    pub failing_percent: u32,
    /// 0: none.
    pub fork_every_s: u32,
}

/// It writes the heap to a file.
const CHILD_S: f64 = 10.0;
/// Measured on idle machines.
const COLLAPSE_NS: u64 = 1_000_000;

impl System {
    pub const PLENTY: Self = Self { thp: ThpMode::Madvise, frames_percent: None, failing_percent: 0, fork_every_s: 0 };

    pub fn prepare(&self, floor: &SimFloor, clock: &VirtualClock, bytes: u64, seed: u64) {
        let hugepages = bytes.div_ceil(craton_base::HUGEPAGE_SIZE as u64);
        let frames = |percent| (hugepages * u64::from(percent) / 100) as u32;
        floor.set_free_frames(self.frames_percent.map(frames));
        floor.set_failing_frames(self.failing_percent, seed);
        floor.set_collapse_cost(clock.clone(), COLLAPSE_NS);
    }

    /// Whether a child is running.
    pub fn fork(&self, floor: &SimFloor, now_s: f64) -> bool {
        if self.fork_every_s == 0 {
            return false;
        }
        let every_s = f64::from(self.fork_every_s);
        let due = now_s >= every_s && now_s % every_s < CHILD_S.min(every_s / 2.0);
        match (due, floor.is_forked()) {
            (true, false) => floor.fork(),
            (false, true) => floor.end_child(),
            _ => {}
        }
        due
    }
}
