//! `temeraire-overhead`: the page heap's memory beyond live spans, in steady state (TEMERAIRE §6.1;
//! 10.6 % of its fleet). Slabs' waste has a separate column.

use super::courses;
use super::sheet::{Column, Fields, Row, Sheet, Show, Title, by, groups, json, mean, part, table};
use super::{Ask, Findings, profiles, simulation};
use crate::empirical::process::LARGEST_PART;
use crate::empirical::profile::Profile;
use crate::empirical::sim::{self, Sample};
use crate::empirical::system::System;
use craton_lab::picture::{Axis, Line, Point, Unit};
use craton_lab::replay::HeapName;
use std::time::Instant;

/// Live bytes, and events an hour.
const FULL: (u64, u64) = (1 << 30, 100_000_000);
const QUICK: (u64, u64) = (128 << 20, 2_000_000);
const HOUR_S: f64 = 3600.0;
const MORE_HOURS: u32 = 3;
const POINTS: usize = 120;
const MOST_OVERHEAD: (f64, &str) = (0.06, "6 %, the most it may be");
const LEAST_COVERAGE: (f64, &str) = (0.95, "95 %, the least where hugepages are plenty");

struct Way {
    heap: HeapName,
    release: bool,
    /// Else the events take an hour.
    own_lives: bool,
    system: System,
}

const TEMERAIRE: Way = Way { heap: HeapName::Temeraire, release: true, own_lives: false, system: System::PLENTY };

const WAYS: [(&str, Way); 6] = [
    ("plenty", TEMERAIRE),
    ("own lives", Way { own_lives: true, ..TEMERAIRE }),
    ("no release", Way { release: false, ..TEMERAIRE }),
    ("scarce", Way { system: System { frames_percent: Some(50), ..System::PLENTY }, ..TEMERAIRE }),
    ("forks", Way { system: System { fork_every_s: 300, ..System::PLENTY }, ..TEMERAIRE }),
    ("on frames", Way { heap: HeapName::Frames, ..TEMERAIRE }),
];

const COLUMNS: [Column; 15] = [
    ("profile", "profile", Show::Text),
    ("", "way", Show::Text),
    ("worst", "overhead_worst", Show::Percent(2)),
    ("mean", "overhead", Show::Percent(2)),
    ("dense", "dense_free", Show::Percent(2)),
    ("others", "sparse_free", Show::Percent(2)),
    ("cached", "cached", Show::Percent(2)),
    ("regions", "region_free", Show::Percent(2)),
    ("hugepages, worst", "coverage_worst", Show::Percent(1)),
    ("mean", "coverage", Show::Percent(1)),
    ("broken", "broken", Show::Percent(1)),
    ("slabs' own", "slab_overhead", Show::Percent(2)),
    ("lives", "stretch", Show::By(|row| format!("× {:.1}", row.num("stretch")))),
    ("simulated", "simulated_s", Show::By(|row| format!("{:.0} s{}", row.num("simulated_s"), flat(row)))),
    ("took", "wall_s", Show::Seconds),
];

fn flat(row: &Row) -> &'static str {
    if row["flat"] == true { "" } else { ", not flat" }
}

pub fn run(ask: &Ask<'_>) -> Result<Findings, String> {
    let profiles = profiles::here()?;
    let (mut rows, mut over_time) = (Vec::new(), Vec::new());
    for ((name, profile), (way, how)) in simulation::asked(ask, &profiles, &WAYS)? {
        let (row, samples) = play(name, profile, (way, how), ask.form(QUICK, FULL));
        if *way == WAYS[0].0 {
            over_time.push(line(name, &samples));
        }
        rows.push(row);
    }
    let text = format!("{}\n{}", profiles::note(&profiles), show(&rows));
    let mut sheet = Sheet::new(ask, rows);
    let (beyond, covered) = ("memory outside of spans by bytes in spans", "part of the memory on hugepages");
    let series = WAYS.map(|(name, _)| name.to_owned());
    for (name, title, axis, (reference, asked), field) in [
        ("", "Page-heap overhead, worst second of the last quarter", beyond, MOST_OVERHEAD, "overhead_worst"),
        ("coverage", "Memory on intact hugepages, mean of the last quarter", covered, LEAST_COVERAGE, "coverage"),
    ] {
        let subtitle = &format!("the empirical driver on the page heap alone, simulated; the line: {asked}");
        let bars = groups(sheet.rows(), by("profile"), (&series, by("way")), |row| row.num(field));
        sheet.bars(Title(name, title, subtitle), Axis::linear(axis, Unit::Part), &series, bars, Some(reference));
    }
    let title = Title("time", "Page-heap overhead over time", "hugepages without end; the worst second of each part");
    let axes = (Axis::linear("simulated time", Unit::Seconds), Axis::linear(beyond, Unit::Part));
    sheet.lines(title, axes, over_time, Some(MOST_OVERHEAD.0));
    sheet.findings(text)
}

