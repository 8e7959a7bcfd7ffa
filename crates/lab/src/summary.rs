//! Medians of runs, and ratios between two allocators.
//!
//! **What.** A [`Summary`] is what an allocator's successful runs cost: median, smallest and largest. A [`Ratio`] compares
//! two allocators: the ratio of their medians, and how far the ratios of the single rounds lie from it. The two runs of
//! a round stand side by side in time, so that a machine that slows down slows both: the spread of these ratios says
//! how much of a difference is noise.
//!
//! **Failure.** What has no successful run has no summary; a ratio to 0 is none.

use crate::measure::{Run, Status};

/// One of the numbers that a run yields.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Figure {
    /// Wall time, in seconds.
    Wall,
    /// Processor time, in seconds.
    Cpu,
    /// Peak resident set, in bytes.
    PeakRss,
    /// Minor page faults.
    MinorFaults,
    /// Peak of anonymous memory on hugepages, in bytes.
    Hugepages,
}

impl Figure {
    /// The figure's value in a run.
    pub fn of(self, run: &Run) -> f64 {
        match self {
            Self::Wall => run.wall_s,
            Self::Cpu => run.cpu_s,
            Self::PeakRss => run.peak_rss_bytes as f64,
            Self::MinorFaults => run.minor_faults as f64,
            Self::Hugepages => run.hugepage_bytes as f64,
        }
    }
}

/// The middle and the ends of several values.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Spread {
    /// The middle one; of an even number, the mean of the middle two.
    pub median: f64,
    /// The smallest.
    pub min: f64,
    /// The largest.
    pub max: f64,
}

impl Spread {
    /// The spread of `values`; none of no values.
    pub fn of(values: impl IntoIterator<Item = f64>) -> Option<Self> {
        let mut values: Vec<f64> = values.into_iter().collect();
        values.sort_by(f64::total_cmp);
        let (min, max) = (*values.first()?, *values.last()?);
        let middle = values.len() / 2;
        let median = if values.len() % 2 == 1 { values[middle] } else { (values[middle - 1] + values[middle]) / 2.0 };
        Some(Self { median, min, max })
    }
}

/// What the successful runs of one allocator cost.
#[derive(Clone, Debug, PartialEq)]
pub struct Summary {
    /// The allocator's name.
    pub allocator: String,
    /// How many runs succeeded.
    pub ok: usize,
    /// How many did not; they are in no spread.
    pub failed: usize,
    /// Wall time, in seconds.
    pub wall_s: Spread,
    /// Processor time, in seconds.
    pub cpu_s: Spread,
    /// Peak resident set, in bytes.
    pub peak_rss_bytes: Spread,
    /// Minor page faults.
    pub minor_faults: Spread,
    /// Peak of anonymous memory on hugepages, in bytes.
    pub hugepage_bytes: Spread,
}

/// Summarizes the runs of the allocator of that name; none if no run of it succeeded.
pub fn summarize(runs: &[Run], allocator: &str) -> Option<Summary> {
    Some(Summary {
        allocator: allocator.to_owned(),
        ok: successful(runs, allocator).count(),
        failed: runs.iter().filter(|r| r.allocator == allocator && r.status != Status::Ok).count(),
        wall_s: spread(runs, allocator, Figure::Wall)?,
        cpu_s: spread(runs, allocator, Figure::Cpu)?,
        peak_rss_bytes: spread(runs, allocator, Figure::PeakRss)?,
        minor_faults: spread(runs, allocator, Figure::MinorFaults)?,
        hugepage_bytes: spread(runs, allocator, Figure::Hugepages)?,
    })
}

/// Two allocators compared in one figure.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Ratio {
    /// The ratio of the medians: below 1, the first one needs less.
    pub of_medians: f64,
    /// The smallest ratio of a single round.
    pub min: f64,
    /// The largest.
    pub max: f64,
}

/// `allocator` divided by `base`, over the rounds in which both succeeded; none without such a round, or if the base's
/// median is 0. The ends come from the rounds in which the base is not 0.
pub fn ratio(runs: &[Run], allocator: &str, base: &str, figure: Figure) -> Option<Ratio> {
    let pairs: Vec<(f64, f64)> = successful(runs, allocator)
        .filter_map(|a| successful(runs, base).find(|b| b.index == a.index).map(|b| (figure.of(a), figure.of(b))))
        .collect();
    let own = Spread::of(pairs.iter().map(|p| p.0))?.median;
    let other = Spread::of(pairs.iter().map(|p| p.1))?.median;
    let rounds = Spread::of(pairs.iter().filter(|p| p.1 > 0.0).map(|p| p.0 / p.1))?;
    (other > 0.0).then(|| Ratio { of_medians: own / other, min: rounds.min, max: rounds.max })
}

fn spread(runs: &[Run], allocator: &str, figure: Figure) -> Option<Spread> {
    Spread::of(successful(runs, allocator).map(|run| figure.of(run)))
}

fn successful<'a>(runs: &'a [Run], allocator: &'a str) -> impl Iterator<Item = &'a Run> {
    runs.iter().filter(move |r| r.allocator == allocator && r.status == Status::Ok)
}

#[cfg(test)]
mod tests;
