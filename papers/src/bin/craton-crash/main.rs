//! `craton-crash`: a process that works with a zone of frames in a file until it is killed.
//!
//! **What.** The process of the experiment `llfree-crash`: [`craton_papers::frames::crash::work`] on the files that it is given.
//!
//! **Failure.** Wrong usage is exit status 2; a zone that is wrong is exit status 1. It ends with status 0 when the process that
//! started it has gone.

use clap::Parser;
use craton_papers::crash::{Task, work};
use std::os::unix::process::parent_id;
use std::process::ExitCode;

fn main() -> ExitCode {
    let parent = parent_id();
    match work(&Task::parse(), || parent_id() == parent) {
        Ok(()) => ExitCode::SUCCESS,
        Err(why) => {
            eprintln!("craton-crash: {why}");
            ExitCode::FAILURE
        }
    }
}

#[cfg(test)]
mod tests;
