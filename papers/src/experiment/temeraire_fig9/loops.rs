//! A turn's system calls in simulated memory.

use crate::experiment::world::{SECOND_NS, World};
use craton_base::{Density, HUGEPAGE_SIZE, PAGE_SIZE, Pages};
use craton_pages::{Breaking, PageHeapExt};

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Loop {
    /// `Delete(New(512 KB))`, Figure 9.
    Drain,
    /// §4.4: 100 MiB, a page that stays, free the first.
    Strand,
}

pub const LOOPS: [(&str, Loop); 2] = [("drain", Loop::Drain), ("pathological", Loop::Strand)];

#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Played {
    pub calls: Vec<u64>,
    /// Beyond spans at the end.
    pub hugepages_over: u64,
    /// Hugepages that free memory may keep at the end.
    pub limit: u64,
}

impl Played {
    /// Over the second half.
    pub fn steady_calls(&self) -> f64 {
        let half = self.calls.len() / 2;
        let (Some(before), Some(last)) = (self.calls.get(half), self.calls.last()) else { return 0.0 };
        (last - before) as f64 / (self.calls.len() - 1 - half).max(1) as f64
    }
}

const DRAINED: Pages = Pages((512 << 10) / PAGE_SIZE as u32);
const LARGE: Pages = Pages((100 << 20) / PAGE_SIZE as u32 + 1);
const TURN_NS: u64 = SECOND_NS / 1000;

/// `at_once` gives free hugepages back after each turn.
pub fn play(which: Loop, turns: u32, at_once: bool) -> Result<Played, String> {
    let region = LARGE.bytes().0 as u64 * 4 + u64::from(turns) * HUGEPAGE_SIZE as u64;
    let mut world: World = World::new(region);
    // So that the loop's hugepage is not the first.
    for _ in 0..128 {
        world.alloc(Pages(100), Density::Sparse)?;
    }
    let mut calls = Vec::with_capacity(turns as usize);
    for turn in 1..=turns {
        match which {
            Loop::Drain => {
                let span = world.alloc(DRAINED, Density::Sparse)?;
                world.free(span, Density::Sparse);
            }
            Loop::Strand => {
                let large = world.alloc(LARGE, Density::Sparse)?;
                world.alloc(Pages(1), Density::Sparse)?;
                world.free(large, Density::Sparse);
            }
        }
        if at_once {
            world.heap.release_all(Breaking::Never);
        }
        world.pass_until(u64::from(turn) * TURN_NS);
        calls.push(world.system_calls());
    }
    let state = world.state();
    let hugepage = HUGEPAGE_SIZE as u64;
    Ok(Played {
        calls,
        hugepages_over: state.backed.saturating_sub(state.used).div_ceil(hugepage),
        limit: state.limit / hugepage,
    })
}

#[cfg(test)]
mod tests;
