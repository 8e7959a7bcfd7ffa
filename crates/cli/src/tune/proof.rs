//! A program on the default and on a found setting, in turns.

use crate::args;
use crate::failure::Failure;
use crate::library;
use crate::options::VARIABLE;
use crate::progress::Line;
use crate::signals;
use crate::terminal::{Stream, WIDTH, wrap};
use craton_lab::format::{self, bytes, count, seconds};
use craton_lab::measure::{self, Allocator, Plan, Run, Status};
use craton_lab::summary::{Figure, ratio, summarize};
use std::ffi::OsString;
use std::process::ExitCode;
use std::sync::atomic::Ordering::Relaxed;

pub const DEFAULT: &str = "default";
const TUNED: &str = "tuned";

type Column = (&'static str, Figure, fn(f64) -> String);

const ROWS: [Column; 6] = [
    ("wall time", Figure::Wall, seconds),
    ("CPU time", Figure::Cpu, seconds),
    ("peak RSS", Figure::PeakRss, |v| bytes(v as u64)),
    ("steady RSS", Figure::SteadyRss, |v| bytes(v as u64)),
    ("page faults", Figure::MinorFaults, |v| count(v as u64)),
    ("on hugepages", Figure::Hugepages, |v| bytes(v as u64)),
];

/// Craton with these options.
///
/// # Errors
/// The library is not there.
fn ours(name: &str, options: &str) -> Result<Allocator, Failure> {
    let mut allocator = Allocator::preloaded(name, library::find()?);
    allocator.env.push((VARIABLE.into(), options.into()));
    Ok(allocator)
}

/// Runs of CMD in turns, after a warm-up; a setting is its name and options, `step` is for the
/// progress line.
///
/// # Errors
/// The library is not there.
pub fn runs(command: &[OsString], settings: &[(&str, &str)], rounds: usize, step: &str) -> Result<Vec<Run>, Failure> {
    signals::catch(&signals::ENDING, signals::stop);
    let line = Line::start();
    let plan = Plan {
        command: command.to_vec(),
        allocators: settings.iter().map(|(name, options)| ours(name, options)).collect::<Result<_, _>>()?,
        runs: rounds,
        warmup: 1,
        prove: true,
        processors: Vec::new(),
        timeout: None,
        server: None,
        stop: &signals::STOP,
        progress: &|now| line.show(step, now),
    };
    Ok(measure::measure(&plan).runs)
}

pub fn prove(args: &args::Tune, options: &str, stream: Stream) -> Result<ExitCode, Failure> {
    let runs = runs(&args.command, &[(DEFAULT, ""), (TUNED, options)], args.runs, "proof")?;
    stream.write(&text(&runs, options)).map_err(|e| format!("cannot print the table: {e}"))?;
    if signals::STOP.load(Relaxed) {
        return Err("stopped; the figures are of the runs so far".to_owned().into());
    }
    let failed: Vec<&Run> = runs.iter().filter(|run| run.status != Status::Ok).collect();
    match failed.first() {
        None => Ok(ExitCode::SUCCESS),
        Some(run) => {
            let (all, status) = (runs.len(), &run.status);
            let said = run.stderr.lines().last().map_or(String::new(), |line| format!("; its last line: {line}"));
            Err(format!("{} of {all} runs did not succeed ({status}){said}", failed.len()).into())
        }
    }
}

fn text(runs: &[Run], options: &str) -> String {
    let (default, tuned) = (summarize(runs, DEFAULT), summarize(runs, TUNED));
    let (Some(default), Some(tuned)) = (default, tuned) else { return String::new() };
    let mut rows = vec![["", DEFAULT, TUNED, "×", "95 %"].map(str::to_owned).to_vec()];
    for (name, figure, show) in ROWS {
        let median = |summary: &craton_lab::summary::Summary| summary.spread(figure).map(|spread| spread.median);
        let cell = |value: Option<f64>| value.map_or("-".to_owned(), show);
        let ratio = ratio(runs, TUNED, DEFAULT, figure);
        let interval = ratio.and_then(|r| r.interval).map(|i| format!("{:.2}–{:.2}", i.low, i.high));
        rows.push(vec![
            name.to_owned(),
            cell(median(&default)),
            cell(median(&tuned)),
            ratio.map_or("-".to_owned(), |r| format!("{:.2}", r.of_medians)),
            interval.unwrap_or_else(|| "-".to_owned()),
        ]);
    }
    let peak = ratio(runs, TUNED, DEFAULT, Figure::PeakRss).and_then(|ratio| ratio.interval);
    let verdict = match peak {
        Some(interval) if interval.high < 1.0 => "The program's peak memory is clearly lower.",
        Some(interval) if interval.low > 1.0 => "The program's peak memory is clearly higher.",
        Some(_) => "No clear difference in the program's peak memory.",
        None => "Too few rounds to be sure; the default of --runs is five.",
    };
    format!(
        "\nthe program itself, on {options} against the default, medians of {} round{}\n\n{}\n{}",
        default.ok,
        if default.ok == 1 { "" } else { "s" },
        format::table(&rows, &[0]),
        wrap(verdict, WIDTH)
    )
}
