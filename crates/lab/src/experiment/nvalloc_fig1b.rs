//! `nvalloc-fig1b`: how much memory allocators need when the sizes of objects change.
//!
//! **What.** Fragbench W1 to W4 on each allocator: the peak resident set, and its ratio to the live data. Slabs of one size
//! class that cannot serve another keep memory that is free.
//!
//! **From.** NVAlloc §3.2, Table 1 and figure 1(b), there with persistent allocators beside volatile ones. What differs:
//! the peak here is the resident set of the whole process, a few MiB of bookkeeping included.
//!
//! **State.** Full: 1 GiB of live data as in the paper, one round. Quick: a 64th of it.

use super::series::{self, Result};
use super::{Ask, Experiment, Findings};
use crate::document::{Document, Row};
use crate::format::{bytes, table};
use crate::measure::Run;
use crate::ratios::{BASE, OURS, Ratios, others};
use crate::summary::{Figure, geomean, summarize};
use crate::work::fragbench;
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
    peak_per_live: f64,
}

fn run(ask: &Ask<'_>) -> std::result::Result<Findings, String> {
    let percent = if ask.quick { QUICK } else { FULL };
    let (allocators, refused) = series::prove(ask, vec![ask.tools.work.clone().into(), "list".into()]);
    let mut cases = fragbench::NAMES.iter().map(|name| super::workload(ask, name, percent)).collect();
    super::only(ask, &mut cases)?;
    let mut results = series::measure(ask, &allocators, cases, ask.runs.unwrap_or(1), 0);
    if results.is_empty() {
        return Err("nothing was measured".to_owned());
    }
    let live = |name: &str| fragbench::live_bytes(name, percent);
    if !refused.is_empty() {
        results.push(Result { name: "proof".to_owned(), runs: refused });
    }
    let with_live = |result: &Result, run: &Run| {
        let (row, live_bytes) = (Row::new(&result.name, run), live(&result.name));
        FragRow { peak_per_live: row.peak_rss_bytes as f64 / live_bytes.max(1) as f64, row, live_bytes }
    };
    let rows = results.iter().flat_map(|result| result.runs.iter().map(|run| with_live(result, run))).collect();
    let ratios = Ratios::of(&Result::runs(&results), OURS);
    let document = Document::new(EXPERIMENT.name, ask.command, ask.allocators, rows, &ratios);
    Ok(Findings {
        text: show(&results, live),
        pictures: Vec::new(),
        failed: Result::failed(&results),
        document: serde_json::to_value(&document).map_err(|e| format!("cannot write the figures as JSON: {e}"))?,
    })
}

/// Workloads down, allocators across: peak memory per live data.
fn show(results: &[Result], live: impl Fn(&str) -> u64) -> String {
    let workloads = Result::runs(results);
    let names = others(&workloads, "");
    let mut rows = vec![["", "live data"].into_iter().chain(names.iter().copied()).map(str::to_owned).collect()];
    for result in results.iter().filter(|result| live(&result.name) > 0) {
        let live = live(&result.name);
        let cell = |name: &&str| match summarize(&result.runs, name).and_then(|s| s.spread(Figure::PeakRss)) {
            Some(spread) => format!("{:.2}", spread.median / live as f64),
            None => result.runs.iter().find(|run| run.allocator == **name).map_or("-".to_owned(), |r| r.status.to_string()),
        };
        rows.push([vec![result.name.clone(), bytes(live)], names.iter().map(cell).collect()].concat());
    }
    let mean = |name: &&str| match *name {
        BASE => "1.00".to_owned(),
        _ => geomean(&workloads, name, BASE, Figure::PeakRss).map_or("-".to_owned(), |r| format!("{:.2}", r.of_medians)),
    };
    rows.push([vec![format!("geomean, vs {BASE}"), String::new()], names.iter().map(mean).collect()].concat());
    format!("peak resident set divided by live data\n\n{}", table(&rows, &[0]))
}
