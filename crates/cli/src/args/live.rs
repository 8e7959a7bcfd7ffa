//! `craton get` and `craton top`.

use super::values::{process, seconds};
use clap::Args as Group;
use std::path::PathBuf;
use std::time::Duration;

/// `craton get`.
#[derive(Debug, Group)]
#[command(after_help = "Examples:
  craton get 1234
  craton get 1234 soft_limit heap_in_use_bytes ledger.live_bytes
  craton get /var/log/heap/1234-8f3a2b.stats
  craton get 1234 --json - | jq .rows[0].ledger.rss_bytes

Reads the process without stopping it. The ledger's rows sum to its RSS. A file
of a stats_dir has the last counters of a process that was killed. docs/live.md
explains the ledger, docs/statistics.md the counters. Only the process's user or
root may read it.

Exit status: 0, 1 when the process cannot be read, 2 for wrong usage.")]
pub struct Get {
    /// The process id, or a file of a stats_dir
    #[arg(value_name = "PID|FILE", value_parser = process_or_file, allow_negative_numbers = true)]
    pub target: String,
    /// Options, counters or rows of the ledger; all of them unless some are named
    #[arg(value_name = "KEY")]
    pub keys: Vec<String>,
    /// Write everything to FILE as JSON; `-` for standard output, with the text on standard error
    #[arg(long, value_name = "FILE")]
    pub json: Option<PathBuf>,
}

/// `craton top`.
#[derive(Debug, Group)]
#[command(after_help = "Examples:
  craton top 1234
  craton top 1234 --once
  craton top

Without PID it lists the processes that have libcraton.so mapped. With one it
shows its ledger, size classes and rates. It stops no process. Keys: q quits, s
sorts by the next column, r reverses the order, w shows who holds the memory
instead of the size classes, space pauses.

Exit status: 0, 1 when the process cannot be read, 2 for wrong usage.")]
pub struct Top {
    /// The process id
    #[arg(value_name = "PID", value_parser = process, allow_negative_numbers = true)]
    pub pid: Option<u32>,
    /// Print once, without a terminal's control characters
    #[arg(long)]
    pub once: bool,
    /// How often to read
    #[arg(long, value_name = "SECONDS", default_value = "1", value_parser = seconds, allow_negative_numbers = true)]
    pub every: Duration,
}

/// A number is a process.
fn process_or_file(text: &str) -> Result<String, String> {
    let is_number = text.trim_start_matches('-').bytes().all(|byte| byte.is_ascii_digit());
    if is_number { process(text).map(|pid| pid.to_string()) } else { Ok(text.to_owned()) }
}
