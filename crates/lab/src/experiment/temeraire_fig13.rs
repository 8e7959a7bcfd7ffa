//! `temeraire-fig13`: how much of the heap lies on hugepages, with and without release.
//!
//! **What.** The empirical driver in simulated memory under courses of demand that vary, once without a rate of release, and once
//! with the library's rate in proportion to the heap. The part of the memory that is on intact hugepages, over time
//! and on average over the second half.
//!
//! **From.** TEMERAIRE Figure 13, which compares programs of a fleet on its old page heap and on the new one, with periodic
//! release and without; here the heap is ours, and the load is the built-in profile's.
//!
//! **State.** Full: 4 GiB, 24 million births and deaths a course, an hour of simulated time. Quick: 256 MiB, 600,000.

use super::{Ask, Experiment, Findings};
use crate::document::Document;
use crate::empirical::profile::Profile;
use crate::empirical::schedule::Schedule;
use crate::empirical::sim::{self, Sample};
use crate::format::{bytes, table};
use crate::picture::{Axis, Bars, Direction, Estimate, Group, Line, Lines, Point, Unit};
use crate::ratios::Ratios;
use craton_pages::HugeBacking;
use craton_sim::ThpMode;
use serde::Serialize;

/// The experiment, in the list.
pub const EXPERIMENT: Experiment = Experiment {
    name: "temeraire-fig13",
    about: "hugepage coverage of the heap under a demand that varies, with and without release",
    answers: "TEMERAIRE figure 13",
    run,
};

const FULL: (u64, u64) = (4 << 30, 24_000_000);
const QUICK: (u64, u64) = (256 << 20, 600_000);
const SECONDS: f64 = 3600.0;
const SAMPLES: u32 = 240;
const SEED: u64 = 1;
/// The heap in so many seconds: for 4 GiB, what the library's background thread gives back by default, 64 MiB a second.
const RELEASE_SECONDS: u64 = 64;
/// The name of each rate in tables and pictures.
const RATES: [&str; 2] = ["no release", "release"];

/// A row of the document.
#[derive(Serialize)]
struct CoverageRow {
    schedule: &'static str,
    release_bytes_per_s: u64,
    time_s: f64,
    span_bytes: u64,
    backed_bytes: u64,
    huge_bytes: u64,
    released_bytes: u64,
    status: &'static str,
}

impl CoverageRow {
    fn new(schedule: &'static str, release_bytes_per_s: u64, sample: &Sample) -> Self {
        Self {
            schedule,
            release_bytes_per_s,
            time_s: sample.time_s,
            span_bytes: sample.span_bytes,
            backed_bytes: sample.backed_bytes,
            huge_bytes: sample.huge_bytes,
            released_bytes: sample.released_bytes,
            status: "ok",
        }
    }
}

/// A course at both rates.
struct Course {
    name: &'static str,
    samples: [Vec<Sample>; 2],
}

fn run(ask: &Ask<'_>) -> Result<Findings, String> {
    super::simulated(ask, EXPERIMENT.name, &Schedule::ALL.map(|(name, _)| name))?;
    let (heap_bytes, events) = if ask.quick { QUICK } else { FULL };
    let mut courses = Vec::new();
    for (name, schedule) in super::asked(ask, &Schedule::ALL) {
        let samples = |release_bytes_per_s| simulate(heap_bytes, events, *schedule, release_bytes_per_s);
        courses.push(Course { name, samples: [samples(0)?, samples(heap_bytes / RELEASE_SECONDS)?] });
    }
    let rates = [0, heap_bytes / RELEASE_SECONDS];
    let mut rows = Vec::new();
    for course in &courses {
        for (samples, rate) in course.samples.iter().zip(rates) {
            rows.extend(samples.iter().map(|sample| CoverageRow::new(course.name, rate, sample)));
        }
    }
    let document: Document<CoverageRow> = Document::new(EXPERIMENT.name, ask.command, &[], rows, &Ratios::default());
    let mut pictures = vec![(String::new(), bars(&courses, &document))];
    pictures.extend(courses.iter().map(|course| (course.name.to_owned(), lines(course, &document))));
    Ok(Findings { text: show(&courses), pictures, failed: 0, document: super::text(&document)? })
}

