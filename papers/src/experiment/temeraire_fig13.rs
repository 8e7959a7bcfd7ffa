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

use super::courses::{self, CourseRow, RELEASE, rate_name};
use super::{Ask, Experiment, Findings, heading, simulation};
use crate::empirical::sim::Summary;
use craton_lab::document::Document;
use craton_lab::format::{Column, bytes, table_of};
use craton_lab::picture::{Axis, Bars, Direction, Estimate, Group, Unit};

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

fn run(ask: &Ask<'_>) -> Result<Findings, String> {
    let rows = courses::play(ask, EXPERIMENT.name, &RELEASE, if ask.quick { QUICK } else { FULL }, SECONDS)?;
    simulation::findings(ask, EXPERIMENT.name, rows, show, |document| {
        let lines = courses::by_course(&document.rows).map(|of| (of[0].schedule.to_owned(), lines(of, document)));
        [(String::new(), bars(document))].into_iter().chain(lines).collect()
    })
}

fn show(rows: &[CourseRow]) -> String {
    let columns: [Column<(&CourseRow, Summary)>; 6] = [
        ("course", |(row, _)| row.schedule.to_owned()),
        ("", |(row, _)| rate_name(row.release_bytes_per_s).to_owned()),
        ("on hugepages", |(_, s)| simulation::percent(s.steady_coverage)),
        ("memory ÷ in spans", |(_, s)| format!("{:.3}", s.steady_per_span)),
        ("peak memory", |(_, s)| bytes(s.peak_backed_bytes)),
        ("released", |(_, s)| bytes(s.released_bytes)),
    ];
    let summaries: Vec<_> = courses::by_rate(rows).map(|of| (&of[0], courses::summary(of))).collect();
    let table = table_of(&columns, &[0, 1], &summaries);
    format!("means over the second half of {SECONDS} simulated seconds\n\n{table}")
}

fn bars(document: &Document<CourseRow>) -> String {
    let bar = |of: &[CourseRow]| Some(Estimate::exact(courses::summary(of).steady_coverage));
    let group =
        |of: &[CourseRow]| Group { name: of[0].schedule.to_owned(), bars: courses::by_rate(of).map(bar).collect() };
    Bars {
        heading: heading(
            "Memory on intact hugepages",
            "the built-in profile under courses of demand, in simulated memory; mean over the second half; more is better",
            document,
        ),
        axis: Axis::linear("part of the memory on hugepages", Unit::Part),
        series: RELEASE.map(|(name, _)| name.to_owned()).to_vec(),
        groups: courses::by_course(&document.rows).map(group).collect(),
        reference: Some(1.0),
        direction: Direction::Up,
        width_px: 620.0,
    }
    .svg()
}

fn lines(rows: &[CourseRow], document: &Document<CourseRow>) -> String {
    let coverage = |row: &CourseRow| (row.at.time_s, simulation::ratio(row.at.huge_bytes, row.at.backed_bytes));
    let line = |of: &[CourseRow]| simulation::line(rate_name(of[0].release_bytes_per_s), of, coverage);
    simulation::over_time(
        &format!("Memory on intact hugepages over time: {}", rows[0].schedule),
        "the built-in profile on the page heap alone, in simulated memory; more is better",
        document,
        Axis::linear("part of the memory on hugepages", Unit::Part),
        courses::by_rate(rows).map(line).collect(),
    )
}

#[cfg(test)]
mod tests;
