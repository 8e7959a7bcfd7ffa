//! `llfree-fig6`: page frames and Linux's buddy allocator in one kernel, by order (LLFree figure
//! 6).

use super::llfree::{COLUMNS, picture};
use super::llfree_kernel::{Unit, guest, ratios, rows};
use super::sheet::{Fields, Sheet, table};
use super::{Ask, Findings};
use crate::experiment::llfree::done;
use craton_lab::picture::{Axis, Unit as AxisUnit};

/// LLFree §5.2.
const PAPER: &str = "the paper, 8 cores: LLFree is about ten times faster in bulk and random; in repeat at order 0, \
    from per-CPU lists, Linux takes 112 ns and LLFree 183; without such lists LLFree is 100 times faster\n";

pub fn run(ask: &Ask<'_>) -> Result<Findings, String> {
    let counted = rows(&guest(ask, Unit::Instructions)?);
    let instructions = table(&COLUMNS, counted.iter());
    let mut of_instructions = ratios(&counted, Unit::Instructions);
    let timed = rows(&guest(ask, Unit::Time)?);
    let mut sheet = Sheet::new(ask, timed);
    let text = sheet.ratios(
        |rows| {
            of_instructions.extend(ratios(rows, Unit::Time));
            of_instructions
        },
        3,
    );
    for figure in done(&sheet) {
        let x = (Axis::linear("order", AxisUnit::Count), "order");
        picture(&mut sheet, figure, ("", ", 2 emulated CPUs, in Linux"), x, |row| row.num("threads") == 2.0);
    }
    let times = table(&COLUMNS, sheet.rows().iter());
    sheet.findings(format!(
        "instructions for each operation, on one CPU (they repeat)\n\n{instructions}\n\
         emulated ns for each operation, the median over rounds and [the least]\n\n{times}\n{text}\n{PAPER}"
    ))
}
