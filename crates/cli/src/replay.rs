//! `craton replay`: a trace on a page heap in simulated memory.
//!
//! **Failure.** Status 2 for an unknown heap, key or value; 1 for a bad file, with the offset.

use crate::args;
use crate::failure::Failure;
use crate::input;
use crate::output::{Output, command};
use crate::usage::nearest;
use craton_lab::document::Document;
use craton_lab::format;
use craton_lab::ratios::Ratios;
use craton_lab::replay::{FitName, HEAPS, HeapName, HugeBacking, Outcome, Policy, Trace, replay as play};
use craton_tables::amount::size;
use serde::Serialize;
use std::fs;
use std::io;
use std::os::unix::fs::FileTypeExt;
use std::path::Path;
use std::process::ExitCode;

const OPTIONS: &str = "release_rate=BYTES, regions=0|1, fit=lfr|fullest|best, thp=auto|always|never";

#[derive(Serialize)]
struct Row {
    trace: String,
    heap: String,
    options: Vec<String>,
    unchecked_events: u64,
    dropped_events: Option<u64>,
    #[serde(flatten)]
    outcome: Outcome,
}

pub fn replay(args: &args::Replay) -> Result<ExitCode, Failure> {
    let policy = policy(heap(&args.heap)?, &args.options)?;
    let mut json = Output::json(args.json.as_deref())?;
    let name = args.trace.display();
    let file = read(&args.trace)?;
    let trace = parse(&args.trace, &file)?;
    let outcome = play(&trace, &policy).map_err(|why| format!("{name}: {why}"))?;

    let text = format!("{}{}", notes(&trace), table(&outcome));
    let printed = Output::beside(json.as_ref()).write(&text);
    if let Some(json) = &mut json {
        let row = Row {
            trace: args.trace.to_string_lossy().into_owned(),
            heap: args.heap.clone(),
            options: args.options.clone(),
            unchecked_events: trace.unchecked(),
            dropped_events: trace.dropped(),
            outcome,
        };
        json.document(&Document::new("replay", &command(), &[], vec![row], &Ratios::default()))?;
    }
    printed.map_err(|e| format!("cannot print the table: {e}"))?;
    Ok(ExitCode::SUCCESS)
}

pub fn read(path: &Path) -> Result<Vec<u8>, Failure> {
    let name = path.display();
    // /dev/zero has no end.
    if fs::metadata(path).is_ok_and(|it| it.file_type().is_char_device() || it.file_type().is_block_device()) {
        return Err(format!("{name} is a device; give a file or a pipe").into());
    }
    input::refuse_named_pipe(path, "a file, or a shell's `<(CMD)`")?;
    let file = fs::read(path).map_err(|e| {
        let advice = match e.kind() {
            io::ErrorKind::NotFound => format!("; `craton run --trace {name} -- CMD` records a trace"),
            io::ErrorKind::IsADirectory => "; give the path of a trace in it".to_owned(),
            _ => String::new(),
        };
        format!("cannot read {name}: {e}{advice}")
    })?;
    Ok(file)
}

pub fn parse<'f>(path: &Path, file: &'f [u8]) -> Result<Trace<'f>, Failure> {
    let trace = Trace::read(file);
    Ok(trace.map_err(|e| format!("{}: {e}; `craton run --trace FILE -- CMD` records a trace", path.display()))?)
}

fn heap(name: &str) -> Result<HeapName, Failure> {
    let known = HEAPS.iter().find(|(known, _)| *known == name).map(|(_, heap)| *heap);
    let names = HEAPS.map(|(name, _)| name).join(", ");
    known.ok_or_else(|| Failure::Usage(format!("--heap {name}: no such heap; heaps: {names}")))
}

