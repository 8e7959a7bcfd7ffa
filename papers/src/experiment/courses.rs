//! Courses of demand on the page heap alone: the scenario that several experiments share.
//!
//! **What.** [`play`] has the empirical driver follow each course that is asked for with the built-in profile, with a rate of release
//! or without one, and yields a row for each sample.
//!
//! **Units.** Bytes; seconds of simulated time.

use super::{Ask, simulation};
use crate::empirical::profile::Profile;
use crate::empirical::schedule::Schedule;
use crate::empirical::sim::{self, Sample, Summary};
use serde::Serialize;

/// Without and with a rate of release, by the name in tables and pictures.
pub const RELEASE: [(&str, bool); 2] = [("release off", false), ("release on", true)];
/// The heap in so many seconds: for 4 GiB, what the library's background thread gives back by default, 64 MiB a second.
const RELEASE_SECONDS: u64 = 64;
/// Samples of a course.
const SAMPLES: u32 = 240;

/// A row of the document.
#[derive(Serialize)]
pub struct CourseRow {
    /// The course.
    pub schedule: &'static str,
    /// What is given back by a rate.
    pub release_bytes_per_s: u64,
    /// The heap at a moment.
    #[serde(flatten)]
    pub at: Sample,
    status: &'static str,
}

/// The rate of release of a heap.
pub fn rate(heap_bytes: u64, release: bool) -> u64 {
    if release { heap_bytes / RELEASE_SECONDS } else { 0 }
}

/// The name of a rate.
pub fn rate_name(bytes_per_s: u64) -> &'static str {
    RELEASE[usize::from(bytes_per_s > 0)].0
}

/// Plays the courses asked for in each of `ways`, of [`RELEASE`]; heap and births with deaths of a course as given.
///
/// # Errors
/// What a simulation has no use for; a heap that does not fit.
pub fn play(
    ask: &Ask<'_>,
    experiment: &str,
    ways: &[(&'static str, bool)],
    (heap_bytes, events): (u64, u64),
    seconds: f64,
) -> Result<Vec<CourseRow>, String> {
    let mut rows = Vec::new();
    for ((name, schedule), (_, release)) in simulation::asked(ask, experiment, &Schedule::ALL, ways)? {
        let release_bytes_per_s = rate(heap_bytes, *release);
        let samples = sim::simulate(&sim::Config {
            schedule: *schedule,
            seconds: Some(seconds),
            samples: SAMPLES,
            release_bytes_per_s,
            ..sim::Config::new(Profile::built_in(), heap_bytes, events)
        })?;
        let row = |at| CourseRow { schedule: name, release_bytes_per_s, at, status: "ok" };
        rows.extend(samples.into_iter().map(row));
    }
    Ok(rows)
}

/// The rows of each course, one rate after the other.
pub fn by_course(rows: &[CourseRow]) -> impl Iterator<Item = &[CourseRow]> {
    rows.chunk_by(|a, b| a.schedule == b.schedule)
}

/// The rows of each course at each rate.
pub fn by_rate(rows: &[CourseRow]) -> impl Iterator<Item = &[CourseRow]> {
    rows.chunk_by(|a, b| (a.schedule, a.release_bytes_per_s) == (b.schedule, b.release_bytes_per_s))
}

/// What the rows of a course at a rate say as a whole.
pub fn summary(rows: &[CourseRow]) -> Summary {
    sim::summary(&rows.iter().map(|row| row.at).collect::<Vec<_>>())
}
