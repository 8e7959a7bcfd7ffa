//! `craton tune`'s command line.

use super::values::at_least;
use clap::Args as Group;
use std::ffi::OsString;
use std::path::PathBuf;

/// `craton tune`.
#[derive(Debug, Group)]
#[command(after_help = "Examples:
  craton tune server.trace
  craton tune server.trace --goal coverage
  craton tune server.trace -- ./server --once

Replays the trace with each setting of page_heap, release_rate and thp on a page
heap over simulated memory, on all processors, and prints the best for the goal:
  rss        least backed memory, at the peak and steady
  coverage   most memory on hugepages
  balanced   least memory without less on hugepages or more system calls

With CMD the found setting is compared with the default on CMD itself, in turns,
as `craton compare` does. The simulated system grants every hugepage, so only
such a run proves a setting. A trace does not show thread caches: for less
memory CMD also runs with caches=cpu and with thread_cache=256K, two rounds of
each, and the best setting is the one that is compared.

Exit status: 0, 1 when the trace cannot be replayed or a run failed, 2 for wrong
usage.")]
pub struct Tune {
    /// The file that `craton run --trace` recorded
    #[arg(value_name = "TRACE")]
    pub trace: PathBuf,
    /// What to look for
    #[arg(long, value_name = "GOAL", default_value = "balanced", value_parser = ["rss", "coverage", "balanced"])]
    pub goal: String,
    /// Rounds on CMD
    #[arg(long, value_name = "N", default_value_t = 5, value_parser = at_least::<1>, allow_negative_numbers = true)]
    pub runs: usize,
    /// Write every setting's figures to FILE as JSON; `-` for standard output, with the text on
    /// standard error
    #[arg(long, value_name = "FILE")]
    pub json: Option<PathBuf>,
    /// A program to prove the setting on, and its arguments
    #[arg(last = true, value_name = "CMD")]
    pub command: Vec<OsString>,
}
