//! `nvalloc-fig10`: small objects on heaps that collect after a crash (NVAlloc §6.2).

use super::nvalloc::{FULL_ROUNDS, check, grid, measure, speeds, threads};
use super::nvalloc_fig9::LOADS;
use super::{Ask, Findings};
use crate::heaps::{Kind, Load, Mode};

const PAPER: &str = "\
the paper's figures, Optane: NVAlloc-GC up to 70 times as fast as Makalu and 6 times as Ralloc
others on a machine as this one, flushed, M ops/s of threadtest, shbench, larson-small with 1 thread: Ralloc 61, 48, 43; Makalu 8.7, 20,
23; the authors' NVAlloc with its small-object flushes left out 24.8, 18.7, 14.8; prod-con, 2 threads: 63, 13, 25.7
";

pub fn run(ask: &Ask<'_>) -> Result<Findings, String> {
    check(ask, &LOADS)?;
    let heaps = [Kind::CratonGc, Kind::CratonLog];
    let mut cells = grid(ask, &LOADS, &heaps, &[Mode::Flush, Mode::None], &threads());
    cells.retain(|cell| cell.load != Load::ProdCon || cell.threads > 1 || threads().len() == 1);
    speeds(ask, measure(ask, cells, ask.rounds(1, FULL_ROUNDS))?, "Small objects, collected after a crash", PAPER)
}
