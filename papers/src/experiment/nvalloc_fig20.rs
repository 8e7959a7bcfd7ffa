//! `nvalloc-fig20`: small objects where caches persist (NVAlloc §6.7).

use super::nvalloc::{FULL_ROUNDS, check, grid, measure, speeds, threads};
use super::nvalloc_fig9::LOADS;
use super::{Ask, Findings};
use crate::heaps::{Kind, Load, Mode};

const PAPER: &str = "\
the paper's figures, flushes removed: NVAlloc-LOG 2.4 times as fast as the others on average
others on a machine as this one, without flushes, 1 thread, M ops/s of threadtest, shbench, larson-small: the authors' NVAlloc 19.7, 18.6,
13.1; PMDK 1.56, 1.93, 1.99
";

pub fn run(ask: &Ask<'_>) -> Result<Findings, String> {
    check(ask, &LOADS)?;
    let mut cells = grid(ask, &LOADS, &[Kind::CratonLog, Kind::Pmdk], &[Mode::None], &threads());
    cells.retain(|cell| cell.load != Load::ProdCon || cell.threads > 1 || threads().len() == 1);
    speeds(ask, measure(ask, cells, ask.rounds(1, FULL_ROUNDS))?, "Small objects where caches persist", PAPER)
}
