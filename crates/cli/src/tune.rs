//! `craton tune`: settings that suit a recorded trace.
//!
//! **What.** Every setting of the page heap is replayed on simulated memory; the best for a goal is
//! the answer. How sure it is: in how many of the replay's moments it backs less than the default.
//! On request a program runs on both, and on settings of the caches, which a trace does not show.
//!
//! **From.** TEMERAIRE §6.2, which chose policies by traces and proved them by A/B runs.

mod proof;
mod search;
mod trial;

use crate::args;
use crate::failure::Failure;
use crate::options::VARIABLE;
use crate::output::{Output, command};
use crate::program;
use crate::replay::{notes, parse, read};
use crate::terminal::{Progress, Stream, say};
use craton_lab::document::Document;
use craton_lab::format;
use craton_lab::ratios::Ratios;
use craton_lab::replay::SAMPLES;
use search::{Goal, Tried};
use std::process::ExitCode;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

/// A shorter recording sees few releases.
const SHORT_S: f64 = 10.0;
/// Rows of the table, beside the default's.
const SHOWN: usize = 5;

pub fn tune(args: &args::Tune) -> Result<ExitCode, Failure> {
    if let Some(name) = args.command.first() {
        program::check(name)?;
    }
    let goal = Goal::parse(&args.goal);
    let mut json = Output::json(args.json.as_deref())?;
    let file = read(&args.trace)?;
    let trace = parse(&args.trace, &file)?;
    let line = Progress::start();
    let done = AtomicUsize::new(0);
    let all = search::search(&trace, |all| {
        line.show(&format!("{} of {all} settings replayed", done.fetch_add(1, Relaxed) + 1));
    });
    drop(line);
    let all = all.map_err(|why| format!("{}: {why}", args.trace.display()))?;
    let best = goal.best(&all);
    let text = format!("{}{}", notes(&trace), text(&args.trace.to_string_lossy(), &all, best, goal));
    let printed = Output::beside(json.as_ref()).write(&text);
    if let Some(json) = &mut json {
        let rows = all.iter().map(|tried| tried.row(&args.trace, std::ptr::eq(tried, best))).collect();
        json.document(&Document::new("tune", &command(), &[], rows, &Ratios::default()))?;
    }
    printed.map_err(|e| format!("cannot print the table: {e}"))?;
    if args.command.is_empty() {
        return Ok(ExitCode::SUCCESS);
    }
    let stream = Output::beside(json.as_ref());
    let options = match goal {
        Goal::Coverage => best.options(),
        Goal::Rss | Goal::Balanced => trial::best(args, &best.options(), goal, stream)?,
    };
    if options.is_empty() {
        say("craton: no setting to prove; the default is best\n");
        return Ok(ExitCode::SUCCESS);
    }
    proof::prove(args, &options, stream)
}

fn text(name: &str, all: &[Tried], best: &Tried, goal: Goal) -> String {
    let default = search::default_of(all);
    let mut ranked: Vec<&Tried> = all.iter().filter(|tried| !tried.is_default()).collect();
    ranked.sort_by(|a, b| goal.compare(default, a, b));
    ranked.dedup_by(|a, b| row(a)[1..] == row(b)[1..]);
    ranked.truncate(SHOWN);
    let rows = std::iter::once(default).chain(ranked).map(row);
    let head = ["setting", "peak memory", "steady", "on hugepages", "system calls"].map(str::to_owned).to_vec();
    let rows: Vec<Vec<String>> = std::iter::once(head).chain(rows).collect();
    let mut text = format!("{name}: {} settings, the best for {} below the default\n\n", all.len(), goal.name());
    if default.outcome.duration_s < SHORT_S {
        let time = format::seconds(default.outcome.duration_s);
        text = format!("the recording of {time} is too short to show what goes back after seconds\n{text}");
    }
    text += &format::stacked(&rows, &[0], 1, Stream::Out.width());
    if best.is_default() {
        return text + &format!("\nNo setting is better for {} than the default.\n", goal.name());
    }
    text += &format!("\n{VARIABLE}={}\n", best.options());
    text += &format!("Compared with the default, in simulated memory: {}.\n", differences(default, best));
    let (less, all) = (best.moments_below(default), SAMPLES);
    text + &format!("It backs less memory than the default in {less} of {all} moments of the recording.\n")
}

fn row(tried: &Tried) -> Vec<String> {
    let outcome = &tried.outcome;
    let name = if tried.is_default() { "default".to_owned() } else { tried.options() };
    let coverage = outcome.hugepage_coverage.map_or("-".to_owned(), |share| format!("{:.1} %", 100.0 * share));
    vec![
        name,
        format::bytes(outcome.peak_backed_bytes),
        format::bytes(outcome.steady_backed_bytes),
        coverage,
        format::count(tried.system_calls()),
    ]
}

fn differences(default: &Tried, best: &Tried) -> String {
    let change = |name: &str, from: u64, to: u64| {
        let percent = 100.0 * (to as f64 / from.max(1) as f64 - 1.0);
        match format!("{:.0}", percent.abs()).as_str() {
            "0" => format!("no change of {name}"),
            size => format!("{size} % {} {name}", if percent < 0.0 { "less" } else { "more" }),
        }
    };
    let (a, b) = (&default.outcome, &best.outcome);
    let points = 100.0 * (b.hugepage_coverage.unwrap_or(0.0) - a.hugepage_coverage.unwrap_or(0.0));
    let coverage = match format!("{:.0}", points.abs()).as_str() {
        "0" => "the same share on hugepages".to_owned(),
        size => format!("{size} points {} on hugepages", if points < 0.0 { "less" } else { "more" }),
    };
    [
        change("peak memory", a.peak_backed_bytes, b.peak_backed_bytes),
        change("steady memory", a.steady_backed_bytes, b.steady_backed_bytes),
        coverage,
    ]
    .join(", ")
}
