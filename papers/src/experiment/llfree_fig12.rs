//! `llfree-fig12`: the paper's write benchmark in Linux on page frames and on its buddy allocator,
//! and where the instructions are spent (LLFree figures 12, 13; docs/linux.md).

use super::llfree_linux::{BUDDY, guest};
use super::sheet::{
    Column, Fields, Map, Row, Sheet, Show, Title, distinct, geomean, groups, json, pairs, percent, table,
};
use super::{Ask, Findings};
use craton_lab::picture::{Axis, Unit};
use craton_lab::ratios::OURS;
use craton_lab::summary::Spread;

const ROUNDS: usize = 3;
const FIGURES: [&str; 2] = ["populate", "free"];

const PAPER: &str =
    "the paper, 1 to 26 cores and 128 GiB: no significant difference; the page allocator is 5.3 % of the time\n";

const COLUMNS: [Column; 6] = [
    ("order", "order", Show::Plain),
    ("CPUs", "threads", Show::Plain),
    ("allocator", "allocator", Show::Text),
    ("pages", "blocks", Show::Count),
    ("populate", "populate", Show::Fixed(1, "")),
    ("free", "free", Show::Fixed(1, "")),
];

const PARTS: [Column; 5] = [
    ("order", "order", Show::Plain),
    ("allocator", "allocator", Show::Text),
    ("part", "part", Show::Text),
    ("instructions", "instructions", Show::Count),
    ("", "", Show::By(|row| percent(row.num("share"), 2))),
];

pub fn run(ask: &Ask<'_>) -> Result<Findings, String> {
    let rounds = [("ROUNDS", ask.rounds(1, ROUNDS))];
    let mut rows = rows(&guest(ask, "write", &rounds)?);
    let figures = table(&COLUMNS, rows.iter());
    let mut parts = guest(ask, "parts", &rounds)?;
    parts.retain(|line| line.word("step") == "parts");
    parts.sort_by_key(|row| (row.int("order"), row.word("allocator").to_owned(), u64::MAX - row.int("instructions")));
    let spent = table(&PARTS, parts.iter());
    rows.extend(parts.iter().cloned());
    let mut sheet = Sheet::new(ask, rows).measured()?;
    let text = sheet.ratios(ratios, 4);
    let names: Vec<String> = distinct(&parts, |row| row.word("part").to_owned());
    let place = |row: &Row| format!("{}, order {}", row.word("allocator"), row.int("order"));
    let bars = groups(&parts, place, (&names, |row: &Row| row.word("part").to_owned()), |row| row.num("share"));
    let title = Title("", "Where Linux's write benchmark spends its instructions", "one emulated CPU, 512 MiB");
    sheet.bars(title, Axis::linear("part of all instructions", Unit::Part), &names, bars, None);
    sheet.findings(format!(
        "instructions for each page, the median over rounds\n\n{figures}\n{text}\nwhere they are spent\n\n{spent}\n{PAPER}"
    ))
}

/// One for each allocator, order and number of CPUs.
fn rows(lines: &[Row]) -> Vec<Row> {
    let rounds: Vec<&Row> = lines.iter().filter(|line| line.word("step") == "write").collect();
    let same = ["allocator", "order", "cpus"];
    distinct(rounds.iter().copied(), |line| same.map(|field| line[field].clone()))
        .into_iter()
        .map(|[allocator, order, cpus]| {
            let of = |line: &&&Row| line["allocator"] == allocator && line["order"] == order && line["cpus"] == cpus;
            let each = |figure: &'static str| {
                let values = rounds.iter().filter(of).map(move |line| line.num(figure) / line.num("blocks"));
                Spread::of(values.filter(|value| value.is_finite())).map(|spread| spread.median)
            };
            let blocks = rounds.iter().find(of).map_or(0, |line| line.int("blocks"));
            json!({
                "allocator": allocator, "order": order, "threads": cpus, "blocks": blocks,
                "populate": each("populate"), "free": each("free"),
            })
        })
        .collect()
}

fn ratios(rows: &[Row]) -> Map {
    let who = |name: &'static str| move |row: &Row| row.word("allocator") == name;
    let mut ratios = Map::new();
    for figure in FIGURES {
        for order in [0, 9] {
            let of: Vec<Row> = rows.iter().filter(|row| row.int("order") == order).cloned().collect();
            let all = pairs(&of, figure, (&who(OURS), &who(BUDDY)), &["threads"]);
            if !all.is_empty() {
                ratios.insert(format!("{figure}_order{order}_instructions_vs_{BUDDY}"), geomean(&all));
            }
        }
    }
    ratios
}

#[cfg(test)]
mod tests;
