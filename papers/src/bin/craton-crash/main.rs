//! `craton-crash`: a process that uses a zone of frames in a file until it is killed.

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