fn simulate(heap_bytes: u64, events: u64, schedule: Schedule, rate: u64) -> Result<Vec<Sample>, String> {
    sim::simulate(&sim::Config {
        profile: Profile::built_in(),
        heap_bytes,
        schedule,
        events,
        seconds: Some(SECONDS),
        seed: SEED,
        samples: SAMPLES,
        release_bytes_per_s: rate,
        thp: ThpMode::Madvise,
        backing: HugeBacking::AUTO,
    })
}

fn coverage(sample: &Sample) -> f64 {
    if sample.backed_bytes == 0 { 0.0 } else { sample.huge_bytes as f64 / sample.backed_bytes as f64 }
}

fn show(courses: &[Course]) -> String {
    let head = ["course", "", "on hugepages", "memory ÷ in spans", "peak memory", "released"];
    let mut rows = vec![head.map(str::to_owned).to_vec()];
    for course in courses {
        for (samples, rate) in course.samples.iter().zip(RATES) {
            let summary = sim::summary(samples);
            rows.push(vec![
                course.name.to_owned(),
                rate.to_owned(),
                format!("{:.1} %", summary.steady_coverage * 100.0),
                format!("{:.3}", summary.steady_per_span),
                bytes(summary.peak_backed_bytes),
                bytes(summary.released_bytes),
            ]);
        }
    }
    format!("means over the second half of {SECONDS} simulated seconds\n\n{}", table(&rows, &[0, 1]))
}

fn bars(courses: &[Course], document: &Document<CoverageRow>) -> String {
    Bars {
        heading: super::heading(
            "Memory on intact hugepages",
            "the built-in profile under courses of demand, in simulated memory; mean over the second half; more is better",
            document,
        ),
        axis: Axis::linear("part of the memory on hugepages", Unit::Ratio),
        series: RATES.map(str::to_owned).to_vec(),
        groups: courses
            .iter()
            .map(|course| Group {
                name: course.name.to_owned(),
                bars: course
                    .samples
                    .iter()
                    .map(|samples| Some(Estimate::exact(sim::summary(samples).steady_coverage)))
                    .collect(),
            })
            .collect(),
        reference: Some(1.0),
        direction: Direction::Up,
        width_px: 620.0,
    }
    .svg()
}

fn lines(course: &Course, document: &Document<CoverageRow>) -> String {
    let line = |(samples, name): (&Vec<Sample>, &str)| Line {
        name: name.to_owned(),
        points: samples.iter().map(|s| Point::new(s.time_s, coverage(s))).collect(),
    };
    Lines {
        heading: super::heading(
            &format!("Memory on intact hugepages over time: {}", course.name),
            "the built-in profile on the page heap alone, in simulated memory; more is better",
            document,
        ),
        x: Axis::linear("simulated time", Unit::Seconds),
        y: Axis::linear("part of the memory on hugepages", Unit::Ratio),
        series: course.samples.iter().zip(RATES).map(line).collect(),
        reference: Some(1.0),
        width_px: 760.0,
    }
    .svg()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn release_costs_coverage_and_saves_memory_but_most_stays_on_hugepages() {
        let summary = |rate| sim::summary(&simulate(64 << 20, 200_000, Schedule::Ramp, rate).expect("room"));
        let (kept, released) = (summary(0), summary(1 << 20));
        assert!(released.released_bytes > kept.released_bytes);
        assert!(released.steady_coverage <= kept.steady_coverage, "{released}, {kept}");
        assert!(released.steady_per_span <= kept.steady_per_span, "{released}, {kept}");
        assert!(kept.steady_coverage > 0.8, "{kept}");
    }
}
