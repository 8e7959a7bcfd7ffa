//! `temeraire-fig10`: how many free hugepages the cache keeps under a demand that swings, and then does not.
//!
//! **What.** Spans of four hugepages are taken one after the other until demand is high, then most are given back at once: a saw,
//! ten teeth of it. Then demand stays low. Over time: demand, demand with what may be kept free on top, and memory.
//!
//! **From.** TEMERAIRE Figure 10, there of a program that learns; §4.3. What to see: the first fall is followed to the
//! system; when demand comes back, the cache's limit grows with it, and later teeth cost no call; some two
//! seconds after the last the limit is back at its least.
//!
//! **State.** Full: 8 GiB at the top. Quick: 1 GiB.

use super::world::{SECOND_NS, State, World};
use super::{Ask, Experiment, Findings, simulation};
use craton_base::{Density, HugePages, PageRange};
use craton_lab::document::Document;
use craton_lab::format::{Column, bytes, table_of};
use craton_lab::picture::{Axis, Unit};
use serde::Serialize;

/// The experiment, in the list.
pub const EXPERIMENT: Experiment = Experiment {
    name: "temeraire-fig10",
    about: "the hugepage cache under a demand that swings like a saw and then stops",
    answers: "TEMERAIRE figure 10",
    run,
};

const FULL_BYTES: u64 = 8 << 30;
const QUICK_BYTES: u64 = 1 << 30;
/// Length of a span.
const SPAN: HugePages = HugePages(4);
const TEETH: u64 = 10;
/// From one fall to the next: shorter than the window of two seconds.
const TOOTH_NS: u64 = SECOND_NS;
const END_NS: u64 = TEETH * TOOTH_NS + 6 * SECOND_NS;
const STEP_NS: u64 = SECOND_NS / 100;
/// What stays when demand falls, of a hundred.
const LOW_PERCENT: u64 = 25;

/// A row of the document.
#[derive(Clone, Copy, Serialize)]
struct SawRow {
    time_s: f64,
    demand_bytes: u64,
    limit_bytes: u64,
    backed_bytes: u64,
    /// Calls to the system since the start.
    system_calls: u64,
    status: &'static str,
}

fn run(ask: &Ask<'_>) -> Result<Findings, String> {
    simulation::check::<&str, ()>(ask, EXPERIMENT.name, &[])?;
    let rows = play(if ask.quick { QUICK_BYTES } else { FULL_BYTES })?;
    simulation::findings(ask, EXPERIMENT.name, rows, show, |document| vec![(String::new(), picture(document))])
}

/// The part of the top that is wanted at a time, of a hundred: from the low at the start of a tooth up to all of it.
fn wanted_percent(now_ns: u64) -> u64 {
    if now_ns >= TEETH * TOOTH_NS {
        return LOW_PERCENT;
    }
    // Up over nine tenths of the tooth, then level, so that the fall is one.
    let part = (now_ns % TOOTH_NS * 10 / 9).min(TOOTH_NS);
    LOW_PERCENT + (100 - LOW_PERCENT) * part / TOOTH_NS
}

fn play(top_bytes: u64) -> Result<Vec<SawRow>, String> {
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
        rows.push(SawRow {
            time_s: now_ns as f64 / SECOND_NS as f64,
            demand_bytes: used,
            limit_bytes: limit,
            backed_bytes: backed,
            system_calls: world.system_calls(),
            status: "ok",
        });
    }
    Ok(rows)
}

/// The row at a time, or the last before it.
fn at(rows: &[SawRow], time_s: f64) -> Option<&SawRow> {
    rows.iter().rfind(|row| row.time_s <= time_s + 1e-9)
}

fn show(rows: &[SawRow]) -> String {
    let columns: [Column<(u64, u64, SawRow)>; 5] = [
        ("second", |(second, ..)| second.to_string()),
        ("demand", |(.., row)| bytes(row.demand_bytes)),
        ("may be kept", |(.., row)| bytes(row.limit_bytes)),
        ("memory", |(.., row)| bytes(row.backed_bytes)),
        ("calls since the last", |(_, before, row)| (row.system_calls - before).to_string()),
    ];
    // The moment before the next tooth begins: demand is at its top.
    let end_of = |second: u64| at(rows, second as f64 - 0.01);
    let calls = |second| end_of(second).map_or(0, |row| row.system_calls);
    let seconds: Vec<_> = (1..=END_NS / SECOND_NS).filter_map(|s| Some((s, calls(s - 1), *end_of(s)?))).collect();
    let (end, table) = (TEETH * TOOTH_NS / SECOND_NS, table_of(&columns, &[], &seconds));
    format!("at the end of each second; the saw stops after {end}\n\n{table}")
}

fn picture(document: &Document<SawRow>) -> String {
    let line =
        |name, of: fn(&SawRow) -> u64| simulation::line(name, &document.rows, |row| (row.time_s, of(row) as f64));
    simulation::over_time(
        "The cache follows the first fall, then keeps what returns",
        "spans of 8 MiB under a demand that swings for ten seconds, in simulated memory; limit: free memory that may be kept",
        document,
        Axis::linear("memory", Unit::Bytes),
        vec![
            line("demand + limit", |row| row.demand_bytes + row.limit_bytes),
            line("with memory", |row| row.backed_bytes),
            line("demand", |row| row.demand_bytes),
        ],
    )
}

#[cfg(test)]
mod tests;
