//! The command line: commands, options, help.
//!
//! **Failure.** A wrong command line ends the program here, with status 2 and the usage.

mod core;
mod live;
mod profile;
mod run;
mod serve;
mod tune;
mod values;

pub use self::core::{Core, CoreTask};
pub use live::{Get, Top};

use crate::failure::Failure;
use crate::options::{self, Setting};
use crate::terminal::plain;
use clap::builder::{OsStringValueParser, TypedValueParser};
use clap::{Args as Group, Parser, Subcommand};
use craton_lab::measure::server::results::Pattern;
pub use profile::Profile;
pub use run::{Checked, Run};
pub use serve::Serve;
use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;
pub use tune::Tune;
use values::{at_least, bytes, process, seconds};

/// The command line of `craton`.
#[derive(Debug, Parser)]
#[command(
    name = "craton",
    version,
    about = "Runs programs on the Craton memory allocator, and shows whether that helps them",
    after_help = "Examples:
  craton run -- redis-server                the server, on Craton
  craton compare --runs 5 -- ./my-program   the same program on several allocators
  craton lab run speed --quick              the lab's workloads on several allocators
  craton replay server.trace                a recorded trace with other settings
  craton profile 1234                       who holds a process's memory
  craton core --pid 1234 leaks              objects that a process has lost
  craton top 1234                           a process's memory, while it runs
  craton serve                              the same for all, as a web page

`craton help COMMAND` shows a command's options and examples.

Exit status: 1 when something failed, 2 for wrong usage. `craton run` exits with
the status of its program, or one for bugs and leaks; `craton set` exits with 3
when the process has not read the request yet."
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
    /// Compare a program's time and memory on glibc's malloc, Craton and other allocators
    Compare(Compare),
    /// Run experiments: workloads and the papers' figures
    Lab(Lab),
    /// Replay a trace of `craton run --trace` on a page heap in simulated memory
    Replay(Replay),
    /// Find the settings that suit a recorded trace
    Tune(Tune),
    /// Write a recorded trace in a form that other tools read
    Trace(Trace),
    /// Inspect the heap of a running process or core file: contents, leaks, damage
    Core(Core),
    /// Show options, counters and the memory ledger of a running process
    Get(Get),
    /// Show who holds the memory of a process, by function and line
    Profile(Profile),
    /// Show processes on Craton as a web page and as metrics
    Serve(Serve),
    /// Set options of a running process
    Set(Set),
    /// Show the processes on Craton, or one's memory, again and again
    Top(Top),
    /// Make, inspect and repair files of persistent heaps
    Heap(Heap),
}

/// `craton compare`.
#[derive(Debug, Group)]
#[command(after_help = "Examples:
  craton compare -- ./my-program input.txt
  craton compare --runs 10 --html report.html -- python3 script.py
  craton compare --peers mimalloc3,mine=./libmine.so -- ./my-program
  craton compare --peers none -o thp=always -- ./my-program
  craton compare --peers none --json - -- sh -c 'sort big.txt | uniq -c' | jq .ratios
  craton compare --ready 'redis-cli -p 7777 ping' \\
    --load 'redis-benchmark -p 7777 -n 500000 -r 100000 -t set' \\
    -- redis-server --port 7777 --save ''

CMD runs on glibc, on Craton and on the peers in turns (A B C, A B C, …). In a
warm-up before, each allocator has to prove that it serves CMD. The table shows
medians: wall and CPU time, peak and steady memory (RSS), page faults, memory on
hugepages at the peak and its share. × is the ratio to glibc: below 1, CMD needs
less. The interval contains the true ratio with 95 % confidence; it takes five
rounds. Memory is that of CMD's largest process. CMD's input is empty, and its
output is discarded. Ctrl-C ends the comparison and prints the runs so far.

With --load, CMD is a server: each run starts it, waits until READY succeeds,
runs LOAD on the C library's malloc, and ends CMD by SIGTERM, ten seconds later
by SIGKILL. The table then has requests and latency as LOAD prints them (known:
redis-benchmark, wrk, pgbench, memtier, ab), the load's time, CMD's CPU time,
and memory as the sum of PSS over CMD's processes: at the peak, in the load's
second half, and a second after it.

Peers are those that `make peers` built, and those that Debian's packages
installed, such as debian-jemalloc of libjemalloc2, which other programs may
have brought. --peers none leaves them out. docs/peers.md lists their names.

