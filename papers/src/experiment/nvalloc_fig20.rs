//! `nvalloc-fig20`: small objects where caches persist (NVAlloc §6.7).

use super::nvalloc::{FULL_ROUNDS, check, grid, measure, note, speeds, threads};
use super::nvalloc_fig9::LOADS;
use super::{Ask, Findings};
use crate::heaps::{Kind, Load, Mode};

const PAPER: &str = "\
the paper's figures, flushes removed: NVAlloc-LOG 2.4 times as fast as the others on average
";

pub fn run(ask: &Ask<'_>) -> Result<Findings, String> {
    check(ask, &LOADS)?;
    let mut cells = grid(ask, &LOADS, &[Kind::CratonLog, Kind::Pmdk, Kind::Nvalloc], &[Mode::None], &threads());
    cells.retain(|cell| cell.load != Load::ProdCon || cell.threads > 1 || threads().len() == 1);
    let rows = measure(ask, cells, ask.rounds(1, FULL_ROUNDS))?;
    speeds(ask, rows, "Small objects where caches persist", &format!("{PAPER}{}", note(Kind::Nvalloc)))
}
