//! The program `craton`: runs programs on Craton, and shows whether that helps them.
//!
//! **What.** A module for each command. `craton-papers`, the program of `craton lab`, uses parts of
//! this crate.
//!
//! **Failure.** Exit status 1 when something failed, 2 for wrong usage, with a [`failure::Failure`]
//! on standard error. `craton run` otherwise exits as its program.

pub mod allocators;
pub mod args;
mod compare;
mod core;
pub mod failure;
mod get;
mod heap;
mod input;
mod lab;
mod library;
mod options;
pub mod output;
pub mod place;
mod profile;
mod program;
pub mod progress;
mod replay;
mod run;
mod serve;
mod set;
pub mod signals;
pub mod terminal;
mod top;
mod trace;
mod tune;
mod usage;

pub use usage::nearest;

use args::{Args, Task};
use clap::Parser;
use std::ffi::OsString;
use std::process::ExitCode;

pub fn main() -> ExitCode {
    signals::keep_large_files_an_error();
    let typed: Vec<OsString> = std::env::args_os().skip(1).collect();
    let is_version = typed == ["version"];
    let words = if is_version { vec![OsString::from("--version")] } else { typed.clone() };
    let done = match Args::try_parse_from([OsString::from("craton")].into_iter().chain(words)).map(|args| args.task) {
        Ok(Task::Run(args)) => run::run(&args),
        Ok(Task::Compare(args)) => compare::compare(&args),
        Ok(Task::Lab(args)) => lab::lab(&args),
        Ok(Task::Replay(args)) => replay::replay(&args),
        Ok(Task::Tune(args)) => tune::tune(&args),
        Ok(Task::Trace(args)) => trace::trace(&args),
        Ok(Task::Core(args)) => core::core(&args),
        Ok(Task::Get(args)) => get::get(&args),
        Ok(Task::Profile(args)) => profile::profile(&args),
        Ok(Task::Serve(args)) => serve::serve(&args),
        Ok(Task::Set(args)) => set::set(&args),
        Ok(Task::Top(args)) => top::top(&args),
        Ok(Task::Heap(args)) => heap::heap(&args),
        Err(error) if error.use_stderr() => usage::explain(error, &typed).exit(),
        Err(help) => usage::print(&help),
    };
    done.unwrap_or_else(|failure| {
        if !terminal::is_reader_gone() {
            terminal::say(&format!("craton: {failure}\n"));
        }
        failure.status()
    })
}