Exit status: 0 when every run succeeded, 1 when one failed or was not served,
2 for wrong usage.")]
pub struct Compare {
    /// Peers by name, or NAME=PATH for another library; `all` that are found (the default), or
    /// `none`
    #[arg(long, value_name = "LIST")]
    pub peers: Option<String>,
    /// Rounds; in each, CMD runs once on every allocator
    #[arg(long, value_name = "N", default_value_t = 5, value_parser = at_least::<1>, allow_negative_numbers = true)]
    pub runs: usize,
    /// Warm-up rounds before, which do not count
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = at_least::<0>, allow_negative_numbers = true)]
    pub warmup: usize,
    /// Kill a run that takes longer, and count it as failed
    #[arg(long, value_name = "SECONDS", value_parser = seconds, allow_negative_numbers = true)]
    pub timeout: Option<Duration>,
    /// Set an option of the library for the runs on Craton, as `craton run -o`
    #[arg(short = 'o', value_name = "KEY=VALUE", value_parser = setting())]
    pub options: Vec<Setting>,
    /// A command for `sh -c` that loads CMD, a server
    #[arg(long, value_name = "LOAD", requires = "ready")]
    pub load: Option<OsString>,
    /// A command for `sh -c` that succeeds once the server answers
    #[arg(long, value_name = "READY", requires = "load")]
    pub ready: Option<OsString>,
    /// Count a run as failed if READY has not succeeded in this time
    #[arg(long, value_name = "SECONDS", default_value = "60", requires = "ready")]
    #[arg(value_parser = seconds, allow_negative_numbers = true)]
    pub ready_timeout: Duration,
    /// Repeat LOAD until this time has passed
    #[arg(long, value_name = "SECONDS", requires = "load")]
    #[arg(value_parser = seconds, allow_negative_numbers = true)]
    pub duration: Option<Duration>,
    /// Read a figure from LOAD's output: NAME is ops (in a second), p50, p99 or p999 (in
    /// milliseconds), and the first group of REGEX its number
    #[arg(long, value_name = "NAME=REGEX", value_parser = Pattern::parse, requires = "load")]
    pub figure: Vec<Pattern>,
    /// Keep CMD on these processors, such as 0 or 0-1
    #[arg(long, value_name = "CPUS", allow_negative_numbers = true)]
    pub pin: Option<String>,
    /// Write every run and the ratios to FILE as JSON; `-` for standard output, with the table on
    /// standard error
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
#[command(after_help = "Examples:
  craton lab list
  craton lab run speed --quick
  craton lab run micro --peers mimalloc3 --json micro.json --svg pictures/

docs/experiments.md explains each, and lists the papers' figures that are open.")]
pub struct Lab {
    /// What to do.
    #[command(subcommand)]
    pub task: LabTask,
}

/// The commands of `craton lab`.
#[derive(Debug, Subcommand)]
pub enum LabTask {
    /// List the experiments, one a line
    List,
    /// Run experiments
    Run(LabRun),
}

/// `craton lab run`.
#[derive(Debug, Group)]
#[command(after_help = "Examples:
  craton lab run speed
  craton lab run speed --only larson-small,mstress --peers mimalloc3 --runs 10
  craton lab run nvalloc-fig1b --quick --json - | jq .ratios

Prints tables. Ctrl-C ends an experiment; its results so far are written. With
several experiments, the JSON file has a list of documents.

Exit status: 0 when every run succeeded, 1 when one failed, 2 for wrong usage.")]
pub struct LabRun {
    /// The experiments, by name; `craton lab list` shows them
    #[arg(required = true, value_name = "NAME")]
    pub names: Vec<String>,
    /// A short form of less than 20 seconds, to see that it works; its figures do not count
    #[arg(long)]
    pub quick: bool,
    /// Peers by name, or NAME=PATH for another library; `all` that are found, or `none`
    #[arg(long, value_name = "LIST")]
    pub peers: Option<String>,
    /// Rounds, instead of the experiment's default
    #[arg(long, value_name = "N", value_parser = at_least::<1>, allow_negative_numbers = true)]
    pub runs: Option<usize>,
    /// Run only these workloads of the experiment
    #[arg(long, value_name = "NAMES", value_delimiter = ',')]
    pub only: Vec<String>,
    /// Write the figures to FILE as JSON; `-` for standard output, with the tables on standard
    /// error
    #[arg(long, value_name = "FILE")]
    pub json: Option<PathBuf>,
    /// Write pictures into the folder DIR; create it if needed
    #[arg(long, value_name = "DIR")]
    pub svg: Option<PathBuf>,
}

