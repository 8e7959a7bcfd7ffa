//! `nvalloc-fig11`: where the gain comes from (NVAlloc §6.2).
//!
//! Base has one stripe, and each operation writes its bitmap and slot back; +interleaved has six
//! stripes; +log leaves the write-back to the redo lines. The paper's +Log is its bookkeeping log,
//! which ours has in all steps.

use super::nvalloc::{Cell, FULL_ROUNDS, check, grid, measure, speeds};
use super::{Ask, Findings};
use crate::heaps::{Kind, Load, Mode};

const LOADS: [Load; 3] = [Load::Threadtest, Load::LarsonSmall, Load::Dbmstest];

const PAPER: &str = "\
the paper's figures, 8 threads: flushes take 87 % of Base's time on Threadtest; +Interleaved takes 35 % off, the whole 48 % off the time of
flushes; on Larson-small 31 % off the time; on DBMStest +Log takes 45 % off the time of flushes, interleaving 26 % more
";

pub fn run(ask: &Ask<'_>) -> Result<Findings, String> {
    check(ask, &LOADS)?;
    let steps = |cell: Cell| {
        let eager = |name| cell.clone().with("eager", true, name);
        [
            eager(", base").with("stripes", 1, ""),
            eager(", +interleaved").with("stripes", 6, ""),
            cell.with("stripes", 6, ", +log"),
        ]
    };
    let cells = |mode| grid(ask, &LOADS, &[Kind::CratonLog], &[mode], &[1]).into_iter().flat_map(steps).collect();
    let mut rows = measure(ask, cells(Mode::Flush), ask.rounds(1, FULL_ROUNDS))?;
    rows.extend(measure(ask, cells(Mode::None), ask.rounds(1, FULL_ROUNDS))?);
    rows.extend(measure(ask, cells(Mode::Counted), 1)?);
    speeds(ask, rows, "Where the gain comes from", PAPER)
}
