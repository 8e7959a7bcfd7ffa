//! `micro`: what one malloc and its free cost.
//!
//! **What.** [`craton_lab::micro`] as an experiment: patterns by size and threads on each allocator, in ns and in instructions.
//! Instructions repeat from run to run and say why; they need valgrind.
//!
//! **From.** The path that TCMalloc's structure (TEMERAIRE §3) and Bonwick's magazines make short.

use super::{Ask, Experiment, Findings};
use craton_lab::document::Document;
use craton_lab::measure::Progress;
use craton_lab::micro::{self, Config, MicroRow, Status, report};
use craton_lab::picture::{Axis, Line, Lines, Point, Unit};
use craton_lab::ratios::{OURS, Ratios};

/// The experiment, in the list.
pub const EXPERIMENT: Experiment = Experiment {
    name: "micro",
    about: "one malloc and its free: cold and warm, by size and threads, in ns and in instructions",
    answers: "what the fast path costs, and where it ends",
    run,
};

fn run(ask: &Ask<'_>) -> Result<Findings, String> {
    let program = (ask.tool)("craton-micro")?;
    let progress = |now: micro::Progress<'_>| {
        let what = if now.counting { "instructions of " } else { "" };
        let name = format!("{what}{} {} B", now.pattern.name(), now.size_bytes);
        let round = Progress { allocator: now.allocator, round: Some(0), done: now.done, total: now.total };
        (ask.progress)(&name, round);
    };
    let mut config = Config::standard(ask.quick, ask.allocators, program, ask.stop, &progress);
    only(ask, &mut config)?;
    let rows = micro::run(&config)?;
    let failed = rows.iter().filter(|row| !matches!(row.status, Status::Ok | Status::NotCounted(_))).count();
    let mut document = Document::new(EXPERIMENT.name, ask.command, ask.allocators, rows, &Ratios::default());
    document.ratios = report::ratios(&document.rows, OURS);
    let ratios: String = document.ratios.iter().map(|(name, ratio)| format!("{name} {ratio:.3}\n")).collect();
    Ok(Findings {
        text: format!("{}\n{ratios}", report::table(&document.rows)),
        pictures: vec![("pair".to_owned(), picture(&document))],
        failed,
        document: super::text(&document)?,
    })
}

/// Leaves the patterns that are asked for.
fn only(ask: &Ask<'_>, config: &mut Config<'_>) -> Result<(), String> {
    let names: Vec<String> = config.patterns.iter().map(|pattern| pattern.name()).collect();
    if let Some(unknown) = ask.only.iter().find(|name| !names.contains(name)) {
        return Err(format!("--only {unknown}: no such pattern here; there are: {}", names.join(", ")));
    }
    if !ask.only.is_empty() {
        config.patterns.retain(|pattern| ask.only.contains(&pattern.name()));
        config.counted_patterns.retain(|pattern| ask.only.contains(&pattern.name()));
    }
    Ok(())
}

/// The time of a pair over the size, a line for each allocator.
fn picture(document: &Document<MicroRow>) -> String {
    let series = document.allocators.iter().map(|allocator| {
        let of = |row: &&MicroRow| {
            row.allocator == allocator.name && row.pattern == "pair" && row.threads == 1 && row.is_timed()
        };
        let points = document.rows.iter().filter(of).map(|row| Point::new(row.size_bytes as f64, row.ns_median / 1e9));
        Line { name: allocator.name.clone(), points: points.collect() }
    });
    Lines {
        heading: super::heading(
            "A malloc and its free",
            "warm, one thread; median, the loop of 2 to 3 ns included",
            document,
        ),
        x: Axis::log2("size of the object", Unit::Bytes),
        y: Axis::log("time of a pair", Unit::Seconds),
        series: series.collect(),
        reference: None,
        width_px: 760.0,
    }
    .svg()
}
