//! System time or faults suggest memory touched again, user time instructions or cache misses.

use super::Result;
use craton_lab::format::{bytes, count, seconds, table};
use craton_lab::ratios::{OURS, others};
use craton_lab::summary::{Figure, Summary, ratio, summarize};

const SHOWN: usize = 3;

struct Loss<'a> {
    workload: &'a str,
    ratio: f64,
    ours: Summary,
    theirs: Summary,
}

pub fn show(results: &[Result]) -> String {
    let parts = [("wall time", Figure::Wall), ("peak RSS", Figure::PeakRss)];
    parts.iter().map(|(name, figure)| part(results, name, *figure)).collect()
}

fn part(results: &[Result], name: &str, figure: Figure) -> String {
    let mut losses: Vec<Loss<'_>> = results.iter().filter_map(|result| loss(result, figure)).collect();
    losses.sort_by(|a, b| b.ratio.total_cmp(&a.ratio));
    losses.truncate(SHOWN);
    if losses.is_empty() {
        return String::new();
    }
    let head = ["", "ratio", "allocator", "wall", "user", "sys", "minor faults", "peak RSS", "hugepages"];
    let mut rows = vec![head.map(str::to_owned).to_vec()];
    for loss in &losses {
        rows.push(row(loss.workload, format!("{:.2}", loss.ratio), &loss.ours));
        rows.push(row("", String::new(), &loss.theirs));
    }
    format!("\nworst losses to the best other allocator, {name}:\n\n{}", table(&rows, &[0, 2]))
}

/// If the best other is ahead.
fn loss(result: &Result, figure: Figure) -> Option<Loss<'_>> {
    let ours = summarize(&result.runs, OURS)?;
    let against =
        |name: &str| Some((ratio(&result.runs, OURS, name, figure)?.of_medians, summarize(&result.runs, name)?));
    let all = others(&[&result.runs], OURS).into_iter().filter_map(against);
    let (ratio, theirs) = all.max_by(|a, b| a.0.total_cmp(&b.0))?;
    (ratio > 1.0).then_some(Loss { workload: &result.name, ratio, ours, theirs })
}

fn row(workload: &str, ratio: String, of: &Summary) -> Vec<String> {
    let median = |figure| of.spread(figure).map_or(0.0, |spread| spread.median);
    vec![
        workload.to_owned(),
        ratio,
        of.allocator.clone(),
        seconds(median(Figure::Wall)),
        seconds(median(Figure::User)),
        seconds(median(Figure::Sys)),
        count(median(Figure::MinorFaults) as u64),
        bytes(median(Figure::PeakRss) as u64),
        format!("{:.0} %", median(Figure::Coverage) * 100.0),
    ]
}
