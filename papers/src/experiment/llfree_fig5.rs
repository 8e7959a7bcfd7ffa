//! `llfree-fig5`: the cost of a get and a put of each order (LLFree figure 5).

use super::llfree::{FIGURES, Grid, Of, done, findings, measure, picture, threads};
use super::sheet::Sheet;
use super::{Ask, Findings};
use crate::frames::{Design, MAX_ORDER};
use craton_lab::picture::{Axis, Unit};

const MOST_THREADS: usize = 8;

/// ns on 8 cores: bulk get, bulk put, random put, repeat pair.
const PAPER: [[f64; 11]; 4] = [
    [48.5, 49.0, 49.3, 49.8, 51.3, 55.0, 76.8, 77.3, 96.8, 48.3, 46.8],
    [41.5, 41.5, 41.0, 41.5, 41.5, 42.0, 42.5, 52.0, 70.5, 30.5, 33.8],
    [102.5, 102.3, 102.3, 98.3, 99.0, 98.8, 99.0, 105.3, 119.5, 86.3, 89.3],
    [91.0, 91.3, 90.8, 90.5, 90.5, 91.0, 139.0, 148.3, 183.8, 76.8, 69.0],
];

pub fn run(ask: &Ask<'_>) -> Result<Findings, String> {
    let ours = [Design::Craton, Design::Strict, Design::Buddy];
    let grid = Grid {
        designs: ours.into_iter().chain(Design::authors()).collect(),
        orders: (0..=MAX_ORDER).collect(),
        threads: vec![threads().last().copied().unwrap_or(1).min(MOST_THREADS)],
    };
    let rows = measure(ask, &grid)?;
    findings(ask, rows, &paper(), draw)
}

fn paper() -> String {
    let line = |((of, what), figures): (Of, [f64; 11])| {
        format!("{} {what}: {}\n", of.name(), figures.map(|ns| format!("{ns:.1}")).join(", "))
    };
    let lines: String = FIGURES.into_iter().zip(PAPER).map(line).collect();
    format!("the paper's figures at orders 0 to 10, 8 cores of a Xeon Gold 5320, 2.2 GHz, 128 GiB\n{lines}")
}

fn draw(sheet: &mut Sheet) {
    for figure in done(sheet) {
        picture(sheet, figure, ("", ""), (Axis::linear("order", Unit::Count), "order"), |_| true);
    }
}
