//! What can be typed.
//!
//! **Failure.** What does not fit ends the program here, with status 2 and the usage.

use crate::failure::Failure;
use crate::options::{self, Setting};
use clap::builder::{OsStringValueParser, TypedValueParser};
use clap::{Args as Group, Parser, Subcommand};
use craton_tables::options::OPTIONS;
use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

/// The command line of `craton`.
#[derive(Debug, Parser)]
#[command(
    name = "craton",
    version,
    about = "Runs programs on the Craton memory allocator, and shows whether that helps them",
    after_help = "Examples:
  craton run -- redis-server                 the server, on Craton
  craton compare --runs 5 -- ./my-program    the same program on several allocators, side by side
  craton lab run speed --quick               workloads of the lab on several allocators
  craton replay server.trace                 what a server asked of its page heap, on other settings
  craton core --pid 1234 leaks               what a running process has lost of its memory

Exit status: 1 when something failed, 2 when craton was called wrongly; `craton run` ends as the program that it ran, and
`craton set` with 3 when the process has not looked yet.
`craton COMMAND --help` says more, with examples.",
    disable_help_subcommand = true
)]
pub struct Args {
    /// What to do.
    #[command(subcommand)]
    pub task: Task,
}

/// The commands.
#[derive(Debug, Subcommand)]
pub enum Task {
    /// Run a program on Craton
    Run(Run),
    /// Run a program on glibc's malloc, on Craton and on its peers in turns, and print them side by side
    Compare(Compare),
    /// Do experiments: workloads and papers' figures on several allocators
    Lab(Lab),
    /// Play a trace that `craton run --trace` recorded on a page heap in simulated memory
    Replay(Replay),
    /// Look into the heap of a core file or of a running process: what it holds, what leaks, what is broken
    Core(Core),
    /// Set options of a running process
    Set(Set),
}

/// `craton run`.
#[derive(Debug, Group)]
#[command(after_help = "Examples:
  craton run -- redis-server --port 7000
  craton run --stats -- python3 script.py
  craton run -o thp=always -o stats_file=/var/tmp/stats.json -- ./my-program
  craton run --trace server.trace -- ./my-server

The library is the file that the variable CRATON_LIBRARY names, or libcraton.so beside this program or in ../lib or
../lib/craton from there. It goes before what LD_PRELOAD names already. Options go behind those of CRATON_OPTIONS.
Programs that are linked statically or run set-uid cannot be served. Without --stats craton becomes CMD, by exec; with it,
craton waits for CMD and sends signals on to it. docs/statistics.md tells what the numbers mean.

Exit status: that of CMD, with --stats 128 plus the number of the signal that ended it; 1 when it cannot be started,
2 for wrong usage, or when CRATON_LIBRARY names no library that could be preloaded.")]
pub struct Run {
    /// At the end, print on standard error which processes Craton served, and how much
    #[arg(long)]
    pub stats: bool,
    /// Record what the program asks of its page heap into FILE, for `craton replay`; %p stands for the process's number
    #[arg(long, value_name = "FILE")]
    pub trace: Option<PathBuf>,
    #[arg(short = 'o', value_name = "KEY=VALUE", value_parser = setting(), help = all_options())]
    pub options: Vec<Setting>,
    /// The program to run, and its arguments
    #[arg(last = true, required = true, value_name = "CMD")]
    pub command: Vec<OsString>,
}

/// `craton compare`.
#[derive(Debug, Group)]
#[command(after_help = "Examples:
  craton compare -- ./my-program input.txt
  craton compare --runs 10 --html report.html -- python3 script.py
  craton compare --peers mimalloc3,mine=./libmine.so -- ./my-program
  craton compare --peers none -o thp=always -- ./my-program
  craton compare --peers none --json - -- sh -c 'sort big.txt | uniq -c' | jq .ratios

CMD runs in turns (A B C, A B C, …) on glibc, on Craton and on the peers, after a warm-up in which each of them has to
show that it serves CMD. The table has the medians of wall and CPU time, peak and steady memory (RSS), page faults, and
memory on hugepages at the peak with its share; × is the ratio to glibc: below 1, less is needed. The interval of the
ratio holds the true one with 95 % confidence; it takes five rounds. Memory is that of CMD's largest process.
CMD reads nothing, and its standard output is thrown away. Ctrl-C ends the comparison and prints what there is.

