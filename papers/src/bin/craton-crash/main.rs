//! `craton-crash`: a process that works with a zone of frames in a file until it is killed.
//!
//! **What.** The process of the experiment `llfree-crash`: [`craton_papers::frames::crash::work`] on the files that it is given.
//!
//! **Failure.** Wrong usage is exit status 2; a zone that is wrong is exit status 1. It ends with status 0 when the process that
//! started it has gone.

use clap::Parser;
use clap::builder::RangedU64ValueParser as Range;
use craton_papers::crash::{Task, work};
use std::os::unix::process::parent_id;
use std::path::PathBuf;
use std::process::ExitCode;

/// Gets and puts page frames of a zone in a file, until it is killed; `craton lab run llfree-crash` starts it.
#[derive(Parser)]
#[command(
    after_help = "Exit status: 1 when the zone is wrong, 2 for wrong usage, 0 when the process that started it has ended."
)]
struct Arguments {
    /// Where the zone and the record of what threads hold are
    directory: PathBuf,
    /// Frames of the zone
    #[arg(value_parser = Range::<usize>::new().range(1..))]
    frames: usize,
    /// Threads that work, which are the zone's processors
    #[arg(value_parser = Range::<usize>::new().range(1..))]
    threads: usize,
    /// Where the random numbers start
    seed: u64,
    /// How the zone must have been left; otherwise this ends with an error
    #[arg(value_parser = ["closed", "crashed"])]
    left: String,
}

impl Arguments {
    fn task(self) -> Task {
        let Self { directory, frames, threads, seed, left } = self;
        Task { directory, frames, threads, seed, closed: left == "closed" }
    }
}

fn main() -> ExitCode {
    let parent = parent_id();
    match work(&Arguments::parse().task(), || parent_id() == parent) {
        Ok(()) => ExitCode::SUCCESS,
        Err(why) => {
            eprintln!("craton-crash: {why}");
            ExitCode::FAILURE
        }
    }
}

#[cfg(test)]
mod tests;
