//! Workloads down, allocators across.

use super::Result;
use crate::experiment::series::status;
use craton_lab::format::{bytes, seconds, table};
use craton_lab::measure::Run;
use craton_lab::ratios::{BASE, OURS, Ratios, others};
use craton_lab::summary::{Figure, geomean, ratio, summarize};

const NONE: &str = "-";

pub fn show(results: &[Result], ratios: &Ratios) -> String {
    let time = part(results, "wall time", Figure::Wall, seconds);
    let rss = part(results, "peak RSS", Figure::PeakRss, |v| bytes(v as u64));
    format!("{time}\n{rss}\n{}", of_craton(ratios))
}

/// By glibc's median.
fn part(results: &[Result], name: &str, figure: Figure, show: fn(f64) -> String) -> String {
    let workloads = Result::runs(results);
    let names: Vec<&str> = others(&workloads, "").into_iter().filter(|name| *name != BASE).collect();
    let mut rows = vec![[vec![String::new(), BASE.to_owned()], owned(&names)].concat()];
    for result in results {
        let base = summarize(&result.runs, BASE).and_then(|s| s.spread(figure)).map(|spread| spread.median);
        let mut row = vec![result.name.clone(), base.map_or(NONE.to_owned(), show)];
        row.extend(names.iter().map(|name| cell(&result.runs, name, figure)));
        rows.push(row);
    }
    let mean = |name: &&str| geomean(&workloads, name, BASE, figure).map_or(NONE.to_owned(), |r| two(r.of_medians));
    rows.push([vec!["geometric mean".to_owned(), String::new()], names.iter().map(mean).collect()].concat());
    format!("{name}: {BASE}'s median, and ratios to it\n\n{}", table(&rows, &[0]))
}

/// Or a failure.
fn cell(runs: &[Run], name: &str, figure: Figure) -> String {
    ratio(runs, name, BASE, figure).map_or_else(|| status(runs, name), |r| two(r.of_medians))
}

fn of_craton(ratios: &Ratios) -> String {
    let mut rows = vec![[OURS, "ratio", "95 %"].map(str::to_owned).to_vec()];
    for (name, ratio) in &ratios.0 {
        if name.starts_with("time_") || name.starts_with("rss_") {
            let interval = ratio.interval.map_or(NONE.to_owned(), |i| format!("{:.3}-{:.3}", i.low, i.high));
            rows.push(vec![name.clone(), format!("{:.3}", ratio.of_medians), interval]);
        }
    }
    table(&rows, &[0])
}

fn owned(names: &[&str]) -> Vec<String> {
    names.iter().map(|name| (*name).to_owned()).collect()
}

fn two(value: f64) -> String {
    format!("{value:.2}")
}
