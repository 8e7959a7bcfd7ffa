//! `llfree-fig9`: lists of free frames against LLFree (figure 9, §5.4).

use super::llfree::{Grid, findings, measure, over_threads, threads};
use super::{Ask, Findings};
use crate::frames::Design;

/// Bulk gets with 1 and 26 cores.
const PAPER: [(&str, [f64; 2]); 4] = [
    ("LLFree", [49.0, 48.0]),
    ("ListLocked", [35.0, 32754.0]),
    ("ListCAS", [33.0, 8945.0]),
    ("ListLocal", [19.0, 75.0]),
];

pub fn run(ask: &Ask<'_>) -> Result<Findings, String> {
    let ours = Design::here().into_iter().filter(|design| *design != Design::Buddy && !design.persists());
    let designs = ours.chain(Design::authors()).collect();
    let grid = Grid { designs, orders: vec![0], threads: threads() };
    let rows = measure(ask, &grid)?;
    findings(ask, rows, &paper(), |sheet| over_threads(sheet, &[0]))
}

fn paper() -> String {
    let line = |(name, [one, all]): (&str, [f64; 2])| format!("{name}: {one}, {all}\n");
    let lines: String = PAPER.into_iter().map(line).collect();
    format!("the paper's figures for a bulk get with 1 and 26 cores of a Xeon Gold 5320, 2.2 GHz, 128 GiB\n{lines}")
}