fn line(name: &str, samples: &[Sample]) -> Line {
    let point = |part: &[Sample]| Point::new(part[part.len() - 1].time_s, worst(part));
    let points = samples.chunks(samples.len().div_ceil(POINTS).max(1)).map(point).collect();
    // Not the colour of the allocator of that name.
    Line { name: format!("profile {name}"), points }
}

fn worst(samples: &[Sample]) -> f64 {
    samples.iter().map(Sample::overhead).fold(0.0, f64::max)
}

fn play(
    name: &str,
    profile: &Profile,
    (way, how): (&str, &Way),
    (heap_bytes, events): (u64, u64),
) -> (Row, Vec<Sample>) {
    let start = Instant::now();
    let slower = stretch(profile, heap_bytes, events);
    let (seconds, slower) = if how.own_lives { (HOUR_S / slower, 1.0) } else { (HOUR_S, slower) };
    let config = sim::Config {
        seconds: Some(seconds),
        samples: HOUR_S as u32,
        release_bytes_per_s: courses::rate(how.release),
        system: how.system,
        heap: how.heap,
        more_runs: MORE_HOURS,
        ..sim::Config::new(profile.clone(), heap_bytes, events)
    };
    let played = sim::simulate(&config);
    let status = played.as_ref().err().cloned().unwrap_or("ok".to_owned());
    let samples = played.unwrap_or_default();
    let last = &samples[samples.len() * 3 / 4..];
    let summary = sim::summary(&samples);
    // At the overhead's worst second.
    let top = last.iter().max_by(|a, b| a.overhead().total_cmp(&b.overhead())).copied().unwrap_or_default();
    let of = |bytes: u64| part(bytes, top.span_bytes);
    let row = json!({
        "profile": name,
        "way": way,
        "release_bytes_per_s": config.release_bytes_per_s,
        "events_per_hour": events,
        "overhead_worst": summary.worst_overhead,
        "overhead": mean(last.iter().map(Sample::overhead)),
        "dense_free": of(top.dense_free_bytes),
        "sparse_free": of(top.sparse_free_bytes),
        "cached": of(top.cached_bytes),
        "region_free": of(top.region_free_bytes),
        "coverage_worst": summary.worst_coverage,
        "coverage": mean(last.iter().map(Sample::coverage)),
        "broken": mean(last.iter().map(|s| part(s.broken_bytes, s.backed_bytes))),
        "slab_overhead": mean(last.iter().map(|s| part(s.span_bytes, s.live_bytes) - 1.0)),
        "live_bytes": top.live_bytes,
        "span_bytes": top.span_bytes,
        "backed_bytes": top.backed_bytes,
        "released_bytes": summary.released_bytes,
        "stretch": slower,
        "simulated_s": samples.last().map_or(0.0, |s| s.time_s),
        "flat": sim::is_flat(&samples),
        "wall_s": start.elapsed().as_secs_f64(),
        "status": status,
    });
    (row, samples)
}

fn stretch(profile: &Profile, heap_bytes: u64, events: u64) -> f64 {
    let rows = || profile.rows().iter().filter(|row| row.size <= heap_bytes / LARGEST_PART);
    let (births, bytes) = rows().fold((0.0, 0.0), |(r, b), row| (r + row.rate, b + row.live * row.size as f64));
    // At the profile's lives, births grow with the heap's bytes.
    let births_an_hour = births * heap_bytes as f64 / bytes.max(1.0) * HOUR_S;
    births_an_hour / (events as f64 / 2.0)
}

fn show(rows: &[Row]) -> String {
    let (played, failed): (Vec<_>, Vec<_>) = rows.iter().partition(|row| row.is_ok());
    let table = table(&COLUMNS, played);
    let failed: String =
        failed.iter().map(|row| format!("{}: {}\n", row.word("profile"), row.word("status"))).collect();
    format!("the last quarter of the simulated hours; parts of the overhead at its worst second\n\n{table}{failed}")
}

#[cfg(test)]
mod tests;