/// `craton replay`.
#[derive(Debug, Group)]
#[command(after_help = "Examples:
  craton replay server.trace
  craton replay server.trace -o release_rate=0 --json - | jq .rows[0].overhead
  craton replay server.trace --heap frames

Repeats every span that the program allocated, resized or freed on a page heap
over simulated memory, with the trace's clock. Steady figures are means over the
second half of the recorded time. Overhead is backed memory beyond demand.
docs/trace.md describes the file.

Heaps:
  temeraire   TEMERAIRE's filler packs short spans
  frames      LLFree's page frames place them; hugepages are treated the same
Options:
  release_rate=BYTES       memory released in a second [67108864]
  regions=0|1              pack long spans across hugepages [1]; not with frames
  fit=lfr|fullest|best     which hugepage gets a span [lfr]; not with frames
  thp=auto|always|never    when the heap asks for hugepages [auto]

Exit status: 0, 1 when the trace cannot be replayed, 2 for wrong usage.")]
pub struct Replay {
    /// The file that `craton run --trace` recorded
    #[arg(value_name = "TRACE")]
    pub trace: PathBuf,
    /// The page heap: temeraire or frames
    #[arg(long, value_name = "NAME", default_value = "temeraire")]
    pub heap: String,
    /// Set an option of the page heap; the list is below
    #[arg(short = 'o', value_name = "KEY=VALUE")]
    pub options: Vec<String>,
    /// Write the figures to FILE as JSON; `-` for standard output, with the table on standard error
    #[arg(long, value_name = "FILE")]
    pub json: Option<PathBuf>,
}

/// `craton trace`.
#[derive(Debug, Group)]
#[command(after_help = "Examples:
  craton trace export server.trace --parquet server.parquet
  craton trace export --help                what it writes, and exit statuses")]
pub struct Trace {
    /// What to do.
    #[command(subcommand)]
    pub task: TraceTask,
}

/// The commands of `craton trace`.
#[derive(Debug, Subcommand)]
pub enum TraceTask {
    /// Write the events as a table
    #[command(after_help = "Example:
  craton trace export server.trace --parquet server.parquet

docs/trace.md describes the columns. Notes about the recording are on standard
error.

Exit status: 0, 1 when the trace cannot be read or the file not be written, 2
for wrong usage.")]
    Export {
        /// The file that `craton run --trace` recorded
        #[arg(value_name = "TRACE")]
        trace: PathBuf,
        /// Write a Parquet file; `-` for standard output
        #[arg(long, value_name = "FILE", required = true)]
        parquet: PathBuf,
    },
}

/// `craton set`.
#[derive(Debug, Group)]
#[command(after_help = "Examples:
  craton set 1234 release_rate=0
  craton set 1234 soft_limit=512M background=1 --wait 30

The process sets the options at its next malloc or free that passes the thread
caches. A sleeping process does so if it has a thread of the library (named
craton); programs without threads and those with a small heap have none. After
--wait, the request stays with the process until it reads it; further requests
are added. A debugger can make a sleeping process read it:
gdb -p PID -batch -ex 'call ((int(*)(void))craton_background_actions)()'

docs/options.md explains the options. Only the process's user or root may set
them.

Exit status: 0 when all were set, 1 when the process refused one (the others are
set), 2 for wrong usage, 3 when the process has not read the request yet.")]
pub struct Set {
    /// The process id
    #[arg(value_name = "PID", value_parser = process, allow_negative_numbers = true)]
    pub pid: u32,
    /// The options, as `craton run -o` takes them
    #[arg(value_name = "KEY=VALUE", required = true, value_parser = live_setting)]
    pub settings: Vec<String>,
    /// How long to wait for the answer
    #[arg(long, value_name = "SECONDS", default_value = "5", value_parser = seconds, allow_negative_numbers = true)]
    pub wait: Duration,
}

/// `craton heap`.
#[derive(Debug, Group)]
#[command(after_help = "Examples:
  craton heap create keys.heap --model log
  craton heap check keys.heap && echo whole
  craton heap stats keys.heap --json - | jq .rows[0].fragmentation
  craton heap dump keys.heap --slabs
  craton heap dump keys.heap --svg keys.svg
  craton heap repair keys.heap
  craton heap repair keys.heap --yes

info, check, stats, dump and repair without --yes never change the file: they
recover a private copy of its pages. docs/heap.md explains the commands and the
file's format.

Exit status: 0, 1 when something failed or `check` found damage, 2 for wrong
usage.")]
pub struct Heap {
    /// Write the figures to FILE as JSON; `-` for standard output, with the text on standard error
    #[arg(long, value_name = "FILE", global = true)]
    pub json: Option<PathBuf>,
    /// What to do.
    #[command(subcommand)]
    pub task: HeapTask,
}

