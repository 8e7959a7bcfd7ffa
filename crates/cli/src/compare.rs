//! `craton compare`: a program on glibc's malloc and on Craton, side by side.
//!
//! **What.** The lab measures; this looks for the library, opens the document before the first run, because nobody wants
//! to learn after an hour that it cannot be written, and prints.
//!
//! **Failure.** A run that failed, or that Craton did not serve, is a row like others, and the exit status is 1. Stopped
//! early (Ctrl-C), what was measured is printed and written all the same.

mod output;
mod progress;
mod report;

use crate::failure::Failure;
use crate::signals;
use crate::terminal::Stream;
use crate::{args, library};
use craton_lab::document::Document;
use craton_lab::measure::{self, Allocator, Plan, Run, Status};
use output::Output;
use std::env;
use std::ffi::{OsStr, OsString};
use std::path::Path;
use std::process::ExitCode;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

/// What is compared: the base, and what is divided by it.
const BASE: &str = "glibc";
const OURS: &str = "craton";

/// Set when the comparison shall end.
static STOP: AtomicBool = AtomicBool::new(false);

extern "C" fn stop(_signal: i32, _info: *mut libc::siginfo_t, _context: *mut libc::c_void) {
    STOP.store(true, Relaxed);
}

/// Does what `craton compare` was asked for.
pub fn compare(args: &args::Compare) -> Result<ExitCode, Failure> {
    let library = library::find()?;
    if env::var_os("LD_PRELOAD").is_some_and(|list| library::is_in(&list)) {
        let text = "LD_PRELOAD names libcraton.so, so that the runs on glibc would be on Craton too; unset it first";
        return Err(Failure(text.to_owned()));
    }
    let output = args.json.as_deref().map(Output::open).transpose()?;
    signals::catch(stop);

    let progress = progress::Line::new(args.runs);
    let runs = measure::measure(&Plan {
        command: args.command.clone(),
        allocators: vec![Allocator::glibc(), Allocator::preloaded(OURS, library)],
        runs: args.runs,
        warmup: args.warmup,
        timeout: args.timeout,
        stop: &STOP,
        progress: &|now| progress.show(now),
    });
    drop(progress);

    let stream = if output.as_ref().is_some_and(Output::is_standard) { Stream::Err } else { Stream::Out };
    let text = report::show(&runs, args, stream.colour());
    let printed = stream.write(&text).map_err(|e| Failure(format!("cannot print the table: {e}")));
    // The document is worth having even where nobody reads the table.
    if let Some(output) = output {
        output.write(&Document::new("compare", &workload(&args.command), &command(), &runs))?;
    }
    printed?;
    verdict(&runs, args)
}

/// The exit status, and the explanation of one that is not 0.
fn verdict(runs: &[Run], args: &args::Compare) -> Result<ExitCode, Failure> {
    if STOP.load(Relaxed) {
        let (done, all) = (runs.len(), args.runs.saturating_mul(2));
        return Err(Failure(format!("stopped after {done} of {all} runs; the figures are of these")));
    }
    let failed = runs.iter().filter(|run| run.status != Status::Ok).count();
    match failed {
        0 => Ok(ExitCode::SUCCESS),
        _ => Err(Failure(format!(
            "{failed} of {} runs did not succeed and are in no median; the table says why",
            runs.len()
        ))),
    }
}

/// The workload's name: the program's, without its directory.
fn workload(command: &[OsString]) -> String {
    let program = command.first().map_or(OsStr::new(""), OsString::as_os_str);
    Path::new(program).file_name().unwrap_or(program).to_string_lossy().into_owned()
}

/// What was typed, wherever this program lies.
fn command() -> Vec<OsString> {
    std::iter::once("craton".into()).chain(env::args_os().skip(1)).collect()
}