fn policy(heap: HeapName, options: &[String]) -> Result<Policy, Failure> {
    let mut policy = Policy { heap, ..Policy::default() };
    for option in options {
        let fail = |what: &str| Err(Failure::Usage(format!("-o {option}: {what}; options: {OPTIONS}")));
        let Some((key, value)) = option.split_once('=') else {
            return fail("not of the form KEY=VALUE");
        };
        if heap == HeapName::Frames && matches!(key, "regions" | "fit") {
            let what = "--heap frames has no such option; options: release_rate=BYTES, thp=auto|always|never";
            return Err(Failure::Usage(format!("-o {option}: {what}")));
        }
        let known = match key {
            "release_rate" => size(value.as_bytes()).map(|bytes| policy.release_rate = bytes).is_some(),
            "regions" => set(&mut policy.regions, value, &[("0", false), ("1", true)]),
            "fit" => set(&mut policy.fit, value, &FITS),
            "thp" => set(&mut policy.backing, value, &BACKINGS),
            _ => {
                let meant = nearest(key, &["release_rate", "regions", "fit", "thp"]);
                return fail(
                    &meant.map_or("no such key".to_owned(), |key| format!("no such key; did you mean `{key}`?")),
                );
            }
        };
        if !known {
            return fail("bad value");
        }
    }
    Ok(policy)
}

const FITS: [(&str, FitName); 3] =
    [("lfr", FitName::LongestFreeFirst), ("fullest", FitName::FullestFirst), ("best", FitName::GlobalBestFit)];
const BACKINGS: [(&str, HugeBacking); 3] =
    [("auto", HugeBacking::AUTO), ("always", HugeBacking::ALWAYS), ("never", HugeBacking::NEVER)];

/// False: an unknown name.
fn set<T: Copy>(place: &mut T, value: &str, names: &[(&str, T)]) -> bool {
    let found = names.iter().find(|(name, _)| *name == value);
    found.map(|(_, value)| *place = *value).is_some()
}

pub fn notes(trace: &Trace<'_>) -> String {
    let mut text = String::new();
    if !trace.is_complete() {
        text += "the recording has no end: its program was killed, ended by _exit, or still runs; ";
        text += &format!("no checksum covers the last {} events\n", format::count(trace.unchecked()));
    }
    match trace.dropped() {
        Some(0) => {}
        Some(n) => {
            text += &format!(
                "later events that were dropped: {}; the limit is {} (trace_events), or the file could not grow\n",
                format::count(n),
                format::count(trace.header().bound)
            );
        }
        None => text += "the limit was reached; the number of dropped events is unknown\n",
    }
    text
}

fn table(outcome: &Outcome) -> String {
    let percent = |part: Option<f64>| part.map_or("-".to_owned(), |part| format!("{:.1} %", 100.0 * part));
    let calls = &outcome.calls;
    let rows = [
        ("events", format::count(outcome.events)),
        ("recorded time", format::seconds(outcome.duration_s)),
        ("spans at the end", format::count(outcome.spans_at_end)),
        ("spans moved to grow", format::count(outcome.moved)),
        ("peak demand", format::bytes(outcome.peak_demand_bytes)),
        ("steady demand", format::bytes(outcome.steady_demand_bytes)),
        ("peak backed memory", format::bytes(outcome.peak_backed_bytes)),
        ("steady backed memory", format::bytes(outcome.steady_backed_bytes)),
        ("backed memory at the end", format::bytes(outcome.backed_at_end_bytes)),
        ("overhead", percent(outcome.overhead)),
        ("hugepage coverage", percent(outcome.hugepage_coverage)),
        ("released", format::bytes(outcome.released_bytes)),
        ("calls: reserve", format::count(calls.reserve_calls)),
        ("calls: back", format::count(calls.back_calls)),
        ("calls: unback", format::count(calls.unback_calls)),
        ("calls: collapse", format::count(calls.collapse_calls)),
        ("calls: advise", format::count(calls.advise_calls)),
        ("replay time", format::seconds(outcome.wall_s)),
        ("events a second", format::count(outcome.events_per_s as u64)),
    ];
    let rows: Vec<Vec<String>> = rows.into_iter().map(|(name, value)| vec![name.to_owned(), value]).collect();
    format::table(&rows, &[0])
}

#[cfg(test)]
mod tests;
