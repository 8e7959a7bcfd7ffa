//! The program `craton`: runs programs on Craton, and shows whether that helps them.
//!
//! **What.** The commands: [`run`] becomes a program with the library preloaded, [`compare`] runs
//! it on several allocators in turns, [`lab`] starts the experiments, [`replay`] plays a trace,
//! [`core`](mod@core) inspects the heap of a process or core file, [`set`] changes a process's
//! settings. [`args`] is what can be typed, [`usage`] the tips for the rest. [`library`] finds the
//! library and [`allocators`] its peers, [`options`] has the library's options, [`program`] the
//! reasons why a program is not served.
//!
//! **Failure.** Exit status 1: it failed, 2: it was called wrongly. A [`failure::Failure`] on
//! standard error says what was wrong and what to do next. `craton run` otherwise ends as the
//! program that it ran.
//!
//! **Users.** The program is [`main`]. `craton-papers`, the program of `craton lab`, takes options, allocators, files,
//! signals and the progress line from here.
//!
//! **Cost.** `craton run` precedes every start of a program: it parses, finds one file and calls `exec`.

pub mod allocators;
pub mod args;
mod compare;
mod core;
pub mod failure;
mod lab;
mod library;
mod options;
pub mod output;
pub mod place;
mod program;
pub mod progress;
mod replay;
mod run;
mod set;
pub mod signals;
pub mod terminal;
mod usage;

use args::{Args, Task};
use clap::Parser;
use std::ffi::OsString;
use std::process::ExitCode;

/// The program: parses, does it, and says what failed.
pub fn main() -> ExitCode {
    signals::keep_large_files_an_error();
    let typed: Vec<OsString> = std::env::args_os().skip(1).collect();
    let done = match Args::try_parse().map(|args| args.task) {
        Ok(Task::Run(args)) => run::run(&args),
        Ok(Task::Compare(args)) => compare::compare(&args),
        Ok(Task::Lab(args)) => lab::lab(&args),
        Ok(Task::Replay(args)) => replay::replay(&args),
        Ok(Task::Core(args)) => core::core(&args),
        Ok(Task::Set(args)) => set::set(&args),
        Err(error) if error.use_stderr() => usage::explain(error, &typed).exit(),
        Err(help) => usage::print(&help),
    };
    done.unwrap_or_else(|failure| {
        terminal::say(&format!("craton: {failure}\n"));
        failure.status()
    })
}

/// What was typed, wherever this program lies: the command in a document.
fn command() -> Vec<OsString> {
    std::iter::once("craton".into()).chain(std::env::args_os().skip(1)).collect()
}
