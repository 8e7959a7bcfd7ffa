//! `temeraire-fig10`: free hugepages in the cache under a demand that swings, then stays (TEMERAIRE
//! Figure 10, §4.3).

use super::sheet::{Column, Fields, Row, Sheet, Show, Title, json, lines, table, with};
use super::world::{SECOND_NS, State, World};
use super::{Ask, Findings, simulation};
use craton_base::{Density, HugePages, PageRange};
use craton_lab::picture::{Axis, Unit};

const FULL_BYTES: u64 = 8 << 30;
const QUICK_BYTES: u64 = 1 << 30;
const SPAN: HugePages = HugePages(4);
const TEETH: u64 = 10;
/// Shorter than the window of two seconds.
const TOOTH_NS: u64 = SECOND_NS;
const END_NS: u64 = TEETH * TOOTH_NS + 6 * SECOND_NS;
const STEP_NS: u64 = SECOND_NS / 100;
const LOW_PERCENT: u64 = 25;

const COLUMNS: [Column; 5] = [
    ("second", "second", Show::Plain),
    ("demand", "demand_bytes", Show::Bytes),
    ("may be kept", "limit_bytes", Show::Bytes),
    ("memory", "backed_bytes", Show::Bytes),
    ("calls since the last", "calls", Show::Plain),
];

pub fn run(ask: &Ask<'_>) -> Result<Findings, String> {
    simulation::check::<&str, ()>(ask, &[])?;
    let rows = play(ask.form(QUICK_BYTES, FULL_BYTES))?;
    let text = show(&rows);
    let mut sheet = Sheet::new(ask, rows);
    let title = Title(
        "",
        "The cache follows the first fall, then keeps what returns",
        "spans of 8 MiB under a demand that swings for ten seconds, in simulated memory; limit: free memory that may be kept",
    );
    let line = |name: &'static str, of: fn(&Row) -> u64| {
        lines(sheet.rows(), move |_| name.to_owned(), move |row| (row.num("time_s"), of(row) as f64))
    };
    let series = [
        line("demand + limit", |row| row.int("demand_bytes") + row.int("limit_bytes")),
        line("with memory", |row| row.int("backed_bytes")),
        line("demand", |row| row.int("demand_bytes")),
    ];
    let axes = (Axis::linear("simulated time", Unit::Seconds), Axis::linear("memory", Unit::Bytes));
    sheet.lines(title, axes, series.concat(), None);
    sheet.findings(text)
}

fn wanted_percent(now_ns: u64) -> u64 {
    if now_ns >= TEETH * TOOTH_NS {
        return LOW_PERCENT;
    }
    let part = (now_ns % TOOTH_NS * 10 / 9).min(TOOTH_NS);
    LOW_PERCENT + (100 - LOW_PERCENT) * part / TOOTH_NS
}

fn play(top_bytes: u64) -> Result<Vec<Row>, String> {
    let mut world: World = World::new(2 * top_bytes);
    let spans_at_top = top_bytes / SPAN.bytes().0 as u64;
    let mut spans: Vec<PageRange> = Vec::new();
    let mut rows = Vec::new();
    for now_ns in (0..=END_NS).step_by(STEP_NS as usize) {
        world.pass_until(now_ns);
        let wanted = (spans_at_top * wanted_percent(now_ns) / 100) as usize;
        while spans.len() < wanted {
            spans.push(world.alloc(SPAN.pages(), Density::Sparse)?);
        }
        for span in spans.drain(wanted..) {
            world.free(span, Density::Sparse);
        }
        let State { used, backed, limit, .. } = world.state();
        rows.push(json!({
            "time_s": now_ns as f64 / SECOND_NS as f64,
            "demand_bytes": used,
            "limit_bytes": limit,
            "backed_bytes": backed,
            "system_calls": world.system_calls(),
            "status": "ok",
        }));
    }
    Ok(rows)
}

fn at(rows: &[Row], time_s: f64) -> Option<&Row> {
    rows.iter().rfind(|row| row.num("time_s") <= time_s + 1e-9)
}

fn show(rows: &[Row]) -> String {
    let end_of = |second: u64| at(rows, second as f64 - 0.01);
    let calls = |second| end_of(second).map_or(0, |row| row.int("system_calls"));
    let second = |s| Some(with(end_of(s)?.clone(), &json!({ "second": s, "calls": calls(s) - calls(s - 1) }), "ok"));
    let seconds: Vec<Row> = (1..=END_NS / SECOND_NS).filter_map(second).collect();
    let (end, table) = (TEETH * TOOTH_NS / SECOND_NS, table(&COLUMNS, &seconds));
    format!("at the end of each second; the saw stops after {end}\n\n{table}")
}

#[cfg(test)]
mod tests;
