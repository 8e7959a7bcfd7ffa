//! `nvalloc-fig21`: large objects where caches persist (NVAlloc §6.7).

use super::nvalloc::{FULL_ROUNDS, check, grid, measure, speeds, threads};
use super::nvalloc_fig12::LOADS;
use super::{Ask, Findings};
use crate::heaps::{Kind, Mode};

const PAPER: &str = "\
the paper's figures, flushes removed: NVAlloc-LOG 11 times as fast as the others on average
others on a machine as this one, without flushes, 1 thread, M ops/s of larson-large, DBMStest: PMDK 0.72, 0.95; the authors' NVAlloc
0.11, 1.76; nvm_malloc 0.06, 0.71
";

pub fn run(ask: &Ask<'_>) -> Result<Findings, String> {
    check(ask, &LOADS)?;
    let cells = grid(ask, &LOADS, &[Kind::CratonLog, Kind::Pmdk], &[Mode::None], &threads());
    speeds(ask, measure(ask, cells, ask.rounds(1, FULL_ROUNDS))?, "Large objects where caches persist", PAPER)
}
