//! `temeraire-redis`: redis with lists, with and without hugepages (TEMERAIRE §5.1, there redis
//! 6.0.9).

use super::series::{self, Case, Result};
use super::sheet::Sheet;
use super::{Ask, Findings};
use crate::real::{self, Size};
use craton_lab::format::{bytes, count, seconds, table};
use craton_lab::measure::Allocator;
use craton_lab::picture::{Axis, DotRow, Dots, Estimate, Unit};
use craton_lab::ratios::{BASE, OURS, others};
use craton_lab::scratch::Scratch;
use craton_lab::summary::{Figure, ratio, summarize};

const LOAD: &str = "redis-list";
const ROUNDS: usize = 7;
const QUICK_ROUNDS: usize = 3;

pub fn run(ask: &Ask<'_>) -> std::result::Result<Findings, String> {
    let real = real::find(LOAD).ok_or("the load is not among the real programs")?;
    real.available()?;
    let scratch = Scratch::new("the inputs of redis")?;
    let command = real::prepare(scratch.path(), real, ask.form(Size::Quick, Size::Full))?;
    let mut cases = vec![Case { name: LOAD.to_owned(), command, prove: true }];
    ask.choose(&mut cases)?;
    let allocators = allocators(ask);
    let results = series::measure(ask, &allocators, cases, ask.rounds(QUICK_ROUNDS, ROUNDS), 1);
    let Some(result) = results.first() else { return Err("nothing was measured".to_owned()) };
    let mut sheet = Result::sheet(ask, &allocators, &results)?;
    sheet.picture("", picture(result, &sheet));
    sheet.findings(show(result))
}

fn allocators(ask: &Ask<'_>) -> Vec<Allocator> {
    let asked =
        ask.allocators.iter().filter(|a| !ask.quick || ask.peers_asked || [BASE, OURS].contains(&a.name.as_str()));
    let variant = |value: &str| {
        let craton = ask.allocators.iter().find(|allocator| allocator.name == OURS)?;
        let mut options = std::env::var_os(OPTIONS).filter(|before| !before.is_empty()).unwrap_or_default();
        if !options.is_empty() {
            options.push(",");
        }
        options.push(format!("thp={value}"));
        let env = vec![(OPTIONS.into(), options)];
        Some(Allocator { name: format!("{OURS}+thp={value}"), env, ..craton.clone() })
    };
    asked.cloned().chain(["never", "always"].into_iter().filter_map(variant)).collect()
}

const OPTIONS: &str = "CRATON_OPTIONS";

fn show(result: &Result) -> String {
    let head = ["", "wall time", "×", "95 %", "CPU time", "peak RSS", "×", "faults", "coverage"];
    let mut rows = vec![head.map(str::to_owned).to_vec()];
    for name in others(&[&result.runs], "") {
        let Some(summary) = summarize(&result.runs, name) else {
            rows.push(vec![name.to_owned(), series::status(&result.runs, name)]);
            continue;
        };
        let median = |figure| summary.spread(figure).map_or(0.0, |spread| spread.median);
        let against = |figure| ratio(&result.runs, name, BASE, figure);
        let two = |figure| against(figure).map_or("-".to_owned(), |ratio| format!("{:.2}", ratio.of_medians));
        let interval = against(Figure::Wall).and_then(|ratio| ratio.interval);
        rows.push(vec![
            name.to_owned(),
            seconds(median(Figure::Wall)),
            two(Figure::Wall),
            interval.map_or("-".to_owned(), |i| format!("{:.2}-{:.2}", i.low, i.high)),
            seconds(median(Figure::Cpu)),
            bytes(median(Figure::PeakRss) as u64),
            two(Figure::PeakRss),
            count(median(Figure::MinorFaults) as u64),
            format!("{:.0} %", median(Figure::Coverage) * 100.0),
        ]);
    }
    format!("medians; × is the ratio to {BASE}; CPU time has the load generator's too\n\n{}", table(&rows, &[0]))
}

fn picture(result: &Result, sheet: &Sheet) -> String {
    let row = |name: &&str| {
        let ratio = ratio(&result.runs, name, BASE, Figure::Wall);
        let coverage = summarize(&result.runs, name).and_then(|s| s.spread(Figure::Coverage)).map(|s| s.median);
        DotRow {
            name: (*name).to_owned(),
            allocator: (*name).to_owned(),
            estimate: ratio.map(|r| match r.interval {
                Some(i) => Estimate::between(r.of_medians, i.low, i.high),
                None => Estimate::exact(r.of_medians),
            }),
            runs: Vec::new(),
            note: coverage.map_or(String::new(), |share| format!("{:.0} % on hugepages", share * 100.0)),
        }
    };
    Dots {
        heading: sheet.heading(
            "redis: push five elements, read those five",
            &format!(
                "wall time as a ratio to {BASE}, with its 95 % interval; anonymous memory on hugepages at the peak"
            ),
        ),
        axis: Axis::log(format!("wall time, {BASE} = 1"), Unit::Ratio),
        rows: others(&[&result.runs], "").iter().map(row).collect(),
        reference: Some(1.0),
        width_px: 760.0,
    }
    .svg()
}
