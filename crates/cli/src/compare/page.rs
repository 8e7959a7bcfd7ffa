//! A comparison as a page.

use super::report::{allocators, is_server};
use crate::args;
use crate::usage::quote;
use craton_lab::document::Document;
use craton_lab::format;
use craton_lab::measure::{Measured, Run, Sample, Status};
use craton_lab::page::{Column, Failure, Figure as Shown, Page};
use craton_lab::picture::{Estimate, Unit};
use craton_lab::ratios::{BASE, OURS};
use craton_lab::summary::{Figure, ratio, summarize};

const FIGURES: [(&str, Figure, Unit); 8] = [
    ("wall time", Figure::Wall, Unit::Seconds),
    ("CPU time", Figure::Cpu, Unit::Seconds),
    ("peak RSS", Figure::PeakRss, Unit::Bytes),
    ("steady RSS", Figure::SteadyRss, Unit::Bytes),
    ("minor faults", Figure::MinorFaults, Unit::Count),
    ("major faults", Figure::MajorFaults, Unit::Count),
    ("on hugepages", Figure::Hugepages, Unit::Bytes),
    ("hugepage coverage", Figure::Coverage, Unit::Ratio),
];

const SERVER_FIGURES: [(&str, Figure, Unit); 11] = [
    ("requests per second", Figure::Throughput, Unit::Count),
    ("load's time", Figure::Wall, Unit::Seconds),
    ("p50 latency", Figure::P50, Unit::Seconds),
    ("p99 latency", Figure::P99, Unit::Seconds),
    ("p99.9 latency", Figure::P999, Unit::Seconds),
    ("CPU time", Figure::Cpu, Unit::Seconds),
    ("peak PSS", Figure::PeakRss, Unit::Bytes),
    ("steady PSS", Figure::SteadyRss, Unit::Bytes),
    ("PSS after the load", Figure::AfterLoad, Unit::Bytes),
    ("minor faults", Figure::MinorFaults, Unit::Count),
    ("on hugepages", Figure::Hugepages, Unit::Bytes),
];

pub fn of(document: &Document, measured: &Measured, args: &args::Compare, known: &[String]) -> Page {
    let machine = &document.machine;
    let words: Vec<_> = args.command.iter().map(|word| word.to_string_lossy()).collect();
    let names = allocators(&measured.runs);
    let pinned = args.pin.as_ref().map(|list| format!("The command was kept on the processors {list}."));
    let interval = "Intervals hold the true ratio with 95 % confidence: percentiles of 2000 bootstrap draws of whole rounds, five at least.";
    let proof = "Before the rounds, the dynamic linker and the maps of the largest process showed that each allocator serves the \
         command.";
    let memory = match is_server(&measured.runs) {
        true => {
            "Memory is the sum of PSS over the server's processes. The load ran on the C library's malloc; requests and \
             latency are what it printed."
        }
        false => "Memory is that of the command's largest process.",
    };
    Page {
        title: format!("{} on {} allocators", super::workload(&args.command), names.len()),
        measured: words.join(" "),
        command: document.command.iter().map(|word| quote(word)).collect::<Vec<_>>().join(" "),
        commit: document.commit.clone(),
        machine: vec![
            ("processor".to_owned(), format!("{}, {} usable", machine.cpu, machine.cpus)),
            ("memory".to_owned(), format::bytes(machine.memory_bytes)),
            ("kernel".to_owned(), format!("Linux {}", machine.kernel)),
            ("transparent hugepages".to_owned(), machine.thp.clone()),
        ],
        subject: OURS.to_owned(),
        base: BASE.to_owned(),
        rounds: args.runs,
        warmup: args.warmup.max(1),
        method: [proof.to_owned(), memory.to_owned(), interval.to_owned()]
            .into_iter()
            .chain(load(args))
            .chain(pinned)
            .chain(document.notes.iter().filter(|note| !known.contains(note)).cloned())
            .collect(),
        allocators: names.iter().map(|name| column(&measured.runs, name, known)).collect(),
        failures: measured.runs.iter().filter(|run| run.status != Status::Ok).map(failure).collect(),
    }
}

fn load(args: &args::Compare) -> Option<String> {
    Some(format!("Load: {}", args.load.as_ref()?.display()))
}

fn column(runs: &[Run], name: &str, notes: &[String]) -> Column {
    let prefix = format!("{name}: ");
    Column {
        name: name.to_owned(),
        note: notes.iter().find_map(|note| note.strip_prefix(&prefix)).unwrap_or_default().to_owned(),
        figures: if is_server(runs) { &SERVER_FIGURES[..] } else { &FIGURES[..] }
            .iter()
            .filter_map(|(shown, figure, unit)| figure_of(runs, name, shown, *figure, *unit))
            .collect(),
        rss: middle_run(runs, name).map_or(Vec::new(), |run| run.samples.iter().map(point).collect()),
    }
}

fn point(sample: &Sample) -> (f64, f64) {
    (sample.at_s, sample.rss_bytes as f64)
}

fn figure_of(runs: &[Run], name: &str, shown: &str, figure: Figure, unit: Unit) -> Option<Shown> {
    let spread = summarize(runs, name)?.spread(figure)?;
    let own: Vec<&Run> = runs.iter().filter(|run| run.allocator == name && run.status == Status::Ok).collect();
    let base = |round| {
        let mut all = runs.iter().filter(|run| run.allocator == BASE && run.status == Status::Ok);
        all.find(|run| run.index == round).and_then(|run| figure.of(run)).filter(|base| *base > 0.0)
    };
    let estimate = ratio(runs, name, BASE, figure).filter(|_| name != BASE).map(|ratio| match ratio.interval {
        Some(interval) => Estimate::between(ratio.of_medians, interval.low, interval.high),
        None => Estimate::exact(ratio.of_medians),
    });
    Some(Shown {
        name: shown.to_owned(),
        unit,
        more_is_better: figure.more_is_better(),
        median: spread.median,
        min: spread.min,
        max: spread.max,
        ratio: estimate,
        runs: own.iter().filter_map(|run| figure.of(run)).collect(),
        round_ratios: own.iter().filter_map(|run| Some(figure.of(run)? / base(run.index)?)).collect(),
    })
}

/// By wall time, for the chart over time.
fn middle_run<'a>(runs: &'a [Run], name: &str) -> Option<&'a Run> {
    let mut own: Vec<&Run> = runs.iter().filter(|run| run.allocator == name && run.status == Status::Ok).collect();
    own.sort_by(|a, b| a.wall_s.total_cmp(&b.wall_s));
    own.get(own.len() / 2).copied()
}

fn failure(run: &Run) -> Failure {
    Failure {
        allocator: run.allocator.clone(),
        round: run.index + 1,
        status: run.status.to_string(),
        stderr: run.stderr.clone(),
    }
}