Peers: `make peers` builds them, and installed ones are found; docs/peers.md tells their names.

Exit status: 0 when every run succeeded, 1 when one failed or was not served, 2 for wrong usage.")]
pub struct Compare {
    /// Peers to compare with, by name, or NAME=PATH for any other library; `all` that are found, or `none`
    #[arg(long, value_name = "LIST")]
    pub peers: Option<String>,
    /// Rounds that count; CMD runs once on each allocator in a round
    #[arg(long, value_name = "N", default_value_t = 5, value_parser = at_least::<1>, allow_negative_numbers = true)]
    pub runs: usize,
    /// Rounds before them that do not count
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = at_least::<0>, allow_negative_numbers = true)]
    pub warmup: usize,
    /// Kill a run that takes longer, and count it as failed
    #[arg(long, value_name = "SECONDS", value_parser = seconds, allow_negative_numbers = true)]
    pub timeout: Option<Duration>,
    /// Set an option of the library for the runs on Craton, as `craton run -o` does
    #[arg(short = 'o', value_name = "KEY=VALUE", value_parser = checked_setting())]
    pub options: Vec<Setting>,
    /// Keep CMD on these processors, such as 0 or 0-1
    #[arg(long, value_name = "CPUS", allow_negative_numbers = true)]
    pub pin: Option<String>,
    /// Write every run and the ratios to FILE as JSON; `-` for standard output (the table then goes to standard error)
    #[arg(long, value_name = "FILE")]
    pub json: Option<PathBuf>,
    /// Write a page with tables and charts to FILE
    #[arg(long, value_name = "FILE")]
    pub html: Option<PathBuf>,
    /// The program to run, and its arguments
    #[arg(last = true, required = true, value_name = "CMD")]
    pub command: Vec<OsString>,
}

/// `craton lab`.
#[derive(Debug, Group)]
#[command(
    disable_help_subcommand = true,
    after_help = "Examples:
  craton lab list
  craton lab run speed --quick
  craton lab run micro --peers mimalloc3 --json micro.json --svg pictures/

docs/experiments.md tells what each shows, and which figures of the papers are still to come."
)]
pub struct Lab {
    /// What to do.
    #[command(subcommand)]
    pub task: LabTask,
}

/// The commands of `craton lab`.
#[derive(Debug, Subcommand)]
pub enum LabTask {
    /// Show the experiments, one a line
    List,
    /// Do experiments
    Run(LabRun),
}

/// `craton lab run`.
#[derive(Debug, Group)]
#[command(after_help = "Examples:
  craton lab run speed
  craton lab run speed --only larson-small,mstress --peers mimalloc3,mine=./libmine.so --runs 10
  craton lab run nvalloc-fig1b --quick --json - | jq .ratios

Prints tables; Ctrl-C ends an experiment, and what was measured is written. Several documents are written as a list.

Exit status: 0 when every run succeeded, 1 when one failed, 2 for wrong usage.")]
pub struct LabRun {
    /// The experiments, by name; `craton lab list` shows them
    #[arg(required = true, value_name = "NAME")]
    pub names: Vec<String>,
    /// The quick form, under 20 seconds: shows that it works; its figures do not count
    #[arg(long)]
    pub quick: bool,
    /// Peers to compare with, by name, or NAME=PATH for any other library; `all` that are found, or `none`
    #[arg(long, value_name = "LIST")]
    pub peers: Option<String>,
    /// Rounds that count, instead of the experiment's own number
    #[arg(long, value_name = "N", value_parser = at_least::<1>, allow_negative_numbers = true)]
    pub runs: Option<usize>,
    /// Do only these workloads of the experiment
    #[arg(long, value_name = "NAMES", value_delimiter = ',')]
    pub only: Vec<String>,
    /// Write the figures to FILE as JSON; `-` for standard output (tables then go to standard error)
    #[arg(long, value_name = "FILE")]
    pub json: Option<PathBuf>,
    /// Write pictures into the folder DIR, which is made if it is not there
    #[arg(long, value_name = "DIR")]
    pub svg: Option<PathBuf>,
}

