//! Medians of runs, and ratios between two allocators.
//!
//! **What.** A [`Summary`] has median, minimum and maximum of each [`Figure`] over an allocator's
//! successful runs. A [`Ratio`] of medians has a 95 % interval: a round's runs are close in time,
//! so a machine that slows down slows all, and the interval draws whole rounds with replacement
//! (the percentile bootstrap; Efron and Tibshirani, "An introduction to the bootstrap", 1993,
//! chapter 13), with the same draws for the same runs. [`geomean`] joins several workloads' ratios,
//! with a joint interval.

use crate::measure::{Run, Status};
use crate::rng::Rng;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Figure {
    /// Elapsed time, in seconds.
    Wall,
    /// Processor time, in seconds.
    Cpu,
    /// Processor time in user mode, in seconds.
    User,
    /// Processor time in the kernel, in seconds.
    Sys,
    /// Resident set, in bytes.
    PeakRss,
    /// Resident set, in bytes.
    SteadyRss,
    MinorFaults,
    MajorFaults,
    /// Anonymous, at the peak, in bytes.
    Hugepages,
    /// The share of hugepages in anonymous memory, 0 to 1.
    Coverage,
    /// A server's, requests in a second.
    Throughput,
    /// A server's latency, in seconds: half of all requests took less.
    P50,
    P99,
    P999,
    /// A server's memory after the load, in bytes.
    AfterLoad,
}

impl Figure {
    /// All figures, in the order of tables.
    pub const ALL: [Self; 15] = [
        Self::Wall,
        Self::Cpu,
        Self::User,
        Self::Sys,
        Self::PeakRss,
        Self::SteadyRss,
        Self::MinorFaults,
        Self::MajorFaults,
        Self::Hugepages,
        Self::Coverage,
        Self::Throughput,
        Self::P50,
        Self::P99,
        Self::P999,
        Self::AfterLoad,
    ];

    /// Whether a ratio above 1 is a gain.
    pub fn more_is_better(self) -> bool {
        matches!(self, Self::Throughput)
    }

