//! `llfree-fig1`: Linux's own allocator by CPUs (LLFree figure 1).

use super::llfree_kernel::{TURN_COLUMNS, TURNS_TEXT, draw_turns, is_ours, turns};
use super::sheet::{Fields, Row, Sheet, table};
use super::{Ask, Findings};

const PAPER: &str = "the paper, 1 and 26 cores: 4 KiB 94 and 984 ns; 2 MiB slow down more\n";

pub fn run(ask: &Ask<'_>) -> Result<Findings, String> {
    let wanted = |row: &Row| !is_ours(row) && row.word("workload") == "bulk";
    let rows: Vec<Row> = turns(ask)?.into_iter().filter(wanted).collect();
    let counted = table(&TURN_COLUMNS, &rows);
    let mut sheet = Sheet::new(ask, rows.clone()).measured()?;
    draw_turns(&mut sheet, &rows);
    sheet.findings(format!("{TURNS_TEXT}\n{counted}\n{PAPER}"))
}
