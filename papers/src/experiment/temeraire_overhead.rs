//! `temeraire-overhead`: what the page heap holds beyond the spans that are out, in steady state.
//!
//! **What.** The empirical driver in simulated memory on each profile, once without a rate of release and once with the
//! library's in proportion to the heap: backed bytes ÷ bytes in spans − 1, and the part of backed bytes on intact hugepages.
//! Both are means over the second half of the run; their values in the third quarter and in the last tell whether the
//! state is steady.
//!
//! **From.** TEMERAIRE §6.1 and its figure of page-heap overhead by fleet (10.6 % there). Bytes in spans count slabs whole,
//! objects or not: what slabs waste is not the page heap's, and has a column of its own.
//!
//! **State.** The built-in profile, and those of [`profiles::FOLDER`]. Full: 4 GiB live; each object is replaced
//! twice on average, but in no more than 100 million events, which take a minute or two. Quick: 256 MiB.

use super::courses::{self, RELEASE, rate_name};
use super::simulation::{self, ratio};
use super::{Ask, Experiment, Findings, heading, profiles};
use crate::empirical::process::LARGEST_PART;
use crate::empirical::profile::Profile;
use crate::empirical::sim::{self, Sample};
use craton_lab::document::Document;
use craton_lab::format::{Column, bytes, seconds, table_of};
use craton_lab::picture::{Axis, Bars, Direction, Estimate, Group, Unit};
use serde::Serialize;
use std::time::Instant;

/// The experiment, in the list.
pub const EXPERIMENT: Experiment = Experiment {
    name: "temeraire-overhead",
    about: "the page heap alone in simulated memory, by profile: overhead and hugepage coverage in steady state",
    answers: "TEMERAIRE §6.1; page-heap overhead",
    run,
};

/// Live bytes, how often each object is replaced on average, and the most events.
const FULL: (u64, f64, u64) = (4 << 30, 2.0, 100_000_000);
const QUICK: (u64, f64, u64) = (256 << 20, 2.0, 4_000_000);
const SECONDS: f64 = 600.0;
/// What is to be reached, and in words.
const MOST_OVERHEAD: (f64, &str) = (0.06, "6 %, the most it may be");
const LEAST_COVERAGE: (f64, &str) = (0.95, "95 %, the least it may be without release");

/// A row of the document.
#[derive(Clone, Serialize)]
struct OverheadRow {
    profile: String,
    release_bytes_per_s: u64,
    events: u64,
    live_bytes: u64,
    span_bytes: u64,
    backed_bytes: u64,
    /// Backed by used bytes, less 1: mean of the second half, of the third quarter, of the last.
    overhead: f64,
    overhead_third_quarter: f64,
    overhead_last_quarter: f64,
    /// The part of backed bytes on intact hugepages.
    coverage: f64,
    /// Bytes in spans by bytes in live objects, less 1: what slabs and rounding waste.
    slab_overhead: f64,
    released_bytes: u64,
    /// What the simulation took.
    wall_s: f64,
    status: String,
}

fn run(ask: &Ask<'_>) -> Result<Findings, String> {
    let profiles = profiles::here()?;
    let mut rows = Vec::new();
    for ((name, profile), (_, release)) in simulation::asked(ask, EXPERIMENT.name, &profiles, &RELEASE)? {
        rows.push(play(name, profile, *release, if ask.quick { QUICK } else { FULL }));
    }
    let failed = rows.iter().filter(|row| row.status != "ok").count();
    let text = |rows: &[OverheadRow]| format!("{}\n{}", profiles::note(&profiles), show(rows));
    let found = simulation::findings(ask, EXPERIMENT.name, rows, text, |document| {
        let (overhead, coverage) = ("memory beyond the bytes in spans", "part of the memory on hugepages");
        vec![
            (
                String::new(),
                picture("Page-heap overhead in steady state", overhead, MOST_OVERHEAD, |row| row.overhead, document),
            ),
            (
                "coverage".to_owned(),
                picture("Memory on intact hugepages", coverage, LEAST_COVERAGE, |row| row.coverage, document),
            ),
        ]
    })?;
    Ok(Findings { failed, ..found })
}

/// Events that replace each object of a heap so often on average.
fn events(profile: &Profile, heap_bytes: u64, replaced: f64, most: u64) -> u64 {
    let (mut objects, mut live_bytes) = (0.0, 0.0);
    for row in profile.rows().iter().filter(|row| row.size <= heap_bytes / LARGEST_PART) {
        objects += row.live;
        live_bytes += row.live * row.size as f64;
    }
    let objects = if live_bytes > 0.0 { objects * heap_bytes as f64 / live_bytes } else { 0.0 };
    // A birth and a death for each.
    ((2.0 * replaced * objects) as u64).clamp(most / 20, most)
}

