//! The command line of `craton profile`.

use super::values::at_least;
use clap::Args as Group;
use std::path::PathBuf;

/// `craton profile`.
#[derive(Debug, Group)]
#[command(after_help = "Examples:
  craton profile 1234                         what lives, by function
  craton profile 1234 --save before.profile   keep it
  craton profile --diff before.profile 1234   what has come since
  craton profile 1234 --flame heap.svg
  craton profile server.profile --peak --stacks
  craton profile core.1234 --pprof heap.pb.gz && go tool pprof heap.pb.gz

The library samples one allocated byte in 512 KiB (option profile), in every
program that runs on Craton. Only a process under debug=audit is stopped, for a
moment. Only the process's user or root may read it. `craton run --profile=FILE`
writes the profile at exit. Figures are estimates: n samples of a function are
right within 200 / √n percent in 19 of 20 cases. A function's line is that of
its innermost call outside of the language's library; \"with callees\" counts
what the functions below it hold. docs/profile.md explains more.

Exit status: 0, 1 when something failed, 2 for wrong usage.")]
pub struct Profile {
    /// A process id, a file of `craton run --profile` or `--save`, or a core file
    #[arg(value_name = "PID|FILE")]
    pub target: PathBuf,
    /// Show what has come since this earlier profile
    #[arg(long, value_name = "OLD")]
    pub diff: Option<PathBuf>,
    /// Show what lived at the high-water mark
    #[arg(long, group = "measure")]
    pub peak: bool,
    /// Show what was allocated since the start
    #[arg(long, group = "measure")]
    pub total: bool,
    /// Show what was freed within 10 ms
    #[arg(long, group = "measure")]
    pub short: bool,
    /// Show the free memory of slabs and hugepages that live objects hold; of a running process
    #[arg(long, group = "measure", conflicts_with = "diff")]
    pub captive: bool,
    /// How many functions, and with --stacks stacks, to show
    #[arg(long, value_name = "N", default_value_t = 20, value_parser = at_least::<1>, allow_negative_numbers = true)]
    pub top: usize,
    /// Show stacks too
    #[arg(long)]
    pub stacks: bool,
    /// The program of the core file, if it has moved since
    #[arg(long, value_name = "FILE")]
    pub exe: Option<PathBuf>,
    /// Write the profile to FILE, for --diff
    #[arg(long, value_name = "FILE", conflicts_with = "diff")]
    pub save: Option<PathBuf>,
    /// Write it in the form of pprof
    #[arg(long, value_name = "FILE", conflicts_with = "diff")]
    pub pprof: Option<PathBuf>,
    /// Draw a flame graph, as SVG
    #[arg(long, value_name = "FILE")]
    pub flame: Option<PathBuf>,
    /// Write a line for each stack, as flame graphs take them; `-` for standard output
    #[arg(long, value_name = "FILE")]
    pub folded: Option<PathBuf>,
    /// Write the result to FILE as JSON; `-` for standard output, with the table on standard error
    #[arg(long, value_name = "FILE")]
    pub json: Option<PathBuf>,
}
