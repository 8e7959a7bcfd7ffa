//! A document's flat map of ratios, below 1 where Craton needs less: geometric means over the
//! workloads that both finished. `best_peer` has the best mean, glibc included; `virtual_best` is
//! the best of each workload.

use crate::measure::{Run, Status};
use crate::picture::is_craton;
use crate::summary::{self, Figure, Ratio};
use std::collections::BTreeMap;

pub const OURS: &str = "craton";
pub const BASE: &str = "glibc";

/// The figures that ratios are made of, and their names before `_vs_`.
/// `request_time` is the inverse of requests in a second.
pub const RATIOS: [(&str, Figure); 10] = [
    ("time", Figure::Wall),
    ("cpu", Figure::Cpu),
    ("rss", Figure::PeakRss),
    ("steady_rss", Figure::SteadyRss),
    ("faults", Figure::MinorFaults),
    ("request_time", Figure::Throughput),
    ("p50", Figure::P50),
    ("p99", Figure::P99),
    ("p999", Figure::P999),
    ("after_load", Figure::AfterLoad),
];

#[derive(Clone, Debug, Default, PartialEq)]
pub struct Ratios(pub BTreeMap<String, Ratio>);

impl Ratios {
    pub fn of(workloads: &[&[Run]], allocator: &str) -> Self {
        let mut ratios = BTreeMap::new();
        let others = others(workloads, allocator);
        for (name, figure) in RATIOS {
            let of = |workloads: &[&[Run]], base: &str| {
                let ratio = summary::geomean(workloads, allocator, base, figure)?;
                Some(if figure.more_is_better() { ratio.inverse() } else { ratio })
            };
            let against = |base: &str| of(workloads, base);
            for base in &others {
                ratios.extend(against(base).map(|ratio| (format!("{name}_vs_{base}"), ratio)));
            }
            let peers: Vec<&str> = others.iter().copied().filter(|name| !is_craton(name)).collect();
            let best = best_peer(workloads, &peers, figure);
            ratios.extend(best.and_then(|best| Some((format!("{name}_vs_best_peer"), against(best)?))));
            let envelope: Vec<Vec<Run>> = workloads.iter().map(|runs| with_best(runs, &peers, figure)).collect();
            let envelope: Vec<&[Run]> = envelope.iter().map(Vec::as_slice).collect();
            let virtual_best = of(&envelope, VIRTUAL);
            ratios.extend(virtual_best.map(|ratio| (format!("{name}_vs_{VIRTUAL}"), ratio)));
        }
        Self(ratios)
    }

    pub fn values(&self) -> BTreeMap<String, f64> {
        self.0.iter().map(|(name, ratio)| (name.clone(), ratio.of_medians)).collect()
    }

    pub fn intervals(&self) -> BTreeMap<String, [f64; 2]> {
        let ends = |(name, ratio): (&String, &Ratio)| ratio.interval.map(|i| (name.clone(), [i.low, i.high]));
        self.0.iter().filter_map(ends).collect()
    }
}

const VIRTUAL: &str = "virtual_best";

pub fn others<'a>(workloads: &[&'a [Run]], allocator: &str) -> Vec<&'a str> {
    let mut names: Vec<&str> = Vec::new();
    for run in workloads.iter().flat_map(|runs| runs.iter()) {
        if run.allocator != allocator && !names.contains(&run.allocator.as_str()) {
            names.push(&run.allocator);
        }
    }
    names
}

pub fn best_peer<'a>(workloads: &[&[Run]], others: &[&'a str], figure: Figure) -> Option<&'a str> {
    let mean = |name: &str| match name {
        BASE => others.contains(&BASE).then_some(1.0),
        _ => summary::geomean(workloads, name, BASE, figure).map(|ratio| ratio.of_medians),
    };
    let means = others.iter().filter_map(|name| Some((*name, mean(name)?)));
    best(means, figure)
}

fn best<'a>(figures: impl Iterator<Item = (&'a str, f64)>, figure: Figure) -> Option<&'a str> {
    let sign = if figure.more_is_better() { -1.0 } else { 1.0 };
    figures.min_by(|a, b| (sign * a.1).total_cmp(&(sign * b.1))).map(|(name, _)| name)
}

fn with_best(runs: &[Run], others: &[&str], figure: Figure) -> Vec<Run> {
    let median = |name: &str| summary::summarize(runs, name)?.spread(figure).map(|spread| spread.median);
    let medians = others.iter().filter_map(|name| Some((*name, median(name)?)));
    let best = best(medians, figure);
    let again = runs.iter().filter(|run| Some(run.allocator.as_str()) == best && run.status == Status::Ok);
    runs.iter().cloned().chain(again.map(|run| Run { allocator: VIRTUAL.to_owned(), ..run.clone() })).collect()
}

#[cfg(test)]
mod tests;
