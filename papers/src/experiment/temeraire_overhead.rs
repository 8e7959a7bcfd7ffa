//! `temeraire-overhead`: what the page heap holds beyond the spans that are out, in steady state.
//!
//! **What.** The empirical driver in simulated memory on each profile, without release and with the
//! library's rate in proportion to the heap: backed bytes ÷ bytes in spans − 1, and the part of
//! backed bytes on intact hugepages, as means over the second half. The third and last quarters
//! tell whether the state is steady.
//!
//! **From.** TEMERAIRE §6.1 and its figure of page-heap overhead by fleet (10.6 % there). Spans
//! count slabs whole: slabs' waste is not the page heap's, and has a separate column.
//!
//! **State.** The built-in profile, and those of [`profiles::FOLDER`]. Full: 4 GiB live; each
//! object is replaced twice on average, in at most 100 million events. Quick: 256 MiB.

use super::courses::{self, RELEASE, rate_name};
use super::sheet::{Column, Fields, Row, Sheet, Show, Title, by, groups, json, mean, part, table, with};
use super::{Ask, Findings, profiles, simulation};
use crate::empirical::process::LARGEST_PART;
use crate::empirical::profile::Profile;
use crate::empirical::sim::{self, Sample};
use craton_lab::picture::{Axis, Unit};
use std::time::Instant;

/// Live bytes, how often each object is replaced on average, and the most events.
const FULL: (u64, f64, u64) = (4 << 30, 2.0, 100_000_000);
const QUICK: (u64, f64, u64) = (256 << 20, 2.0, 4_000_000);
const SECONDS: f64 = 600.0;
/// The target, and in words.
const MOST_OVERHEAD: (f64, &str) = (0.06, "6 %, the most it may be");
const LEAST_COVERAGE: (f64, &str) = (0.95, "95 %, the least it may be without release");

const COLUMNS: [Column; 12] = [
    ("profile", "profile", Show::Text),
    ("", "rate", Show::Text),
    ("overhead", "overhead", Show::Percent(2)),
    ("3rd quarter", "overhead_third_quarter", Show::Percent(2)),
    ("last", "overhead_last_quarter", Show::Percent(2)),
    ("on hugepages", "coverage", Show::Percent(2)),
    ("live", "live_bytes", Show::Bytes),
    ("in spans", "span_bytes", Show::Bytes),
    ("memory", "backed_bytes", Show::Bytes),
    ("slabs' own", "slab_overhead", Show::Percent(2)),
    ("events", "events", Show::By(|row| format!("{} M", row.int("events") / 1_000_000))),
    ("took", "wall_s", Show::Seconds),
];

fn rate_of(row: &Row) -> String {
    rate_name(row.int("release_bytes_per_s")).to_owned()
}

pub fn run(ask: &Ask<'_>) -> Result<Findings, String> {
    let profiles = profiles::here()?;
    let mut rows = Vec::new();
    for ((name, profile), (_, release)) in simulation::asked(ask, &profiles, &RELEASE)? {
        rows.push(play(name, profile, *release, ask.form(QUICK, FULL)));
    }
    let text = format!("{}\n{}", profiles::note(&profiles), show(&rows));
    let mut sheet = Sheet::new(ask, rows);
    let (beyond, covered) = ("memory beyond the bytes in spans", "part of the memory on hugepages");
    for (name, title, axis, (reference, asked), field) in [
        ("", "Page-heap overhead in steady state", beyond, MOST_OVERHEAD, "overhead"),
        ("coverage", "Memory on intact hugepages", covered, LEAST_COVERAGE, "coverage"),
    ] {
        let subtitle = &format!("the empirical driver on the page heap alone, simulated; the line: {asked}");
        let series = RELEASE.map(|(name, _)| name.to_owned());
        let bars = groups(sheet.rows(), by("profile"), (&series, rate_of), |row| row.num(field));
        sheet.bars(Title(name, title, subtitle), Axis::linear(axis, Unit::Part), &series, bars, Some(reference));
    }
    sheet.findings(text)
}

fn events(profile: &Profile, heap_bytes: u64, replaced: f64, most: u64) -> u64 {
    let (mut objects, mut live_bytes) = (0.0, 0.0);
    for row in profile.rows().iter().filter(|row| row.size <= heap_bytes / LARGEST_PART) {
        objects += row.live;
        live_bytes += row.live * row.size as f64;
    }
    let objects = if live_bytes > 0.0 { objects * heap_bytes as f64 / live_bytes } else { 0.0 };
    ((2.0 * replaced * objects) as u64).clamp(most / 20, most)
}

fn play(name: &str, profile: &Profile, release: bool, (heap_bytes, replaced, most): (u64, f64, u64)) -> Row {
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
    json!({
        "profile": name,
        "release_bytes_per_s": release_bytes_per_s,
        "events": events,
        "live_bytes": last.live_bytes,
        "span_bytes": last.span_bytes,
        "backed_bytes": last.backed_bytes,
        // Backed by used bytes, less 1: mean of the second half, of the third quarter, of the last.
        "overhead": overhead(&samples[half..]),
        "overhead_third_quarter": overhead(&samples[half..three]),
        "overhead_last_quarter": overhead(&samples[three..]),
        // The part of backed bytes on intact hugepages.
        "coverage": mean(samples[half..].iter().map(|s| part(s.huge_bytes, s.backed_bytes))),
        // Bytes in spans by bytes in live objects, less 1: what slabs and rounding waste.
        "slab_overhead": mean(samples[half..].iter().map(|s| part(s.span_bytes, s.live_bytes) - 1.0)),
        "released_bytes": last.released_bytes,
        // What the simulation took.
        "wall_s": start.elapsed().as_secs_f64(),
        "status": status,
    })
}

fn overhead(samples: &[Sample]) -> f64 {
    mean(samples.iter().map(|s| part(s.backed_bytes, s.span_bytes) - 1.0))
}

fn show(rows: &[Row]) -> String {
    let (played, failed): (Vec<_>, Vec<_>) = rows.iter().partition(|row| row.is_ok());
    let name = |row: &Row| with(row.clone(), &json!({ "rate": rate_of(row) }), "ok");
    let table = table(&COLUMNS, &played.into_iter().map(name).collect::<Vec<_>>());
    let failed: String =
        failed.iter().map(|row| format!("{}: {}\n", row.word("profile"), row.word("status"))).collect();
    format!("means over the second half of {SECONDS} simulated seconds\n\n{table}{failed}")
}

#[cfg(test)]
mod tests;