fn play(name: &str, profile: &Profile, release: bool, (heap_bytes, replaced, most): (u64, f64, u64)) -> OverheadRow {
    let release_bytes_per_s = courses::rate(heap_bytes, release);
    let events = events(profile, heap_bytes, replaced, most);
    let start = Instant::now();
    let played = sim::simulate(&sim::Config {
        seconds: Some(SECONDS),
        release_bytes_per_s,
        ..sim::Config::new(profile.clone(), heap_bytes, events)
    });
    let status = played.as_ref().err().cloned().unwrap_or("ok".to_owned());
    let samples = played.unwrap_or_default();
    let last = samples.last().copied().unwrap_or_default();
    let (half, three) = (samples.len() / 2, samples.len() * 3 / 4);
    OverheadRow {
        profile: name.to_owned(),
        release_bytes_per_s,
        events,
        live_bytes: last.live_bytes,
        span_bytes: last.span_bytes,
        backed_bytes: last.backed_bytes,
        overhead: overhead(&samples[half..]),
        overhead_third_quarter: overhead(&samples[half..three]),
        overhead_last_quarter: overhead(&samples[three..]),
        coverage: mean(&samples[half..], |s| ratio(s.huge_bytes, s.backed_bytes)),
        slab_overhead: mean(&samples[half..], |s| ratio(s.span_bytes, s.live_bytes) - 1.0),
        released_bytes: last.released_bytes,
        wall_s: start.elapsed().as_secs_f64(),
        status,
    }
}

fn mean(samples: &[Sample], of: impl Fn(&Sample) -> f64) -> f64 {
    samples.iter().map(of).sum::<f64>() / samples.len().max(1) as f64
}

fn overhead(samples: &[Sample]) -> f64 {
    mean(samples, |s| ratio(s.backed_bytes, s.span_bytes) - 1.0)
}

fn show(rows: &[OverheadRow]) -> String {
    let columns: [Column<OverheadRow>; 12] = [
        ("profile", |row| row.profile.clone()),
        ("", |row| rate_name(row.release_bytes_per_s).to_owned()),
        ("overhead", |row| percent(row.overhead)),
        ("3rd quarter", |row| percent(row.overhead_third_quarter)),
        ("last", |row| percent(row.overhead_last_quarter)),
        ("on hugepages", |row| percent(row.coverage)),
        ("live", |row| bytes(row.live_bytes)),
        ("in spans", |row| bytes(row.span_bytes)),
        ("memory", |row| bytes(row.backed_bytes)),
        ("slabs' own", |row| percent(row.slab_overhead)),
        ("events", |row| format!("{} M", row.events / 1_000_000)),
        ("took", |row| seconds(row.wall_s)),
    ];
    let (played, failed): (Vec<_>, Vec<_>) = rows.iter().partition(|row| row.status == "ok");
    let table = table_of(&columns, &[0, 1], played);
    let failed: String = failed.iter().map(|row| format!("{}: {}\n", row.profile, row.status)).collect();
    format!("means over the second half of {SECONDS} simulated seconds\n\n{table}{failed}")
}

/// With two digits behind the point: some overheads are below a thousandth.
fn percent(part: f64) -> String {
    format!("{:.2} %", part * 100.0)
}

fn picture(
    title: &str,
    axis: &str,
    (reference, asked): (f64, &str),
    of: fn(&OverheadRow) -> f64,
    document: &Document<OverheadRow>,
) -> String {
    let bar = |row: &OverheadRow| (row.status == "ok").then(|| Estimate::exact(of(row)));
    let group = |rows: &[OverheadRow]| Group { name: rows[0].profile.clone(), bars: rows.iter().map(bar).collect() };
    Bars {
        heading: heading(
            title,
            &format!("the empirical driver on the page heap alone, simulated; the line: {asked}"),
            document,
        ),
        axis: Axis::linear(axis, Unit::Part),
        series: RELEASE.map(|(name, _)| name.to_owned()).to_vec(),
        groups: document.rows.chunk_by(|a, b| a.profile == b.profile).map(group).collect(),
        reference: Some(reference),
        direction: Direction::Up,
        width_px: 700.0,
    }
    .svg()
}

#[cfg(test)]
mod tests;
