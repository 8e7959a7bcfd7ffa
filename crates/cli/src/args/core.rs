//! `craton core`'s command line.

use super::values::{address, count, process};
use clap::{Args as Group, Subcommand};
use std::path::PathBuf;

/// `craton core`.
#[derive(Debug, Group)]
#[command(after_help = "Examples:
  craton core core.1234 stats
  craton core leaks --pid 1234
  craton core core.1234 --exe ./my-server.old whatis 0x7f12a4c01230
  craton core --pid 1234 log --last 100
  craton core --pid 1234 save server.core
  craton core core.1234 verify --json - | jq .rows[0].broken
  craton core core.1234 refs 0x7f12a4c01230
  craton core core.1234 shell

leaks, refs and save stop a process; the others do while one of its threads runs.
It stands still while its memory is copied, and goes on while the copy is
searched. Where memory for the copy is short it stands still all the time.
Only its user or root may read it. `save`, gcore and the kernel (`ulimit -c
unlimited`) write core files. The process has to run on a release of Craton that
this program knows.

leaks: an object is lost when no word in registers, stacks, writable memory and
reachable objects points into it. A number that looks like an address can hide a
leak. A pointer kept in another form makes a false one.

Exit status: 0, 1 when something failed, leaks were found or the heap is broken,
2 for wrong usage.")]
pub struct Core {
    /// The core file
    #[arg(value_name = "CORE")]
    pub core: Option<PathBuf>,
    /// A running process instead, by its process id
    #[arg(long, value_name = "PID", global = true, value_parser = process, allow_negative_numbers = true)]
    pub pid: Option<u32>,
    /// The program of the core file, if it has moved since
    #[arg(long, value_name = "FILE", global = true)]
    pub exe: Option<PathBuf>,
    /// Write the result to FILE as JSON; `-` for standard output, with the text on standard error
    #[arg(long, value_name = "FILE", global = true)]
    pub json: Option<PathBuf>,
    /// What to do.
    #[command(subcommand)]
    pub task: CoreTask,
}

/// The commands of `craton core`.
#[derive(Debug, Subcommand)]
pub enum CoreTask {
    /// Show the heap's contents, by size class, heap and object cache
    Stats,
    /// Find objects that no pointer leads to
    Leaks {
        /// Show all of them, not only the twenty largest
        #[arg(long)]
        all: bool,
    },
    /// Show what is at an address, such as 0x7f12a4c01230
    Whatis {
        /// The addresses, in hexadecimal
        #[arg(value_name = "ADDR", required = true, value_parser = address, allow_negative_numbers = true)]
        addresses: Vec<u64>,
    },
    /// Show who points to the object at an address, and why it is alive
    Refs {
        /// The address, in hexadecimal
        #[arg(value_name = "ADDR", value_parser = address, allow_negative_numbers = true)]
        address: u64,
    },
    /// Show the words of the object at an address, and what they point to
    Dump {
        /// The address, in hexadecimal
        #[arg(value_name = "ADDR", value_parser = address, allow_negative_numbers = true)]
        address: u64,
        /// How much to show, in bytes, up to 1048576
        #[arg(long, value_name = "N", default_value_t = 256, value_parser = dumped, allow_negative_numbers = true)]
        bytes: u64,
    },
    /// Show who uses the memory: allocation sites (with debug=audit), types, caches, size classes
    Users {
        /// Show all of them, not only the twenty largest
        #[arg(long)]
        all: bool,
    },
    /// Count live objects by size and by what their first word points to
    Histogram {
        /// Show all rows, not only the twenty largest
        #[arg(long)]
        all: bool,
    },
    /// Read these commands from a prompt, or from standard input
    Shell,
    /// Check the heap's invariants; show where the first broken one is
    Verify,
    /// Show the last allocations and frees and their callers (needs debug=audit)
    Log {
        /// How many to show
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

fn dumped(text: &str) -> Result<u64, String> {
    const MOST: u64 = 1 << 20;
    let bytes = count(text)?;
    (1..=MOST).contains(&bytes).then_some(bytes).ok_or_else(|| format!("give 1 to {MOST} bytes"))
}
