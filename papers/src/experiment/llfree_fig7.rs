//! `llfree-fig7`: the cost of a get and a put with more threads (LLFree figure 7).

use super::llfree::{Grid, findings, measure, over_threads, threads};
use super::{Ask, Findings};
use crate::frames::{Design, HUGE_ORDER};

const ORDERS: [u32; 2] = [0, HUGE_ORDER];

/// ns with 1, 2, 8 and 26 cores, at orders 0 and 9.
type Figure = (&'static str, [[f64; 4]; 2]);

/// On DRAM.
const PAPER: [Figure; 4] = [
    ("bulk get", [[49.0, 48.0, 48.0, 48.0], [44.0, 45.0, 47.0, 48.0]]),
    ("bulk put", [[41.0, 41.0, 41.0, 42.0], [29.0, 29.0, 29.0, 33.0]]),
    ("random put", [[53.0, 73.0, 102.0, 157.0], [36.0, 56.0, 86.0, 165.0]]),
    ("repeat pair", [[91.0, 91.0, 91.0, 91.5], [71.0, 70.0, 69.0, 69.0]]),
];

/// From the data that the authors publish.
const PAPER_PERSISTENT: [Figure; 4] = [
    ("bulk get", [[49.0, 48.0, 48.0, 48.0], [44.0, 45.0, 47.0, 48.0]]),
    ("bulk put", [[41.0, 41.0, 41.0, 41.5], [29.0, 29.0, 29.5, 33.0]]),
    ("random put", [[53.0, 74.0, 109.0, 155.0], [37.0, 56.0, 88.0, 158.5]]),
    ("repeat pair", [[91.0, 91.0, 91.5, 91.0], [72.0, 70.5, 69.0, 69.0]]),
];

pub fn run(ask: &Ask<'_>) -> Result<Findings, String> {
    let designs = Design::here().into_iter().chain(Design::authors()).collect();
    let grid = Grid { designs, orders: ORDERS.to_vec(), threads: threads() };
    let rows = measure(ask, &grid)?;
    findings(ask, rows, &paper(), |sheet| over_threads(sheet, &ORDERS))
}

fn paper() -> String {
    let cells = |ns: [f64; 4]| ns.map(|ns| ns.to_string()).join(", ");
    let line = |(name, [base, huge]): Figure| format!("{name}: {}; {}\n", cells(base), cells(huge));
    let lines = |figures: [Figure; 4]| figures.into_iter().map(line).collect::<String>();
    format!(
        "the paper's figures with 1, 2, 8, 26 cores of a Xeon Gold 5320, 2.2 GHz, 128 GiB, order 0; order 9\n{}\
         on persistent memory\n{}",
        lines(PAPER),
        lines(PAPER_PERSISTENT)
    )
}
