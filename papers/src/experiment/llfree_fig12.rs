//! `llfree-fig12`: the paper's write benchmark in Linux on page frames and on its buddy allocator
//! (LLFree figure 12; docs/linux.md).

use super::llfree_linux::{BUDDY, guest};
use super::sheet::{Column, Fields, Map, Row, Sheet, Show, Title, distinct, geomean, groups, json, pairs, table};
use super::{Ask, Findings};
use craton_lab::picture::{Axis, Unit};
use craton_lab::ratios::OURS;
use craton_lab::summary::Spread;

pub const ROUNDS: usize = 3;
const FIGURES: [&str; 2] = ["populate", "free"];

const PAPER: &str = "the paper, 1 to 26 cores and 128 GiB: no significant difference\n";

const COLUMNS: [Column; 6] = [
    ("order", "order", Show::Plain),
    ("CPUs", "threads", Show::Plain),
    ("allocator", "allocator", Show::Text),
    ("pages", "blocks", Show::Count),
    ("populate", "populate", Show::Fixed(1, "")),
    ("free", "free", Show::Fixed(1, "")),
];

pub fn run(ask: &Ask<'_>) -> Result<Findings, String> {
    let rows = rows(&guest(ask, "write", &[("ROUNDS", ask.rounds(1, ROUNDS))])?);
    let figures = table(&COLUMNS, rows.iter());
    let bars = bars(&rows);
    let mut sheet = Sheet::new(ask, rows).measured()?;
    let text = sheet.ratios(ratios, 4);
    let names = [BUDDY, OURS].map(str::to_owned);
    let place = |row: &Row| row.word("place").to_owned();
    let bars = groups(&bars, place, (&names, |row: &Row| row.word("allocator").to_owned()), |row| row.num("ratio"));
    let title = Title("", "Linux's write benchmark on both allocators", "instructions of one emulated CPU, 512 MiB");
    sheet.bars(title, Axis::linear("instructions ÷ the buddy allocator's", Unit::Ratio), &names, bars, Some(1.0));
    sheet.findings(format!("instructions for each page, the median over rounds\n\n{figures}\n{text}\n{PAPER}"))
}

/// Each figure by the buddy allocator's.
fn bars(rows: &[Row]) -> Vec<Row> {
    let of_buddy = |like: &Row, figure: &str| {
        let is_its = |row: &&Row| {
            row.word("allocator") == BUDDY && ["order", "threads"].iter().all(|field| row[*field] == like[*field])
        };
        rows.iter().find(is_its).map(|row| row.num(figure))
    };
    let bar = |figure: &str, row: &Row| {
        let ratio = row.num(figure) / of_buddy(row, figure)?;
        let place = format!("{figure}, order {}", row.int("order"));
        Some(json!({"place": place, "allocator": row["allocator"], "ratio": ratio}))
    };
    FIGURES.iter().flat_map(|figure| rows.iter().filter_map(|row| bar(figure, row))).collect()
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
