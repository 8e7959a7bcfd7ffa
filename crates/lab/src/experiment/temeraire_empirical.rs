//! `temeraire-empirical`: how much memory the page heap needs for a load that varies.
//!
//! **What.** The empirical driver on the page heap alone, in simulated memory, under each course of the heap's size: live
//! bytes, bytes in spans, bytes with memory, and the part of these on intact hugepages.
//!
//! **From.** TEMERAIRE §6.1, whose simulated loads figure 11 draws. Built-in distribution of sizes; others are played by
//! `craton-work empirical --simulated --profile FILE`.
//!
//! **State.** Full: 4 GiB, 12 million births and deaths for each course. Quick: 256 MiB, 400,000.

use super::{Ask, Experiment, Findings};
use crate::document::Document;
use crate::empirical::profile::Profile;
use crate::empirical::schedule::Schedule;
use crate::empirical::sim::{self, Sample};
use crate::format::{bytes, table};
use crate::picture::{Axis, Line, Lines, Point, Unit};
use crate::ratios::Ratios;
use craton_pages::HugeBacking;
use craton_sim::ThpMode;
use serde::Serialize;

/// The experiment, in the list.
pub const EXPERIMENT: Experiment = Experiment {
    name: "temeraire-empirical",
    about: "the page heap alone in simulated memory: overhead and hugepage coverage under five courses of demand",
    answers: "TEMERAIRE §6.1; figure 11's question",
    run,
};

const FULL: (u64, u64) = (4 << 30, 12_000_000);
const QUICK: (u64, u64) = (256 << 20, 400_000);
/// Simulated time of a course: long beside the windows of seconds over which the heap watches demand.
const SECONDS: f64 = 600.0;
/// Samples of a course.
const SAMPLES: u32 = 240;
const SEED: u64 = 1;

/// A row of the document.
#[derive(Serialize)]
struct SimRow {
    schedule: &'static str,
    time_s: f64,
    target_bytes: u64,
    live_bytes: u64,
    span_bytes: u64,
    backed_bytes: u64,
    huge_bytes: u64,
    free_backed_bytes: u64,
    released_bytes: u64,
    status: &'static str,
}

impl SimRow {
    fn new(schedule: &'static str, sample: &Sample) -> Self {
        Self {
            schedule,
            time_s: sample.time_s,
            target_bytes: sample.target_bytes,
            live_bytes: sample.live_bytes,
            span_bytes: sample.span_bytes,
            backed_bytes: sample.backed_bytes,
            huge_bytes: sample.huge_bytes,
            free_backed_bytes: sample.free_backed_bytes,
            released_bytes: sample.released_bytes,
            status: "ok",
        }
    }
}

fn run(ask: &Ask<'_>) -> Result<Findings, String> {
    super::simulated(ask, EXPERIMENT.name, &Schedule::ALL.map(|(name, _)| name))?;
    let (heap_bytes, events) = if ask.quick { QUICK } else { FULL };
    let mut courses: Vec<(&'static str, Vec<Sample>)> = Vec::new();
    for (name, schedule) in super::asked(ask, &Schedule::ALL) {
        let samples = sim::simulate(&sim::Config {
            profile: Profile::built_in(),
            heap_bytes,
            schedule: *schedule,
            events,
            seconds: Some(SECONDS),
            seed: SEED,
            samples: SAMPLES,
            release_bytes_per_s: 0,
            thp: ThpMode::Madvise,
            backing: HugeBacking::AUTO,
        })?;
        courses.push((*name, samples));
    }
    let rows = courses.iter().flat_map(|(name, samples)| samples.iter().map(|s| SimRow::new(name, s))).collect();
    let document: Document<SimRow> = Document::new(EXPERIMENT.name, ask.command, &[], rows, &Ratios::default());
    Ok(Findings {
        text: show(&courses),
        pictures: courses
            .iter()
            .map(|(name, samples)| ((*name).to_owned(), picture(name, samples, &document)))
            .collect(),
        failed: 0,
        document: super::text(&document)?,
    })
}

fn show(courses: &[(&'static str, Vec<Sample>)]) -> String {
    let head = ["course", "peak live", "peak backed", "÷ live", "steady ÷ live", "on hugepages", "released"];
    let mut rows = vec![head.map(str::to_owned).to_vec()];
    for (name, samples) in courses {
        let summary = sim::summary(samples);
        rows.push(vec![
            (*name).to_owned(),
            bytes(summary.peak_live_bytes),
            bytes(summary.peak_backed_bytes),
            format!("{:.3}", summary.peak_overhead),
            format!("{:.3}", summary.steady_overhead),
            format!("{:.1} %", summary.steady_coverage * 100.0),
            bytes(summary.released_bytes),
        ]);
    }
    format!("the page heap in simulated memory; backed bytes divided by live ones\n\n{}", table(&rows, &[0]))
}

fn picture(name: &str, samples: &[Sample], document: &Document<SimRow>) -> String {
    let line = |name: &str, of: fn(&Sample) -> u64| Line {
        name: name.to_owned(),
        points: samples.iter().map(|sample| Point::new(sample.time_s, of(sample) as f64)).collect(),
    };
    Lines {
        heading: super::heading(
            &format!("Demand and memory: {name}"),
            "the empirical driver on the page heap alone, in simulated memory",
            document,
        ),
        x: Axis::linear("simulated time", Unit::Seconds),
        y: Axis::linear("memory", Unit::Bytes),
        series: vec![
            line("live objects", |s| s.live_bytes),
            line("in spans", |s| s.span_bytes),
            line("with memory", |s| s.backed_bytes),
        ],
        reference: None,
        width_px: 760.0,
    }
    .svg()
}
