//! `nvalloc-fig9`: small objects on heaps that lose none in a crash (NVAlloc §6.2).

use super::nvalloc::{FULL_ROUNDS, check, grid, measure, note, speeds, threads};
use super::{Ask, Findings};
use crate::heaps::{Kind, Load, Mode};

pub const LOADS: [Load; 4] = [Load::Threadtest, Load::ProdCon, Load::Shbench, Load::LarsonSmall];
const ALL: [Load; 5] = [Load::Threadtest, Load::ProdCon, Load::Shbench, Load::LarsonSmall, Load::Publish];

const PAPER: &str = "\
the paper's figures, Xeon Gold 5218R with Optane: NVAlloc-LOG up to 6.4 times as fast as PMDK, 3.5 times as nvm_malloc, 3.9 times as
PAllocator
";

pub fn run(ask: &Ask<'_>) -> Result<Findings, String> {
    check(ask, &ALL)?;
    let heaps = [Kind::CratonLog, Kind::Pmdk, Kind::Nvalloc];
    let mut cells = grid(ask, &ALL, &heaps, &[Mode::Flush, Mode::None], &threads());
    // A pair has two threads; batches are counted by one. The authors' code has none.
    cells.retain(|cell| match cell.load {
        Load::ProdCon => cell.threads > 1 || threads().len() == 1,
        Load::Publish => cell.threads == 1 && cell.heap != Kind::Nvalloc,
        _ => true,
    });
    let mut rows = measure(ask, cells, ask.rounds(1, FULL_ROUNDS))?;
    let counted: Vec<Load> = LOADS.into_iter().filter(|load| *load != Load::ProdCon).collect();
    let cells = grid(ask, &counted, &heaps[..2], &[Mode::Counted], &[1]);
    if !cells.is_empty() {
        rows.extend(measure(ask, cells, 1)?);
    }
    speeds(ask, rows, "Small objects, no object lost", &format!("{PAPER}{}", note(Kind::Nvalloc)))
}
