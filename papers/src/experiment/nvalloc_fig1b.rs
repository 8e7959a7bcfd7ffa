//! `nvalloc-fig1b`: how much memory allocators need when the sizes of objects change.
//!
//! **What.** Fragbench W1 to W4 on each allocator: the peak resident set, and its ratio to the live data. Slabs of one size
//! class that cannot serve another keep memory that is free.
//!
//! **From.** NVAlloc §3.2, Table 1 and figure 1(b), there with persistent allocators beside volatile ones. What differs:
//! the peak here is the resident set of the whole process, less the benchmark's list of its live objects.
//!
//! **State.** Full: 1 GiB of live data as in the paper, one round. Quick: a 64th of it.

use super::series::{self, Result};
use super::{Ask, Experiment, Findings};
use crate::work::{Load, SEED, fragbench};
use craton_lab::document::{Document, Row};
use craton_lab::format::{bytes, table};
use craton_lab::measure::Run;
use craton_lab::picture::{Axis, Bars, Direction, Estimate, Group, Unit};
use craton_lab::ratios::{BASE, OURS, Ratios, others};
use craton_lab::summary::{Figure, Spread, geomean, summarize};
use serde::Serialize;

/// The experiment, in the list.
pub const EXPERIMENT: Experiment = Experiment {
    name: "nvalloc-fig1b",
    about: "peak memory on Fragbench W1 to W4, as a ratio to the live data",
    answers: "NVAlloc figure 1(b), Table 1",
    run,
};

/// Amounts of work, in percent of the workload's full load.
const FULL: u64 = fragbench::PAPER_PERCENT;
const QUICK: u64 = FULL / 64;

/// A row of the document: a run, and the live data that it held at its peak.
#[derive(Serialize)]
struct FragRow {
    #[serde(flatten)]
    row: Row,
    live_bytes: u64,
    /// What the benchmark's own list takes, which is not counted.
    list_bytes: u64,
    peak_per_live: f64,
}

/// The peak resident set without the list, divided by the live data; 0 where there are none.
fn per_live(peak: f64, live_bytes: u64, list_bytes: u64) -> f64 {
    if live_bytes == 0 { 0.0 } else { (peak - list_bytes as f64) / live_bytes as f64 }
}

fn run(ask: &Ask<'_>) -> std::result::Result<Findings, String> {
    let percent = if ask.quick { QUICK } else { FULL };
    let program = super::craton_work(ask)?;
    let (allocators, refused) = series::prove(ask, vec![program.clone(), "list".into()]);
    let mut cases = fragbench::NAMES.iter().map(|name| super::workload(&program, name, percent)).collect();
    super::only(ask, &mut cases)?;
    let mut results = series::measure(ask, &allocators, cases, ask.runs.unwrap_or(1), 0);
    if results.is_empty() {
        return Err("nothing was measured".to_owned());
    }
    let live = |name: &str| fragbench::at_peak(name, &Load { threads: 1, percent, seed: SEED });
    if !refused.is_empty() {
        results.push(Result { name: "proof".to_owned(), runs: refused });
    }
    let with_live = |result: &Result, run: &Run| {
        let row = Row::new(&result.name, run);
        let (live_bytes, list_bytes) = live(&result.name).unwrap_or_default();
        let peak_per_live = per_live(row.peak_rss_bytes as f64, live_bytes, list_bytes);
        FragRow { row, live_bytes, list_bytes, peak_per_live }
    };
    let rows = results.iter().flat_map(|result| result.runs.iter().map(|run| with_live(result, run))).collect();
    let ratios = Ratios::of(&Result::runs(&results), OURS);
    let document = Document::new(EXPERIMENT.name, ask.command, ask.allocators, rows, &ratios);
    Ok(Findings {
        text: show(&results, live),
        pictures: vec![(String::new(), picture(&results, &document))],
        failed: Result::failed(&results),
        document: super::text(&document)?,
    })
}

/// Workloads down, allocators across: peak memory per live data.
fn show(results: &[Result], live: impl Fn(&str) -> Option<(u64, u64)>) -> String {
    let workloads = Result::runs(results);
    let names = others(&workloads, "");
    let mut rows: Vec<Vec<String>> =
        vec![["", "live data"].into_iter().chain(names.iter().copied()).map(str::to_owned).collect()];
    for result in results {
        let Some((live, list)) = live(&result.name) else { continue };
        let cell = |name: &&str| match summarize(&result.runs, name).and_then(|s| s.spread(Figure::PeakRss)) {
            Some(spread) => format!("{:.2}", per_live(spread.median, live, list)),
            None => series::status(&result.runs, name),
        };
        rows.push([vec![result.name.clone(), bytes(live)], names.iter().map(cell).collect()].concat());
    }
    let mean = |name: &&str| match *name {
        BASE => "1.00".to_owned(),
        _ => {
            geomean(&workloads, name, BASE, Figure::PeakRss).map_or("-".to_owned(), |r| format!("{:.2}", r.of_medians))
        }
    };
    rows.push([vec![format!("resident set, vs {BASE}"), String::new()], names.iter().map(mean).collect()].concat());
    format!(
        "peak resident set, without the benchmark's list of objects, divided by live data\n\n{}",
        table(&rows, &[0])
    )
}

/// A group of bars for each workload.
fn picture(results: &[Result], document: &Document<FragRow>) -> String {
    let workloads = Result::runs(results);
    let names = others(&workloads, "");
    let ratio = |workload: &str, allocator: &str| {
        let of =
            |row: &&FragRow| row.row.workload == workload && row.row.allocator == allocator && row.row.status == "ok";
        Spread::of(document.rows.iter().filter(of).map(|row| row.peak_per_live))
            .map(|s| Estimate::between(s.median, s.min, s.max))
    };
    let groups = results.iter().filter(|result| fragbench::NAMES.contains(&result.name.as_str())).map(|result| Group {
        name: result.name.clone(),
        bars: names.iter().map(|name| ratio(&result.name, name)).collect(),
    });
    Bars {
        heading: super::heading(
            "Peak memory when sizes change",
            "Fragbench W1 to W4: peak resident set per live data",
            document,
        ),
        axis: Axis::linear("peak resident set ÷ live data", Unit::Ratio),
        series: names.iter().map(|name| (*name).to_owned()).collect(),
        groups: groups.collect(),
        reference: Some(1.0),
        direction: Direction::Up,
        width_px: 900.0,
    }
    .svg()
}