    /// The run's figure; none if the run was too short.
    pub fn of(self, run: &Run) -> Option<f64> {
        match self {
            Self::Wall => Some(run.wall_s),
            Self::Cpu => Some(run.cpu_s()),
            Self::User => Some(run.user_s),
            Self::Sys => Some(run.sys_s),
            Self::PeakRss => Some(run.peak_rss_bytes as f64),
            Self::SteadyRss => run.steady_rss_bytes.map(|bytes| bytes as f64),
            Self::MinorFaults => Some(run.minor_faults as f64),
            Self::MajorFaults => Some(run.major_faults as f64),
            Self::Hugepages => Some(run.hugepage_bytes as f64),
            Self::Coverage => run.hugepage_coverage,
            Self::Throughput => run.load?.results.operations_per_s,
            Self::P50 => run.load?.results.p50_s,
            Self::P99 => run.load?.results.p99_s,
            Self::P999 => run.load?.results.p999_s,
            Self::AfterLoad => run.load?.after_bytes.map(|bytes| bytes as f64),
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Spread {
    /// The median; of an even number of values, the mean of the middle two.
    pub median: f64,
    pub min: f64,
    pub max: f64,
}

impl Spread {
    /// The spread of the values; none without values.
    pub fn of(values: impl IntoIterator<Item = f64>) -> Option<Self> {
        let mut values: Vec<f64> = values.into_iter().collect();
        values.sort_by(f64::total_cmp);
        Some(Self { median: middle(&values)?, min: *values.first()?, max: *values.last()? })
    }
}

fn middle(sorted: &[f64]) -> Option<f64> {
    let half = sorted.len() / 2;
    let upper = *sorted.get(half)?;
    Some(if sorted.len() % 2 == 1 { upper } else { (sorted[half - 1] + upper) / 2.0 })
}

#[derive(Clone, Debug, PartialEq)]
pub struct Summary {
    pub allocator: String,
    pub ok: usize,
    pub failed: usize,
    /// In the order of [`Figure::ALL`].
    spreads: [Option<Spread>; Figure::ALL.len()],
}

impl Summary {
    pub fn spread(&self, figure: Figure) -> Option<Spread> {
        self.spreads[figure as usize]
    }
}

/// Sums up an allocator's runs; none if no run succeeded.
pub fn summarize(runs: &[Run], allocator: &str) -> Option<Summary> {
    let ok = successful(runs, allocator).count();
    (ok > 0).then(|| Summary {
        allocator: allocator.to_owned(),
        ok,
        failed: runs.iter().filter(|r| r.allocator == allocator && r.status != Status::Ok).count(),
        spreads: Figure::ALL.map(|figure| Spread::of(successful(runs, allocator).filter_map(|run| figure.of(run)))),
    })
}

/// An interval that holds the true value with 95 % confidence.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Interval {
    pub low: f64,
    pub high: f64,
}

impl Interval {
    pub fn is_clear(&self) -> bool {
        self.high < 1.0 || self.low > 1.0
    }
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Ratio {
    /// A ratio below 1 means that the first needs less.
    pub of_medians: f64,
    /// None for fewer than five rounds.
    pub interval: Option<Interval>,
}

impl Ratio {
    /// The ratio the other way round.
    pub fn inverse(self) -> Self {
        let interval = self.interval.map(|i| Interval { low: i.high.recip(), high: i.low.recip() });
        Self { of_medians: self.of_medians.recip(), interval }
    }
}

const DRAWS: usize = 2000;
/// In each workload and in all together: the extremes of five values enclose the true median in 94
/// of 100 cases, those of three in 75.
const LEAST_ROUNDS: (usize, usize) = (3, 5);

/// Of rounds in which both succeeded.
type Pairs = Vec<(f64, f64)>;

/// The ratio of `allocator` to `base`, over rounds in which both succeeded. None without such
/// rounds, or if the base's median is 0.
pub fn ratio(runs: &[Run], allocator: &str, base: &str, figure: Figure) -> Option<Ratio> {
    geomean(&[runs], allocator, base, figure)
}

/// The geometric mean of [`ratio`]s; workloads without one are omitted.
pub fn geomean(workloads: &[&[Run]], allocator: &str, base: &str, figure: Figure) -> Option<Ratio> {
    let all: Vec<Pairs> = workloads.iter().map(|runs| pairs(runs, allocator, base, figure)).collect();
    let known: Vec<(&Pairs, f64)> = all.iter().filter_map(|pairs| Some((pairs, of_medians(pairs)?))).collect();
    let mean = |logs: f64| (logs / known.len() as f64).exp();
    let of_medians = (!known.is_empty()).then(|| mean(known.iter().map(|(_, ratio)| ratio.ln()).sum()))?;
    let rounds: usize = known.iter().map(|(pairs, _)| pairs.len()).sum();
    let enough = rounds >= LEAST_ROUNDS.1 && known.iter().all(|(pairs, _)| pairs.len() >= LEAST_ROUNDS.0);
    let interval = enough.then(|| {
        let mut rng = Rng::new(0, 0);
        let mut draws: Vec<f64> = (0..DRAWS)
            .map(|_| mean(known.iter().map(|(pairs, whole)| drawn(pairs, &mut rng).unwrap_or(*whole).ln()).sum()))
            .collect();
        draws.sort_by(f64::total_cmp);
        Interval { low: draws[DRAWS / 40], high: draws[DRAWS - 1 - DRAWS / 40] }
    });
    Some(Ratio { of_medians, interval })
}

/// The ratio of `allocator` to `bases`, which do the same, within each round: the mean of the
/// middle half of rounds, over all workloads. What slows a machine for longer than a round does not
/// matter.
pub fn within_rounds(workloads: &[&[Run]], allocator: &str, bases: [&str; 2], figure: Figure) -> Option<Ratio> {
    let log = |runs, name, index| {
        let run = successful(runs, name).find(|run| run.index == index)?;
        figure.of(run).filter(|value| *value > 0.0).map(f64::ln)
    };
    let of_round = |runs, index| {
        let [first, second] = bases.map(|base| log(runs, base, index));
        Some(log(runs, allocator, index)? - (first? + second?) / 2.0)
    };
    let rounds = workloads.iter().flat_map(|runs| successful(runs, allocator).map(|run| (*runs, run.index)));
    let both: Vec<f64> = rounds.filter_map(|(runs, index)| of_round(runs, index)).collect();
    let whole = middle_half(both.clone())?;
    let interval = (both.len() >= LEAST_ROUNDS.1).then(|| {
        let mut rng = Rng::new(0, 0);
        let mut draw = || (0..both.len()).map(|_| both[rng.below(both.len() as u32) as usize]).collect();
        let mut draws: Vec<f64> = (0..DRAWS).filter_map(|_| middle_half(draw())).collect();
        draws.sort_by(f64::total_cmp);
        Interval { low: draws[DRAWS / 40].exp(), high: draws[DRAWS - 1 - DRAWS / 40].exp() }
    });
    Some(Ratio { of_medians: whole.exp(), interval })
}

/// The mean of what lies between the quartiles.
fn middle_half(mut values: Vec<f64>) -> Option<f64> {
    values.sort_by(f64::total_cmp);
    let middle = &values[values.len() / 4..values.len() - values.len() / 4];
    (!middle.is_empty()).then(|| middle.iter().sum::<f64>() / middle.len() as f64)
}

fn pairs(runs: &[Run], allocator: &str, base: &str, figure: Figure) -> Pairs {
    let of_round = |index| successful(runs, base).find(|b| b.index == index).and_then(|b| figure.of(b));
    successful(runs, allocator).filter_map(|a| Some((figure.of(a)?, of_round(a.index)?))).collect()
}

fn drawn(pairs: &Pairs, rng: &mut Rng) -> Option<f64> {
    let draw: Pairs = (0..pairs.len()).map(|_| pairs[rng.below(pairs.len() as u32) as usize]).collect();
    of_medians(&draw)
}

fn of_medians(pairs: &Pairs) -> Option<f64> {
    let (own, base) = (Spread::of(pairs.iter().map(|p| p.0))?.median, Spread::of(pairs.iter().map(|p| p.1))?.median);
    (own > 0.0 && base > 0.0).then(|| own / base)
}

fn successful<'a>(runs: &'a [Run], allocator: &'a str) -> impl Iterator<Item = &'a Run> {
    runs.iter().filter(move |r| r.allocator == allocator && r.status == Status::Ok)
}

#[cfg(test)]
mod tests;
