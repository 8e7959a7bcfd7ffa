//! `llfree-fig11`: memcached in Linux on page frames and on its buddy allocator (LLFree figure 11).
//! Huge frames that are free once the page cache is dropped are ours: the paper has throughput
//! alone. So are the huge frames in which anonymous memory and page tables lie then.

use super::llfree_linux::{BUDDY, guest};
use super::sheet::{
    Column, Fields, Map, Row, Sheet, Show, Title, by, distinct, geomean, json, lines, pairs, percent, table,
};
use super::{Ask, Findings};
use craton_lab::picture::{Axis, Unit};
use craton_lab::ratios::OURS;

const TURNS: usize = 18;
const QUICK_TURNS: usize = 3;
const FRAMES_OF_HUGE: u64 = 512;

const PAPER: &str =
    "the paper, memtier on 1 to 26 cores: gets and sets for each millisecond show no significant difference\n";

const COLUMNS: [Column; 13] = [
    ("turn", "turn", Show::Plain),
    ("memcached", "phase", Show::Text),
    ("allocator", "allocator", Show::Text),
    ("its memory", "memcached_bytes", Show::Bytes),
    ("page cache", "cached_bytes", Show::Bytes),
    ("set", "set", Show::Fixed(0, "")),
    ("get", "get", Show::Fixed(0, "")),
    ("hits", "hits", Show::Percent(1)),
    ("free huge", "free_huge", Show::Plain),
    ("possible", "possible_huge", Show::Plain),
    ("anonymous in", "anonymous_huge", Show::Plain),
    ("page tables", "table_frames", Show::Plain),
    ("in", "table_huge", Show::Plain),
];

const ORDERS: [Column; 3] = [
    ("order", "order", Show::Plain),
    ("requests", "requests", Show::Count),
    ("", "", Show::By(|row| percent(row.num("part"), 2))),
];

pub fn run(ask: &Ask<'_>) -> Result<Findings, String> {
    let said = guest(ask, "memcached", &[("TURNS", ask.form(QUICK_TURNS, TURNS))])?;
    let mut rows = rows(&said);
    rows.sort_by_key(|row| row.int("turn"));
    let mut sheet = Sheet::new(ask, rows).measured()?;
    let ratios = sheet.ratios(ratios, 4);
    let figures = table(&COLUMNS, sheet.rows());
    let title = Title(
        "",
        "Huge frames beside memcached, once the page cache is dropped",
        "Linux in 512 MiB, one emulated CPU; memcached grows, is full, and starts again",
    );
    let mut series = lines(sheet.rows(), by("allocator"), |row| (row.num("turn"), row.num("free_huge")));
    let ours: Vec<Row> = sheet.rows().iter().filter(|row| row.word("allocator") == OURS).cloned().collect();
    series.extend(lines(&ours, |_| "possible".to_owned(), |row| (row.num("turn"), row.num("possible_huge"))));
    sheet.lines(
        title,
        (Axis::linear("turns", Unit::Count), Axis::linear("free huge frames", Unit::Count)),
        series,
        None,
    );
    let asked = table(&ORDERS, &orders(&said));
    sheet.findings(format!(
        "instructions for each set and get, by turns\n\n{figures}\n{ratios}\n\
         orders that Linux asked for meanwhile\n\n{asked}\n{PAPER}"
    ))
}

/// What page frames, which serve all orders, counted between the first and the last turn.
fn orders(said: &[Row]) -> Vec<Row> {
    let counted: Vec<&Row> =
        said.iter().filter(|line| line.word("step") == "counters" && line["get"].is_u64()).collect();
    let requests = |order: u64| {
        let of: Vec<u64> =
            counted.iter().filter(|line| line.int("order") == order).map(|line| line.int("get")).collect();
        // An order that nothing had asked for at first has one line.
        let first = if of.len() > 1 { of[0] } else { 0 };
        of.last().copied().unwrap_or(0) - first
    };
    let orders: Vec<(u64, u64)> = distinct(counted.iter().copied(), |line| line.int("order"))
        .into_iter()
        .map(|order| (order, requests(order)))
        .filter(|(_, requests)| *requests > 0)
        .collect();
    let all: u64 = orders.iter().map(|(_, requests)| requests).sum();
    let row = |(order, requests): &(u64, u64)| json!({ "order": order, "requests": requests, "part": *requests as f64 / all as f64 });
    let mut rows: Vec<Row> = orders.iter().map(row).collect();
    rows.sort_by_key(|row| row.int("order"));
    rows
}

/// One for each allocator and turn.
fn rows(lines: &[Row]) -> Vec<Row> {
    let row = |line: &Row| {
        let each = |sum: &str, count: &str| (line.int(count) > 0).then(|| line.num(sum) / line.num(count));
        json!({
            "allocator": line.word("allocator"),
            "turn": line.int("turn"),
            "phase": line.word("phase"),
            "memcached_bytes": line.int("memcached_bytes"),
            "cached_bytes": line.int("cached_bytes"),
            "set": each("set_ns", "sets"),
            "get": each("get_ns", "gets"),
            "hits": each("hits", "gets"),
            "refused": line.int("refused"),
            "free_huge_cached": line.int("free_huge_cached"),
            "free_huge": line.int("free_huge"),
            "anonymous_huge": line["anonymous"][1],
            "table_frames": line["tables"][0],
            "table_huge": line["tables"][1],
            "possible_huge": line.int("free_frames") / FRAMES_OF_HUGE,
            "split_huge": (line.int("free_frames") / FRAMES_OF_HUGE).saturating_sub(line.int("free_huge")),
        })
    };
    lines.iter().filter(|line| line.word("step") == "memcached").map(row).collect()
}

fn ratios(rows: &[Row]) -> Map {
    let who = |name: &'static str| move |row: &Row| row.word("allocator") == name;
    let mut ratios = Map::new();
    for (figure, name) in [("set", "set_instructions"), ("get", "get_instructions"), ("split_huge", "split_huge")] {
        for phase in distinct(rows, |row| row.word("phase")) {
            let of: Vec<Row> = rows.iter().filter(|row| row.word("phase") == phase).cloned().collect();
            let all = pairs(&of, figure, (&who(OURS), &who(BUDDY)), &["turn"]);
            if !all.is_empty() {
                ratios.insert(format!("{phase}_{name}_vs_{BUDDY}"), geomean(&all));
            }
        }
    }
    ratios
}

#[cfg(test)]
mod tests;