/// The commands of `craton heap`.
#[derive(Debug, Subcommand)]
pub enum HeapTask {
    /// Make a new heap file
    Create(HeapCreate),
    /// Show the superblock, the state, the file's size, and what the heap survives
    Info {
        /// The heap file
        #[arg(value_name = "HEAP")]
        file: PathBuf,
    },
    /// Check every invariant; show the first damage and its place
    Check {
        /// The heap file
        #[arg(value_name = "HEAP")]
        file: PathBuf,
    },
    /// Show objects by size class, extents, free ranges, the log and the roots
    Stats {
        /// The heap file
        #[arg(value_name = "HEAP")]
        file: PathBuf,
    },
    /// List slabs, extents, log chunks and roots; all of them unless some are named
    Dump(HeapDump),
    /// Show what recovery would repair; repair it with --yes
    Repair {
        /// The heap file
        #[arg(value_name = "HEAP")]
        file: PathBuf,
        /// Repair it
        #[arg(long)]
        yes: bool,
        /// Go on without a journal that is missing or empty: its sync points are lost
        #[arg(long)]
        lose_journal: bool,
    },
    /// Give empty slabs and free ranges back to the system, and shorten the file
    Compact {
        /// The heap file
        #[arg(value_name = "HEAP")]
        file: PathBuf,
    },
}

/// `craton heap create`.
#[derive(Debug, Group)]
#[command(after_help = "Example:
  craton heap create /mnt/pmem/keys.heap --model gc --most 4G

Models: in a log heap an object and its slot change together, also in a crash. A
gc heap writes no log for small objects; after a crash, those that no root
reaches are freed. A frames heap is a log heap whose large ranges lie in
persistent frames, which need no log of their own: for persistent caches. It
grows to --most bytes, or to 16 GiB.")]
pub struct HeapCreate {
    /// The heap file; refused if it exists
    #[arg(value_name = "HEAP")]
    pub file: PathBuf,
    /// How objects survive a crash: log, gc or frames
    #[arg(long, value_name = "NAME", default_value = "log", value_parser = ["log", "gc", "frames"])]
    pub model: String,
    /// Bytes beyond which the heap never grows, such as 64M or 4G; without, the program that opens
    /// it decides
    #[arg(long, value_name = "SIZE", value_parser = bytes, allow_negative_numbers = true)]
    pub most: Option<u64>,
    /// Lanes; more threads than that share them
    #[arg(
        long,
        value_name = "N",
        default_value_t = 64,
        value_parser = clap::value_parser!(u32).range(1..=64),
        allow_negative_numbers = true
    )]
    pub lanes: u32,
    /// Stripes of bitmaps [default: 6 where lines are written back, else 1]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=8), allow_negative_numbers = true)]
    pub stripes: Option<u32>,
}

/// `craton heap dump`.
#[derive(Debug, Group)]
#[command(after_help = "Example:
  craton heap dump keys.heap --extents --svg keys.svg

In the picture, a cell is a unit of 64 KiB. Its colour tells what it holds, and
the shade of a slab how much of it is live. In heaps of more than 16,384 units, a
cell is several units.")]
pub struct HeapDump {
    /// The heap file
    #[arg(value_name = "HEAP")]
    pub file: PathBuf,
    /// List slabs
    #[arg(long)]
    pub slabs: bool,
    /// List extents and free ranges
    #[arg(long)]
    pub extents: bool,
    /// List chunks of the bookkeeping log
    #[arg(long)]
    pub log: bool,
    /// List roots
    #[arg(long)]
    pub roots: bool,
    /// Write a picture of the heap to FILE
    #[arg(long, value_name = "FILE")]
    pub svg: Option<PathBuf>,
}

/// A setting for a running process; its value may contain commas.
fn live_setting(text: &str) -> Result<String, String> {
    options::check_live(text.as_ref()).map(|()| text.to_owned()).map_err(|why| plain(&why))
}

fn setting() -> impl TypedValueParser<Value = Setting> {
    OsStringValueParser::new().try_map(|text| Setting::parse(text).map_err(|why| plain(&why)))
}

/// The program's name; empty where a shell variable is not set.
pub fn program(command: &[OsString]) -> Result<&OsString, Failure> {
    let none = || Failure::Usage("the name of the program to run is empty; give one behind `--`".to_owned());
    command.first().filter(|name| !name.is_empty()).ok_or_else(none)
}

#[cfg(test)]
mod tests;
