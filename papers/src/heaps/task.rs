//! A task: one load on one heap.

use super::race::Pace;
use clap::{ArgAction, Args, ValueEnum};
use serde::Serialize;
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

pub type Figures = BTreeMap<String, f64>;

#[derive(Clone, PartialEq, Default, Debug, Serialize)]
pub struct Measured {
    #[serde(flatten)]
    pub figures: Figures,
    /// Where the first flushes went.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub flushes_at: Vec<u64>,
}

impl From<Figures> for Measured {
    fn from(figures: Figures) -> Self {
        Self { figures, flushes_at: Vec::new() }
    }
}

#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
pub enum Kind {
    /// Craton's heap with its models.
    CratonLog,
    CratonGc,
    CratonFrames,
    /// PMDK's libpmemobj.
    Pmdk,
    /// NVAlloc by its authors.
    Nvalloc,
}

impl Kind {
    pub fn name(self) -> &'static str {
        match self {
            Self::CratonLog => "craton-log",
            Self::CratonGc => "craton-gc",
            Self::CratonFrames => "craton-frames",
            Self::Pmdk => "pmdk",
            Self::Nvalloc => "nvalloc",
        }
    }

    /// Error: what to install.
    pub fn is_here(self) -> Result<(), String> {
        match self {
            Self::Pmdk => super::pmdk::is_here(),
            Self::Nvalloc => super::nvalloc::is_here(),
            Self::CratonLog | Self::CratonGc | Self::CratonFrames => Ok(()),
        }
    }
}

#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, ValueEnum)]
pub enum Mode {
    /// Lines are written back.
    Flush,
    /// They are not, as where caches persist (eADR).
    None,
    /// They are counted.
    Counted,
}

impl Mode {
    pub fn name(self) -> &'static str {
        match self {
            Self::Flush => "flush",
            Self::None => "none",
            Self::Counted => "counted",
        }
    }

    /// For libpmemobj.
    pub fn environment(self) -> Vec<(&'static str, &'static str)> {
        let force = ("PMEM_IS_PMEM_FORCE", "1");
        if self == Self::None { vec![force, ("PMEM_NO_FLUSH", "1")] } else { vec![force] }
    }
}

#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, ValueEnum)]
pub enum Load {
    /// All objects allocated, then freed.
    Threadtest,
    /// One thread allocates, another frees.
    ProdCon,
    /// Random slots, sizes mostly small.
    Shbench,
    /// Replacements, threads come and go.
    LarsonSmall,
    /// The same, 32 to 512 KiB.
    LarsonLarge,
    /// Large objects, nine of ten freed.
    Dbmstest,
    /// The first flushes of DBMStest.
    FirstFlushes,
    /// Sizes change, as the next three.
    FragbenchW1,
    FragbenchW2,
    FragbenchW3,
    FragbenchW4,
    /// A tree.
    Fptree,
    /// Eight objects at a time.
    Publish,
    /// Threads that end soon.
    ShortThreads,
    /// An object of 512 KiB.
    OneLarge,
    /// Craton's extents and their log alone.
    LogGc,
    /// Makes a list, and ends without closing the heap.
    ListMake,
    /// Opens it.
    ListOpen,
}

impl Load {
    pub const FRAGBENCH: [Self; 4] = [Self::FragbenchW1, Self::FragbenchW2, Self::FragbenchW3, Self::FragbenchW4];

    pub fn name(self) -> String {
        self.to_possible_value().map_or(String::new(), |value| value.get_name().to_owned())
    }
}

/// A load on a heap, as the command line has it.
#[derive(Clone, PartialEq, Debug, Args)]
pub struct Task {
    /// The load
    #[arg(value_enum)]
    pub load: Load,
    /// On which heap
    #[arg(long, value_enum)]
    pub heap: Kind,
    /// What becomes of flushes
    #[arg(long, value_enum, default_value_t = Mode::Flush)]
    pub mode: Mode,
    /// Where the heap's file is made: `heap`
    #[arg(long)]
    pub directory: PathBuf,
    /// Threads that share the load
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u64).range(1..=32))]
    pub threads: u64,
    /// Measured time, after half of it as a warm-up
    #[arg(long, default_value_t = 200)]
    pub ms: u64,
    /// Objects in percent of the full load
    #[arg(long, default_value_t = 100, value_parser = clap::value_parser!(u64).range(1..))]
    pub percent: u64,
    /// Where random numbers start
    #[arg(long, default_value_t = 1)]
    pub seed: u64,
    /// Craton: slabs with at most this share of live objects may change their class; 0: none
    #[arg(long)]
    pub morph: Option<u32>,
    /// Craton: stripes of bitmaps and logs; by default as many as suit the mode
    #[arg(long)]
    pub stripes: Option<u32>,
    /// Craton: redo lines of half a ring, after which all dirty lines are written back
    #[arg(long)]
    pub half: Option<u32>,
    /// Craton: write homes back in each operation, as NVAlloc does
    #[arg(long, action = ArgAction::Set, num_args = 0..=1, default_value_t = false, default_missing_value = "true")]
    pub eager: bool,
    /// Of `log-gc`: bytes of log above which it is collected; never, if not given
    #[arg(long)]
    pub log_usage: Option<u64>,
}

impl Task {
    /// Of the authors' NVAlloc a folder.
    pub fn file(&self) -> PathBuf {
        self.directory.join(if self.heap == Kind::Nvalloc { super::nvalloc::FOLDER } else { "heap" })
    }

    /// This task's part of the full load.
    pub fn of(&self, full: u64) -> u64 {
        (full * self.percent / 100).max(1)
    }

    pub(super) fn pace(&self) -> Pace {
        let run = Duration::from_millis(self.ms);
        Pace { warm: run / 2, run, turns: (2, 4), file: self.file() }
    }
}
