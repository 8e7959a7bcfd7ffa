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
//! [`FULL`] times on average. Quick: 256 MiB.

use super::profiles;
use super::{Ask, Experiment, Findings};
use crate::document::Document;
use crate::empirical::process::LARGEST_PART;
use crate::empirical::profile::Profile;
use crate::empirical::schedule::Schedule;
use crate::empirical::sim::{self, Sample};
use crate::format::{bytes, seconds, table};
use crate::measure::Progress;
use crate::picture::{Axis, Bars, Direction, Estimate, Group, Unit};
use crate::ratios::Ratios;
use craton_pages::HugeBacking;
use craton_sim::ThpMode;
use serde::Serialize;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Instant;

/// The experiment, in the list.
pub const EXPERIMENT: Experiment = Experiment {
    name: "temeraire-overhead",
    about: "the page heap alone in simulated memory, by profile: overhead and hugepage coverage in steady state",
    answers: "TEMERAIRE §6.1; page-heap overhead",
    run,
};

/// Live bytes, how often each object is replaced on average, and the most events.
const FULL: (u64, f64, u64) = (4 << 30, 4.0, 200_000_000);
const QUICK: (u64, f64, u64) = (256 << 20, 2.0, 4_000_000);
const SECONDS: f64 = 600.0;
const SAMPLES: u32 = 120;
const SEED: u64 = 1;
/// The heap in so many seconds: for 4 GiB, what the library's background thread gives back by default, 64 MiB a second.
const RELEASE_SECONDS: u64 = 64;
const RATES: [&str; 2] = ["no release", "release"];
/// What is to be reached.
const MOST_OVERHEAD: f64 = 0.06;

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
    let names: Vec<&str> = profiles.iter().map(|(name, _)| name.as_str()).collect();
    super::simulated(ask, EXPERIMENT.name, &names)?;
    let mut rows = Vec::new();
    let total = 2 * profiles.len();
    for (name, profile) in &profiles {
        if !ask.only.is_empty() && !ask.only.contains(name) {
            continue;
        }
        for rate in RATES {
            if ask.stop.load(Relaxed) {
                break;
            }
            let done = rows.len();
            (ask.progress)(name, Progress { allocator: rate, round: Some(0), done, total });
            rows.push(play(name, profile, rate != RATES[0], if ask.quick { QUICK } else { FULL }));
        }
    }
    let failed = rows.iter().filter(|row: &&OverheadRow| row.status != "ok").count();
    let document = Document::new(EXPERIMENT.name, ask.command, &[], rows, &Ratios::default());
    let overhead = |row: &OverheadRow| row.overhead;
    Ok(Findings {
        text: format!("{}\n{}", profiles::note(&profiles), show(&document.rows)),
        pictures: vec![
            (
                String::new(),
                picture(
                    "Page-heap overhead in steady state",
                    "memory ÷ bytes in spans − 1",
                    MOST_OVERHEAD,
                    overhead,
                    &document,
                ),
            ),
            (
                "coverage".to_owned(),
                picture(
                    "Memory on intact hugepages",
                    "part of the memory on hugepages",
                    1.0,
                    |row| row.coverage,
                    &document,
                ),
            ),
        ],
        failed,
        document: super::text(&document)?,
    })
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
    let release_bytes_per_s = if release { heap_bytes / RELEASE_SECONDS } else { 0 };
    let events = events(profile, heap_bytes, replaced, most);
    let start = Instant::now();
    let played = sim::simulate(&sim::Config {
        profile: profile.clone(),
        heap_bytes,
        schedule: Schedule::Steady,
        events,
        seconds: Some(SECONDS),
        seed: SEED,
        samples: SAMPLES,
        release_bytes_per_s,
        thp: ThpMode::Madvise,
        backing: HugeBacking::AUTO,
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

fn ratio(part: u64, whole: u64) -> f64 {
    if whole == 0 { 0.0 } else { part as f64 / whole as f64 }
}

fn mean(samples: &[Sample], of: impl Fn(&Sample) -> f64) -> f64 {
    samples.iter().map(of).sum::<f64>() / samples.len().max(1) as f64
}

fn overhead(samples: &[Sample]) -> f64 {
    mean(samples, |s| ratio(s.backed_bytes, s.span_bytes) - 1.0)
}

fn show(rows: &[OverheadRow]) -> String {
    let head = [
        "profile",
        "",
        "overhead",
        "3rd quarter",
        "last",
        "on hugepages",
        "live",
        "in spans",
        "memory",
        "slabs' own",
        "events",
        "took",
    ];
    let mut lines = vec![head.map(str::to_owned).to_vec()];
    for row in rows {
        let rate = RATES[usize::from(row.release_bytes_per_s > 0)];
        if row.status != "ok" {
            lines.push(vec![row.profile.clone(), rate.to_owned(), row.status.clone()]);
            continue;
        }
        let percent = |part: f64| format!("{:.2} %", part * 100.0);
        lines.push(vec![
            row.profile.clone(),
            rate.to_owned(),
            percent(row.overhead),
            percent(row.overhead_third_quarter),
            percent(row.overhead_last_quarter),
            percent(row.coverage),
            bytes(row.live_bytes),
            bytes(row.span_bytes),
            bytes(row.backed_bytes),
            percent(row.slab_overhead),
            format!("{} M", row.events / 1_000_000),
            seconds(row.wall_s),
        ]);
    }
    format!("means over the second half of {SECONDS} simulated seconds\n\n{}", table(&lines, &[0, 1]))
}

fn picture(
    title: &str,
    axis: &str,
    reference: f64,
    of: fn(&OverheadRow) -> f64,
    document: &Document<OverheadRow>,
) -> String {
    let mut groups: Vec<Group> = Vec::new();
    for row in &document.rows {
        let bar = (row.status == "ok").then(|| Estimate::exact(of(row)));
        match groups.last_mut().filter(|group| group.name == row.profile) {
            Some(group) => group.bars.push(bar),
            None => groups.push(Group { name: row.profile.clone(), bars: vec![bar] }),
        }
    }
    Bars {
        heading: super::heading(
            title,
            "the empirical driver on the page heap alone, in simulated memory, without release and with it",
            document,
        ),
        axis: Axis::linear(axis, Unit::Ratio),
        series: RATES.map(str::to_owned).to_vec(),
        groups,
        reference: Some(reference),
        direction: Direction::Up,
        width_px: 700.0,
    }
    .svg()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_built_in_profile_has_little_overhead_and_lies_on_hugepages() {
        let row = play("built-in", &Profile::built_in(), false, (128 << 20, 0.5, 2_000_000));
        assert_eq!(row.status, "ok");
        assert!((0.0..0.3).contains(&row.overhead), "{}", row.overhead);
        assert!(row.coverage > 0.8, "{}", row.coverage);
        assert!(row.slab_overhead > 0.0 && row.backed_bytes > row.live_bytes);
    }

    #[test]
    fn events_replace_each_object_and_stay_within_bounds() {
        let profile = Profile::parse("1024, 5, 100\n", "p").expect("good");
        assert_eq!(events(&profile, 1024 * 1000, 3.0, 10_000), 6000);
        assert_eq!(events(&profile, 1024 * 1000, 3.0, 4000), 4000);
        assert_eq!(events(&profile, 1024 * 1000, 0.01, 4000), 200);
    }

    #[test]
    fn a_profile_that_cannot_be_played_is_a_row_that_says_why() {
        let profile = Profile::parse("1000000, 5, 100\n", "p").expect("good");
        let row = play("p", &profile, true, (1 << 20, 1.0, 1000));
        assert!(row.status.contains("too small") && row.backed_bytes == 0, "{}", row.status);
    }
}
