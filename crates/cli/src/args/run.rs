//! `craton run`.

use super::setting;
use crate::options::Setting;
use clap::Args as Group;
use craton_tables::options::OPTIONS;
use std::ffi::OsString;
use std::path::PathBuf;

/// `craton run`.
#[derive(Debug, Group)]
#[command(after_help = help())]
pub struct Run {
    /// At the end, print on standard error which processes Craton served, how many allocations, and
    /// what the memory of the largest was for
    #[arg(long)]
    pub stats: bool,
    /// With --stats: write all numbers and the ledgers of all processes as JSON; - for standard
    /// output
    #[arg(long, value_name = "FILE", requires = "stats")]
    pub stats_json: Option<PathBuf>,
    /// Record the requests to the page heap into FILE, for `craton replay`: those of the process
    /// with most. %p becomes the process id, for a file each
    #[arg(long, value_name = "FILE")]
    pub trace: Option<PathBuf>,
    /// Write the heap profile into FILE at exit, for `craton profile`; %p becomes the process id
    #[arg(
        long,
        value_name = "FILE",
        num_args = 0..=1,
        require_equals = true,
        default_missing_value = "craton-%p.profile"
    )]
    pub profile: Option<PathBuf>,
    #[command(flatten)]
    pub checked: Checked,
    /// Set an option of the library; the list is below
    #[arg(short = 'o', value_name = "KEY=VALUE", value_parser = setting())]
    pub options: Vec<Setting>,
    /// The program to run, and its arguments
    #[arg(last = true, required = true, value_name = "CMD")]
    pub command: Vec<OsString>,
}

/// What becomes of the debugging kit's reports.
#[derive(Debug, Group)]
pub struct Checked {
    /// Write the debugging kit's reports, with file and line, to FILE as JSON
    #[arg(long, value_name = "FILE")]
    pub json: Option<PathBuf>,
    /// Write them as SARIF 2.1.0, for GitHub code scanning and other viewers
    #[arg(long, value_name = "FILE")]
    pub sarif: Option<PathBuf>,
    /// Write them as a Code Quality report of GitLab
    #[arg(long, value_name = "FILE")]
    pub code_quality: Option<PathBuf>,
    /// Suppress reports that a rule of FILE matches
    #[arg(long, value_name = "FILE")]
    pub suppress: Vec<PathBuf>,
    /// The exit status when the kit has reported a bug [default: 99]; 0 for that of CMD. Where a
    /// signal ends CMD without a report, the status is 128 plus its number
    #[arg(long, value_name = "N", value_parser = status, allow_negative_numbers = true)]
    pub bugs_exit: Option<u8>,
    /// The exit status when CMD succeeds, without bugs but with leaks [default: 98]; 0 for that of
    /// CMD
    #[arg(long, value_name = "N", value_parser = status, allow_negative_numbers = true)]
    pub leaks_exit: Option<u8>,
}

impl Checked {
    pub const BUGS_EXIT: u8 = 99;
    pub const LEAKS_EXIT: u8 = 98;

    /// Whether any of these options was given.
    pub fn is_asked(&self) -> bool {
        let files = [&self.json, &self.sarif, &self.code_quality];
        let statuses = [self.bugs_exit, self.leaks_exit];
        files.iter().any(|file| file.is_some()) || statuses.iter().any(Option::is_some) || !self.suppress.is_empty()
    }
}

fn status(text: &str) -> Result<u8, String> {
    text.parse().map_err(|_| "give a status from 0 to 255".to_owned())
}

fn help() -> String {
    let list: String =
        OPTIONS.iter().map(|option| format!("  {}={}\n      {}\n", option.key, option.form, option.text)).collect();
    format!(
        "Examples:
  craton run -- redis-server --port 7000
  craton run --stats -- python3 script.py
  craton run -o thp=always -o stats_file=/var/tmp/stats.json -- ./my-program
  craton run --trace server.trace -- ./my-server
  craton run -o debug=all --sarif craton.sarif --suppress rules.txt -- make check

Options of the library (docs/options.md has the details):
{list}
The library is the file that CRATON_LIBRARY names, else libcraton.so beside this
program, in ../lib or in ../lib/craton. It precedes the libraries of LD_PRELOAD,
and the options follow those of CRATON_OPTIONS. Craton cannot serve programs
that are linked statically or run set-uid. With --stats, with --trace without
%p, with checks in debug that report, and with the options for the kit's reports
(--json to --leaks-exit), craton waits for CMD and forwards signals to it. Else
craton becomes CMD, by exec.
docs/statistics.md explains the numbers, docs/debugging.md the reports.

Exit status: that of CMD; where craton waits, 128 plus the signal that ended it;
with an option for the kit's reports, the statuses for bugs and leaks; 1 when
CMD cannot be started, or was not served to its end where it should have been
checked; 2 for wrong usage, a bad option, a wrong rule or a bad CRATON_LIBRARY."
    )
}
