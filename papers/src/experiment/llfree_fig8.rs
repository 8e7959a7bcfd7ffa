//! `llfree-fig8`: page frames and Linux's buddy allocator in one kernel, by CPUs (LLFree figure 8).

use super::llfree::{COLUMNS, over_threads};
use super::llfree_kernel::{Unit, guest, ratios, rows};
use super::sheet::{Fields, Sheet, table};
use super::{Ask, Findings};

const PAPER: &str = "the paper, 26 cores: Linux takes 7.3 times as long for a bulk get of 4 KiB, 13.5 for a random put; \
    for repeat LLFree is up to 65 % slower\n";

pub fn run(ask: &Ask<'_>) -> Result<Findings, String> {
    let lines = guest(ask, Unit::Time)?;
    let natural = |row: &super::sheet::Row| matches!(row.int("order"), 0 | 9);
    let mut sheet = Sheet::new(ask, rows(&lines).into_iter().filter(natural).collect());
    let ratios = sheet.ratios(|rows| ratios(rows, Unit::Time), 3);
    over_threads(&mut sheet, &[0, 9]);
    let times = table(&COLUMNS, sheet.rows().iter());
    sheet.findings(format!(
        "emulated ns for each operation, the median over rounds and [the least]\n\n{times}\n{ratios}\n{PAPER}"
    ))
}
