//! `nvalloc-fig14`: a persistent tree on the heaps (NVAlloc §6.3).

use super::nvalloc::{FULL_ROUNDS, check, grid, measure, speeds, threads};
use super::{Ask, Findings};
use crate::heaps::{Kind, Load, Mode};

const PAPER: &str = "\
the paper's figures, Optane: with NVAlloc-LOG 1.2 times as fast as with PMDK, 1.5 times as with nvm_malloc, 3.1 times as with
PAllocator; with NVAlloc-GC up to 35.4 % faster
others in a tree's place on a machine as this one, flushed, 1 thread, M ops/s: the authors' NVAlloc 1.23, nvm_malloc 1.02, PMDK 0.55,
Ralloc 3.4, Makalu 3.0
";

pub fn run(ask: &Ask<'_>) -> Result<Findings, String> {
    check(ask, &[])?;
    let (loads, heaps) = ([Load::Fptree], [Kind::CratonLog, Kind::CratonGc, Kind::Pmdk]);
    let mut rows =
        measure(ask, grid(ask, &loads, &heaps, &[Mode::Flush, Mode::None], &threads()), ask.rounds(1, FULL_ROUNDS))?;
    rows.extend(measure(ask, grid(ask, &loads, &heaps, &[Mode::Counted], &[1]), 1)?);
    speeds(ask, rows, "A persistent tree: half insert, half delete", PAPER)
}