/// `craton replay`.
#[derive(Debug, Group)]
#[command(after_help = "Examples:
  craton replay server.trace        what `craton run --trace server.trace -- ./my-server` recorded
  craton replay server.trace -o release_rate=0 -o regions=0 --json - | jq '.rows[0].overhead'
  craton replay server.trace --heap frames                           spans where LLFree's page frames put them

Every span that the program took, resized or gave back is asked of a page heap of its own, over memory that is only
counted, by a clock that follows the trace. Steady figures are means over the second half of the recorded time; overhead
is what is backed beyond what is used. docs/trace.md tells the file's format.

Heaps: temeraire, whose filler packs short spans by TEMERAIRE's rule; frames, where LLFree's page frames say where they
go. What hugepages become is the same in both.

Options: release_rate=BYTES a second (67108864), regions=0|1 (1) packing of spans that cross hugepages,
fit=lfr|fullest|best (lfr) which hugepage a span goes to, thp=auto|always|never (auto) when hugepages are asked for. With frames there is neither regions nor fit.

Exit status: 0, 1 when the trace cannot be played, 2 for wrong usage.")]
pub struct Replay {
    /// The file that `craton run --trace` wrote
    #[arg(value_name = "TRACE")]
    pub trace: PathBuf,
    /// The page heap to play it on: temeraire, frames
    #[arg(long, value_name = "NAME", default_value = "temeraire")]
    pub heap: String,
    /// Set an option of the heap: release_rate=BYTES, regions=0|1, fit=lfr|fullest|best, thp=auto|always|never
    #[arg(short = 'o', value_name = "KEY=VALUE")]
    pub options: Vec<String>,
    /// Write the figures to FILE as JSON; `-` for standard output (the table then goes to standard error)
    #[arg(long, value_name = "FILE")]
    pub json: Option<PathBuf>,
}

/// `craton core`.
#[derive(Debug, Group)]
#[command(
    disable_help_subcommand = true,
    after_help = "Examples:
  craton core core.1234 stats
  craton core leaks --pid 1234
  craton core core.1234 --exe ./my-server.old whatis 0x7f12a4c01230
  craton core --pid 1234 log --last 100
  craton core --pid 1234 save server.core      then look at that, while the process goes on
  craton core core.1234 verify --json - | jq .rows[0].broken

A running process stands still while it is read, and goes on afterwards; only its user or root may do that. A core file is
what the kernel (`ulimit -c unlimited`), gcore or `save` has written. The process has to run on Craton, of a release that
this program knows.

leaks: an object is lost when no word of registers, stacks, writable memory and of other objects that are not lost points
into it. A number that looks like an address can hide a leak; a pointer that is kept in another form makes a false one.

Exit status: 0; 1 when something failed, leaks were found, or verify found the heap broken; 2 for wrong usage."
)]
pub struct Core {
    /// The core file
    #[arg(value_name = "CORE")]
    pub core: Option<PathBuf>,
    /// A running process instead, by its number
    #[arg(long, value_name = "PID", global = true, value_parser = process, allow_negative_numbers = true)]
    pub pid: Option<u32>,
    /// The program that the core is of, where its file lies elsewhere now
    #[arg(long, value_name = "FILE", global = true)]
    pub exe: Option<PathBuf>,
    /// Write what is found to FILE as JSON; `-` for standard output (text then goes to standard error)
    #[arg(long, value_name = "FILE", global = true)]
    pub json: Option<PathBuf>,
    /// What to do.
    #[command(subcommand)]
    pub task: CoreTask,
}

/// The commands of `craton core`.
#[derive(Debug, Subcommand)]
pub enum CoreTask {
    /// Show what the heap holds, by size class and by heap
    Stats,
    /// Find objects that nothing leads to any more
    Leaks {
        /// Show all of them, not only the twenty largest
        #[arg(long)]
        all: bool,
    },
    /// Say what lies at an address, such as 0x7f12a4c01230
    Whatis {
        /// The addresses, in hexadecimal
        #[arg(value_name = "ADDR", required = true, value_parser = address, allow_negative_numbers = true)]
        addresses: Vec<u64>,
    },
    /// Walk every invariant that can be seen from outside, and say where the first one is broken
    Verify,
    /// Show what was allocated and freed last, and from where, by the debugging kit's log (option debug=audit)
    Log {
        /// Show so many
        #[arg(long, value_name = "N", default_value_t = 20, value_parser = count, allow_negative_numbers = true)]
        last: u64,
    },
    /// Write a core file of a running process
    Save {
        /// The file
        #[arg(value_name = "FILE")]
        file: PathBuf,
    },
}

