//! `nvalloc-fig1b`: memory of allocators when the sizes of objects change (NVAlloc §3.2, Table 1).

use super::ask::workload;
use super::series::{self, Result};
use super::sheet::{Fields, Row, Sheet, Title, json, with};
use super::{Ask, Findings};
use crate::work::{Load, SEED, fragbench};
use craton_lab::format::{bytes, table};
use craton_lab::picture::{Axis, Estimate, Group, Unit};
use craton_lab::ratios::{BASE, OURS, Ratios, others};
use craton_lab::summary::{Figure, Spread, geomean, summarize};

const FULL: u64 = fragbench::PAPER_PERCENT;
const QUICK: u64 = FULL / 64;

fn per_live(peak: f64, live_bytes: u64, list_bytes: u64) -> f64 {
    if live_bytes == 0 { 0.0 } else { (peak - list_bytes as f64) / live_bytes as f64 }
}

pub fn run(ask: &Ask<'_>) -> std::result::Result<Findings, String> {
    let percent = ask.form(QUICK, FULL);
    let program = ask.craton_work()?;
    let (allocators, refused) = series::prove(ask, vec![program.clone(), "list".into()]);
    let mut cases = fragbench::NAMES.iter().map(|name| workload(&program, name, percent)).collect();
    ask.choose(&mut cases)?;
    let mut results = series::measure(ask, &allocators, cases, ask.runs.unwrap_or(1), 0);
    if results.is_empty() {
        return Err("nothing was measured".to_owned());
    }
    let live = |name: &str| fragbench::at_peak(name, &Load { threads: 1, percent, seed: SEED });
    if !refused.is_empty() {
        results.push(Result { name: "proof".to_owned(), runs: refused });
    }
    let rows = Result::rows_with(&results, |result, row| {
        let (live_bytes, list_bytes) = live(&result.name).unwrap_or_default();
        let peak_per_live = per_live(row.num("peak_rss_bytes"), live_bytes, list_bytes);
        let status = row.word("status").to_owned();
        let more = json!({ "live_bytes": live_bytes, "list_bytes": list_bytes, "peak_per_live": peak_per_live });
        with(row, &more, &status)
    });
    let mut sheet = Sheet::new(ask, rows).compared(ask.allocators, &Ratios::of(&Result::runs(&results), OURS));
    draw(&mut sheet, &results);
    sheet.findings(show(&results, live))
}

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

fn draw(sheet: &mut Sheet, results: &[Result]) {
    let workloads = Result::runs(results);
    let names = others(&workloads, "");
    let ratio = |workload: &str, allocator: &str| {
        let of = |row: &&Row| row.has(&[("workload", workload), ("allocator", allocator), ("status", "ok")]);
        Spread::of(sheet.rows().iter().filter(of).map(|row| row.num("peak_per_live")))
            .map(|s| Estimate::between(s.median, s.min, s.max))
    };
    let groups = results.iter().filter(|result| fragbench::NAMES.contains(&result.name.as_str())).map(|result| Group {
        name: result.name.clone(),
        bars: names.iter().map(|name| ratio(&result.name, name)).collect(),
    });
    let groups = groups.collect();
    let title = Title("", "Peak memory when sizes change", "Fragbench W1 to W4: peak resident set per live data");
    let series: Vec<String> = names.iter().map(|name| (*name).to_owned()).collect();
    sheet.bars(title, Axis::linear("peak resident set ÷ live data", Unit::Ratio), &series, groups, Some(1.0));
}
