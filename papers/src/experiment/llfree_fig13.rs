//! `llfree-fig13`: where Linux's write benchmark spends its instructions, on page frames and on the
//! buddy allocator (LLFree figure 13; docs/linux.md).

use super::llfree_fig12::ROUNDS;
use super::llfree_linux::guest;
use super::sheet::{Column, Fields, Row, Sheet, Show, Title, distinct, groups, percent, table};
use super::{Ask, Findings};
use craton_lab::picture::{Axis, Unit};

const PAPER: &str = "the paper, 1 to 26 cores and 128 GiB: the page allocator is 5.3 % of the time\n";

const COLUMNS: [Column; 5] = [
    ("order", "order", Show::Plain),
    ("allocator", "allocator", Show::Text),
    ("part", "part", Show::Text),
    ("instructions", "instructions", Show::Count),
    ("", "", Show::By(|row| percent(row.num("share"), 2))),
];

pub fn run(ask: &Ask<'_>) -> Result<Findings, String> {
    let rows = rows(guest(ask, "parts", &[("ROUNDS", ask.rounds(1, ROUNDS))])?);
    let spent = table(&COLUMNS, rows.iter());
    let names: Vec<String> = distinct(&rows, |row| row.word("part").to_owned());
    let place = |row: &Row| format!("{}, order {}", row.word("allocator"), row.int("order"));
    let bars = groups(&rows, place, (&names, |row: &Row| row.word("part").to_owned()), |row| row.num("share"));
    let mut sheet = Sheet::new(ask, rows).measured()?;
    let title = Title("", "Where Linux's write benchmark spends its instructions", "one emulated CPU, 512 MiB");
    sheet.bars(title, Axis::linear("part of all instructions", Unit::Part), &names, bars, None);
    sheet.findings(format!("where instructions are spent\n\n{spent}\n{PAPER}"))
}

/// Those of one order and allocator together, the largest part first.
fn rows(lines: Vec<Row>) -> Vec<Row> {
    let mut rows: Vec<Row> = lines.into_iter().filter(|line| line.word("step") == "parts").collect();
    rows.sort_by_key(|row| (row.int("order"), row.word("allocator").to_owned(), u64::MAX - row.int("instructions")));
    rows
}

#[cfg(test)]
mod tests;
