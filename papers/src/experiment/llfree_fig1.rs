//! `llfree-fig1`: Linux's own allocator by CPUs (LLFree figure 1).

use super::llfree::{COLUMNS, over_threads};
use super::llfree_kernel::{Unit, guest, is_ours, rows};
use super::sheet::{Fields, Row, Sheet, table};
use super::{Ask, Findings};

const PAPER: &str = "the paper, 1 and 26 cores: 4 KiB 94 and 984 ns; 2 MiB slow down more\n";

pub fn run(ask: &Ask<'_>) -> Result<Findings, String> {
    let lines = guest(ask, Unit::Time)?;
    let wanted = |row: &Row| !is_ours(row) && row.word("workload") == "bulk" && matches!(row.int("order"), 0 | 9);
    let mut sheet = Sheet::new(ask, rows(&lines).into_iter().filter(wanted).collect());
    over_threads(&mut sheet, &[0, 9]);
    let times = table(&COLUMNS, sheet.rows().iter());
    sheet
        .findings(format!("emulated ns for each operation, the median over rounds and [the least]\n\n{times}\n{PAPER}"))
}
