//! `craton compare`: a program on several allocators, side by side.
//!
//! **Failure.** A document that cannot be written fails before the first run. A failed run is a row
//! like others, and the exit status is 1. Ctrl-C ends the runs; those so far are printed and
//! written.

mod page;
mod report;

use crate::allocators::{self, Allocators};
use crate::args;
use crate::failure::Failure;
use crate::options;
use crate::output::{Output, command};
use crate::program;
use crate::progress::Line;
use crate::signals;
use craton_lab::document::{Document, Row};
use craton_lab::machine;
use craton_lab::measure::server::Server;
use craton_lab::measure::{self, Measured, Plan, Status};
use craton_lab::ratios::{OURS, Ratios};
use std::ffi::{OsStr, OsString};
use std::path::Path;
use std::process::ExitCode;
use std::sync::atomic::Ordering::Relaxed;

pub fn compare(args: &args::Compare) -> Result<ExitCode, Failure> {
    options::agree(&args.options)?;
    program::check(args::program(&args.command)?)?;
    let allocators = allocators::find(args.peers.as_deref(), &args.options)?;
    let processors = processors(args.pin.as_deref())?;
    let mut json = Output::json(args.json.as_deref())?;
    let mut html = args.html.as_deref().map(|path| Output::open("--html", path)).transpose()?;
    if let (Some(json), Some(html)) = (&json, &html)
        && json.is_same(html)
    {
        return Err(Failure::Usage("--json and --html name the same file; give one of them another".to_owned()));
    }
    signals::catch(&signals::ENDING, signals::stop);

    let server = server(args);
    let workload = workload(&args.command);
    let line = Line::start();
    let measured = measure::measure(&Plan {
        command: args.command.clone(),
        allocators: allocators.list.clone(),
        runs: args.runs,
        warmup: args.warmup,
        prove: true,
        processors,
        timeout: args.timeout,
        server: server.as_ref(),
        stop: &signals::STOP,
        progress: &|now| line.show(&workload, now),
    });
    drop(line);

    let stream = Output::beside([&json, &html].into_iter().flatten().find(|output| output.is_standard()));
    let known = report::known(&allocators.notes, &allocators.faults, &measured.runs);
    let notes = report::notes(&measured, &args.command, &args.figure, &known);
    let text = report::show(&measured, &args.command, &notes, stream.colour(), stream.width());
    let printed = stream.write(&text).map_err(|e| format!("cannot print the table: {e}"));
    // The documents come anyway.
    if measured.runs.iter().all(|run| matches!(run.status, Status::CannotStart(_))) {
        printed?;
        let stopped = signals::STOP.load(Relaxed) && measured.runs.is_empty();
        let what = if stopped { "stopped before the first round" } else { "no run could be started, as shown above" };
        return Err(format!("{what}; no document was written").into());
    }
    let document = Document { notes, ..document(&workload, &allocators, &measured) };
    if let Some(json) = &mut json {
        json.document(&document)?;
    }
    if let Some(html) = &mut html {
        html.write(&page::of(&document, &measured, args, &known).html())?;
    }
    printed?;
    verdict(&measured, args, allocators.list.len())
}

fn document(workload: &str, allocators: &Allocators, measured: &Measured) -> Document {
    let rows = measured.runs.iter().map(|run| Row::new(workload, run)).collect();
    Document::new("compare", &command(), &allocators.list, rows, &Ratios::of(&[&measured.runs], OURS))
}

fn server(args: &args::Compare) -> Option<Server> {
    Some(Server {
        ready: args.ready.clone()?,
        ready_limit: args.ready_timeout,
        load: args.load.clone()?,
        duration: args.duration,
        patterns: args.figure.clone(),
    })
}

/// This process must be allowed to use each.
fn processors(list: Option<&str>) -> Result<Vec<usize>, Failure> {
    let Some(list) = list else { return Ok(Vec::new()) };
    let allowed = machine::processors();
    let wanted = machine::processor_list(list).unwrap_or_default();
    match wanted.iter().find(|number| !allowed.contains(number)) {
        None if !wanted.is_empty() => Ok(wanted),
        _ => {
            let names = allowed.iter().map(usize::to_string).collect::<Vec<_>>().join(",");
            let what = "give numbers of processors such as 0 or 0-1; usable:";
            Err(Failure::Usage(format!("--pin {list}: {what} {names}")))
        }
    }
}

fn verdict(measured: &Measured, args: &args::Compare, allocators: usize) -> Result<ExitCode, Failure> {
    let runs = &measured.runs;
    if signals::STOP.load(Relaxed) {
        let (done, all) = (runs.len(), args.runs.saturating_mul(allocators));
        return Err(format!("stopped after {done} of {all} runs; the figures are of these").into());
    }
    let (failed, all) = (runs.iter().filter(|run| run.status != Status::Ok).count(), runs.len());
    if failed > 0 {
        return Err(
            format!("{failed} of {all} runs did not succeed and are in no median; the reasons are above").into()
        );
    }
    Ok(ExitCode::SUCCESS)
}

fn workload(command: &[OsString]) -> String {
    let program = command.first().map_or(OsStr::new(""), OsString::as_os_str);
    Path::new(program).file_name().unwrap_or(program).to_string_lossy().into_owned()
}
