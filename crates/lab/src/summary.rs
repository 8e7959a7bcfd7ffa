//! Medians of runs, and ratios between two allocators.
//!
//! **From.** A [`Ratio`]'s 95 % interval draws whole rounds with replacement (the percentile
//! bootstrap; Efron and Tibshirani, "An introduction to the bootstrap", 1993, chapter 13): a
//! round's runs are close in time, so a machine that slows down slows all. The same runs give the
//! same draws.

use crate::measure::{Run, Status};
use crate::rng::Rng;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Figure {
    /// Seconds, as the next three.
    Wall,
    Cpu,
    User,
    Sys,
    /// Bytes, as the next.
    PeakRss,
    SteadyRss,
    MinorFaults,
    MajorFaults,
    /// Bytes.
    Hugepages,
    /// Of hugepages in anonymous memory, 0 to 1.
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
    pub median: f64,
    pub min: f64,
    pub max: f64,
}

impl Spread {
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

pub fn summarize(runs: &[Run], allocator: &str) -> Option<Summary> {
    let ok = successful(runs, allocator).count();
    (ok > 0).then(|| Summary {
        allocator: allocator.to_owned(),
        ok,
        failed: runs.iter().filter(|r| r.allocator == allocator && r.status != Status::Ok).count(),
        spreads: Figure::ALL.map(|figure| Spread::of(successful(runs, allocator).filter_map(|run| figure.of(run)))),
    })
}

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
    /// Below 1 the first needs less.
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
/// In each workload, in all together: the extremes of five values enclose the true median in 94 of
/// 100 cases, those of three in 75.
const LEAST_ROUNDS: (usize, usize) = (3, 5);

type Pairs = Vec<(f64, f64)>;

/// Over rounds in which both succeeded.
pub fn ratio(runs: &[Run], allocator: &str, base: &str, figure: Figure) -> Option<Ratio> {
    geomean(&[runs], allocator, base, figure)
}

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

/// To `bases`, which do the same, within each round: the mean of the middle half of rounds. It
/// hides slowness that lasts longer than a round.
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
