//! `temeraire-empirical`: how much memory the page heap needs for a load that varies.
//!
//! **What.** The empirical driver on the page heap alone, in simulated memory, under each course of the heap's size: live
//! bytes, bytes in spans, bytes with memory, and the part of these on intact hugepages.
//!
//! **From.** TEMERAIRE §6.1, whose simulated loads figure 11 draws. Built-in distribution of sizes; others are played by
//! `craton-work empirical --simulated --profile FILE`.
//!
//! **State.** Full: 4 GiB, 12 million births and deaths for each course. Quick: 256 MiB, 400,000.

use super::courses::{self, CourseRow, RELEASE};
use super::{Ask, Experiment, Findings, simulation};
use crate::empirical::sim::Summary;
use craton_lab::document::Document;
use craton_lab::format::{Column, bytes, table_of};
use craton_lab::picture::{Axis, Unit};

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

fn run(ask: &Ask<'_>) -> Result<Findings, String> {
    let rows = courses::play(ask, EXPERIMENT.name, &RELEASE[..1], if ask.quick { QUICK } else { FULL }, SECONDS)?;
    simulation::findings(ask, EXPERIMENT.name, rows, show, |document| {
        courses::by_course(&document.rows).map(|of| (of[0].schedule.to_owned(), picture(of, document))).collect()
    })
}

fn show(rows: &[CourseRow]) -> String {
    let columns: [Column<(&str, Summary)>; 7] = [
        ("course", |(name, _)| (*name).to_owned()),
        ("peak live", |(_, s)| bytes(s.peak_live_bytes)),
        ("peak backed", |(_, s)| bytes(s.peak_backed_bytes)),
        ("÷ live", |(_, s)| format!("{:.3}", s.peak_overhead)),
        ("steady ÷ live", |(_, s)| format!("{:.3}", s.steady_overhead)),
        ("on hugepages", |(_, s)| simulation::percent(s.steady_coverage)),
        ("released", |(_, s)| bytes(s.released_bytes)),
    ];
    let summaries: Vec<_> = courses::by_course(rows).map(|of| (of[0].schedule, courses::summary(of))).collect();
    let table = table_of(&columns, &[0], &summaries);
    format!("the page heap in simulated memory; backed bytes divided by live ones\n\n{table}")
}

fn picture(rows: &[CourseRow], document: &Document<CourseRow>) -> String {
    let line = |name, of: fn(&CourseRow) -> u64| simulation::line(name, rows, |row| (row.at.time_s, of(row) as f64));
    simulation::over_time(
        &format!("Demand and memory: {}", rows[0].schedule),
        "the empirical driver on the page heap alone, in simulated memory",
        document,
        Axis::linear("memory", Unit::Bytes),
        vec![
            line("live objects", |row| row.at.live_bytes),
            line("spans", |row| row.at.span_bytes),
            line("with memory", |row| row.at.backed_bytes),
        ],
    )
}
