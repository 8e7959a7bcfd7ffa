//! `nvalloc-fig12`: large objects, of which the first bytes are written to (NVAlloc §6.2).

use super::nvalloc::{FULL_ROUNDS, check, grid, measure, speeds, threads};
use super::{Ask, Findings};
use crate::heaps::{Kind, Load, Mode};

pub const LOADS: [Load; 2] = [Load::LarsonLarge, Load::Dbmstest];

const PAPER: &str = "\
the paper's figures, Optane: NVAlloc up to 40 times as fast as PMDK, 18 times as nvm_malloc, 55 times as PAllocator, 57 times as Makalu
others on a machine as this one, flushed, 1 thread, M ops/s of larson-large, DBMStest: PMDK 0.41, 0.51; the authors' NVAlloc 0.11, 1.06
(with its log's collection switched off: it crashes); nvm_malloc 0.06, 0.58; Makalu 0.06, 0.07
";

pub fn run(ask: &Ask<'_>) -> Result<Findings, String> {
    check(ask, &LOADS)?;
    let heaps = [Kind::CratonLog, Kind::CratonFrames, Kind::Pmdk];
    let mut rows =
        measure(ask, grid(ask, &LOADS, &heaps, &[Mode::Flush, Mode::None], &threads()), ask.rounds(1, FULL_ROUNDS))?;
    rows.extend(measure(ask, grid(ask, &LOADS, &heaps, &[Mode::Counted], &[1]), 1)?);
    speeds(ask, rows, "Large objects", PAPER)
}
