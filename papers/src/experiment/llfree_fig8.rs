//! `llfree-fig8`: page frames and Linux's buddy allocator in one kernel, by CPUs (LLFree figure 8).

use super::llfree::COLUMNS;
use super::llfree_kernel::{self, TURN_COLUMNS, TURNS_TEXT, Unit, draw_turns, guest, turn_ratios};
use super::sheet::{Fields, Row, Sheet, table};
use super::{Ask, Findings};

const PAPER: &str = "the paper, 26 cores: Linux takes 7.3 times as long for a bulk get of 4 KiB, 13.5 for a random put; \
    for repeat LLFree is up to 65 % slower\n";

pub fn run(ask: &Ask<'_>) -> Result<Findings, String> {
    let counted = llfree_kernel::turns(ask)?;
    let natural = |row: &Row| matches!(row.int("order"), 0 | 9);
    let timed: Vec<Row> = llfree_kernel::rows(&guest(ask, Unit::Time)?).into_iter().filter(natural).collect();
    let (of_turns, times) = (table(&TURN_COLUMNS, &counted), table(&COLUMNS, &timed));
    let mut sheet = Sheet::new(ask, counted.iter().chain(&timed).cloned().collect()).measured()?;
    let ratios = sheet.ratios(
        |_| {
            let mut all = turn_ratios(&counted);
            all.extend(llfree_kernel::ratios(&timed, Unit::Time));
            all
        },
        3,
    );
    draw_turns(&mut sheet, &counted);
    sheet.findings(format!(
        "{TURNS_TEXT}\n{of_turns}\n\
         emulated ns for each operation, the median over rounds and [the least]\n\n{times}\n{ratios}\n{PAPER}"
    ))
}