/// `craton set`.
#[derive(Debug, Group)]
#[command(after_help = "Examples:
  craton set 1234 release_rate=0
  craton set 1234 soft_limit=512M background=1 --wait 30

The process sets the options when it next calls malloc or free: its threads are made to look in their next free. One that
sleeps does so if it has a thread of the library's (named craton), which is woken; small heaps and programs without threads
have none. If nobody looks within --wait, the request stays with the process until somebody does, and what is
asked for meanwhile is added to it; a debugger can have it done while the process sleeps:
gdb -p PID -batch -ex 'call ((int(*)(void))craton_background_actions)()'

docs/options.md tells what each option does; only the process's user or root may set them.

Exit status: 0 when all were set, 1 when the process refused one (the others are set), 2 for wrong usage, 3 when the process
has not looked yet.")]
pub struct Set {
    /// The process, by its number
    #[arg(value_name = "PID", value_parser = process, allow_negative_numbers = true)]
    pub pid: u32,
    /// The options, as `craton run -o` takes them
    #[arg(value_name = "KEY=VALUE", required = true, value_parser = live_setting)]
    pub settings: Vec<String>,
    /// Wait so long for the answer
    #[arg(long, value_name = "SECONDS", default_value = "5", value_parser = seconds, allow_negative_numbers = true)]
    pub wait: Duration,
}

/// An address, with or without `0x`.
fn address(text: &str) -> Result<u64, String> {
    let digits = text.strip_prefix("0x").or_else(|| text.strip_prefix("0X")).unwrap_or(text);
    u64::from_str_radix(digits, 16).map_err(|_| "give an address in hexadecimal, such as 0x7f12a4c01230".to_owned())
}

/// A setting for a running process, whose value may hold commas.
fn live_setting(text: &str) -> Result<String, String> {
    options::check(text.as_ref()).map(|()| text.to_owned())
}

fn process(text: &str) -> Result<u32, String> {
    let number = text.parse().ok().filter(|number| *number > 0);
    number.ok_or_else(|| "not a process number, such as 1234; `pgrep -a NAME` finds that of a program".to_owned())
}

fn count(text: &str) -> Result<u64, String> {
    text.parse().map_err(|_| "give a whole number below 2^64, such as 100".to_owned())
}

/// The help of `-o`.
fn all_options() -> String {
    let list: Vec<String> = OPTIONS.iter().map(|option| format!("{}={}", option.key, option.form)).collect();
    format!("Set an option of the library: {}; docs/options.md tells what each does", list.join(", "))
}

fn setting() -> impl TypedValueParser<Value = Setting> {
    OsStringValueParser::new().try_map(Setting::parse)
}

fn checked_setting() -> impl TypedValueParser<Value = Setting> {
    OsStringValueParser::new().try_map(Setting::checked)
}

/// The program's name, which a shell leaves empty where a variable is not set.
pub fn program(command: &[OsString]) -> Result<&OsString, Failure> {
    let none = || Failure::Usage("the name of the program to run is empty; give one behind `--`".to_owned());
    command.first().filter(|name| !name.is_empty()).ok_or_else(none)
}

/// More rounds than this are a slip of the finger, and their sum has to fit.
const MOST: usize = 1_000_000;

fn at_least<const LEAST: usize>(text: &str) -> Result<usize, String> {
    match text.parse() {
        Ok(n) if (LEAST..=MOST).contains(&n) => Ok(n),
        _ => Err(format!("give a whole number from {LEAST} to {MOST}")),
    }
}

fn seconds(text: &str) -> Result<Duration, String> {
    let duration = text.parse().ok().and_then(|s| Duration::try_from_secs_f64(s).ok());
    duration.filter(|d| !d.is_zero()).ok_or_else(|| "give a number of seconds above 0, such as 2.5".to_owned())
}

#[cfg(test)]
mod tests;
