//! The system below a simulated run: its hugepages, and the forks of the program.
//!
//! **What.** A [`System`] has the number of free hugepage frames, the requests for one that fail,
//! and the times of forks that share the program's memory. Residency follows from faults.
//! when the program forks a child that shares its memory. Residency follows from faults.

use craton_sim::{SimFloor, ThpMode, VirtualClock};

/// The hugepages that the system gives, and how the program forks.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct System {
    /// When hugepages are given.
    pub thp: ThpMode,
    /// Hugepage frames, in percent of the largest target; `None` without end.
    pub frames_percent: Option<u32>,
    /// Requests of a hundred for a frame that fail.
    pub failing_percent: u32,
    /// Seconds between two forks; 0 for none.
    pub fork_every_s: u32,
}

/// Seconds that a child runs: it writes the heap to a file.
const CHILD_S: f64 = 10.0;
/// Processor time of a collapse, as measured on idle machines.
const COLLAPSE_NS: u64 = 1_000_000;

impl System {
    /// Hugepages where they are advised, without end.
    pub const PLENTY: Self = Self { thp: ThpMode::Madvise, frames_percent: None, failing_percent: 0, fork_every_s: 0 };

    /// Prepares the floor for a heap of at most `bytes` live.
    pub fn prepare(&self, floor: &SimFloor, clock: &VirtualClock, bytes: u64, seed: u64) {
        let hugepages = bytes.div_ceil(craton_base::HUGEPAGE_SIZE as u64);
        let frames = |percent| (hugepages * u64::from(percent) / 100) as u32;
        floor.set_free_frames(self.frames_percent.map(frames));
        floor.set_failing_frames(self.failing_percent, seed);
        floor.set_collapse_cost(clock.clone(), COLLAPSE_NS);
    }

    /// Forks, or ends the child, as is due; whether a child is running.
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
