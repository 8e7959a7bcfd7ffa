//! A task: one load on one heap, in this process.
//!
//! **Failure.** A sentence with the reason; the file stays for the caller to remove.

use super::count::Count;
use super::craton::Craton;
use super::pmdk::{Begin, Pmdk};
use super::race::Pace;
use super::{Heap, load};
use clap::{Args, ValueEnum};
use craton_base::{Medium, Space};
use craton_os::PersistentFile;
use craton_os::persistent_file::{Access, FileOptions, Flushed, Room, UseMedium, WriteBackChoice};
use craton_pheap::{Config, Heap as Pheap, Model, Options};
use craton_sim::{Counted, Latency};
use serde::Serialize;
use std::collections::BTreeMap;
use std::ffi::CString;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// A run's figures by name.
pub type Figures = BTreeMap<String, f64>;

/// The result of a task.
#[derive(Clone, PartialEq, Default, Debug, Serialize)]
pub struct Measured {
    /// The figures.
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

/// The heap of a task.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
pub enum Kind {
    /// Craton's heap with its models.
    CratonLog,
    CratonGc,
    /// PMDK's libpmemobj.
    Pmdk,
}

impl Kind {
    pub fn name(self) -> &'static str {
        match self {
            Self::CratonLog => "craton-log",
            Self::CratonGc => "craton-gc",
            Self::Pmdk => "pmdk",
        }
    }

    /// Error: it takes part where something is installed, by this sentence.
    pub fn is_here(self) -> Result<(), String> {
        if self == Self::Pmdk { super::pmdk::is_here() } else { Ok(()) }
    }
}

/// What becomes of flushes.
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

    /// The environment in which libpmemobj does so.
    pub fn environment(self) -> Vec<(&'static str, &'static str)> {
        let force = ("PMEM_IS_PMEM_FORCE", "1");
        if self == Self::None { vec![force, ("PMEM_NO_FLUSH", "1")] } else { vec![force] }
    }
}

/// The loads, each in a file of [`load`].
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
    /// W1 to W4.
    pub const FRAGBENCH: [Self; 4] = [Self::FragbenchW1, Self::FragbenchW2, Self::FragbenchW3, Self::FragbenchW4];

    /// Its name on the command line.
    pub fn name(self) -> String {
        self.to_possible_value().map_or(String::new(), |value| value.get_name().to_owned())
    }

    /// Bytes of PMDK's pool: enough, and few to prepare.
    fn pool_bytes(self, task: &Task) -> u64 {
        const MIB: u64 = 1 << 20;
        match self {
            Self::LarsonLarge | Self::Dbmstest | Self::FirstFlushes => 768 * MIB * task.threads,
            Self::ListMake | Self::ListOpen => 64 * MIB + 320 * task.of(load::list::NODES),
            _ if Self::FRAGBENCH.contains(&self) => 64 * MIB + 7 * task.of(load::fragbench::UNIT),
            Self::Fptree => 512 * MIB,
            _ => 128 * MIB * task.threads,
        }
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
    /// Of `log-gc`: bytes of log above which it is collected; never, if not given
    #[arg(long)]
    pub log_usage: Option<u64>,
}

impl Task {
    /// The heap's file.
    pub fn file(&self) -> PathBuf {
        self.directory.join("heap")
    }

    /// This task's part of the full load.
    pub fn of(&self, full: u64) -> u64 {
        (full * self.percent / 100).max(1)
    }

    /// The time that it has.
    pub(super) fn pace(&self) -> Pace {
        let run = Duration::from_millis(self.ms);
        Pace { warm: run / 2, run, turns: (2, 4), file: self.file() }
    }

    /// Lines are written back, or counted as if.
    fn flushes(&self) -> bool {
        self.mode != Mode::None
    }

    fn config(&self) -> Config {
        let model = if self.heap == Kind::CratonGc { Model::Gc } else { Model::Log };
        // NVAlloc §6.7: caches that persist need no interleaving.
        let stripes = self.stripes.unwrap_or(if self.flushes() { Config::default().stripes } else { 1 });
        let half = self.half.unwrap_or(Config::default().half);
        Config { model, stripes, half, ..Config::default() }
    }

    fn options(&self) -> Options {
        let default = Options::default();
        Options { morph: self.morph.unwrap_or(default.morph), ..default }
    }

    /// Whether the heap is there.
    fn begin(&self) -> Begin {
        if self.load == Load::ListOpen { Begin::Old } else { Begin::New(self.load.pool_bytes(self)) }
    }
}

/// Figure 2 has as many.
const FIRST_FLUSHES: usize = 1000;
/// Bytes of a new file, which the heap makes longer.
const FIRST: u64 = 1 << 20;
/// Address space of a file.
const LIMIT: u64 = 1 << 36;

/// Does the task, and returns its figures.
pub fn measure(task: &Task) -> Result<Measured, String> {
    match task.heap {
        Kind::Pmdk => {
            let counted = (task.mode == Mode::Counted).then_some(&*task.directory);
            let start = Instant::now();
            let heap = Pmdk::new(&task.file(), task.begin(), counted)?;
            run(task, heap, start)
        }
        Kind::CratonLog | Kind::CratonGc => on_file(task, &task.file()),
    }
}

fn on_file(task: &Task, path: &Path) -> Result<Measured, String> {
    let name = CString::new(path.as_os_str().as_bytes()).map_err(|e| e.to_string())?;
    let options = FileOptions { limit: LIMIT, access: Access::ReadWrite, room: Room::Sparse };
    let start = Instant::now();
    let file = match task.begin() {
        Begin::New(_) => PersistentFile::create(&name, FIRST, options),
        Begin::Old => PersistentFile::open(&name, options),
    };
    let wrong = |why: &dyn std::fmt::Display| format!("{}: {why}", path.display());
    let file = file.map_err(|e| wrong(&e))?;
    let on_medium = OnMedium { task, start };
    match task.mode {
        Mode::Flush => file.with_medium(WriteBackChoice::Flush, on_medium).map_err(|e| wrong(&e))?,
        Mode::None => file.with_medium(WriteBackChoice::None, on_medium).map_err(|e| wrong(&e))?,
        Mode::Counted => {
            let medium = Flushed::new(file).map_err(|e| wrong(&e))?;
            on_medium.run(Counted::new(medium, Latency::PAPER), Some(|medium| medium))
        }
    }
}

struct OnMedium<'a> {
    task: &'a Task,
    start: Instant,
}

impl OnMedium<'_> {
    fn run<M: Medium + Space>(self, medium: M, count: Option<fn(&M) -> &dyn Count>) -> Result<Measured, String> {
        let Self { task, start } = self;
        if task.load == Load::LogGc {
            return load::log_gc::run(task, &medium).map(Measured::from);
        }
        let heap = match task.begin() {
            Begin::New(_) => Pheap::create(medium, task.config(), task.options()),
            Begin::Old => Pheap::open(medium, task.options()).map(|(heap, _)| heap),
        };
        let heap = heap.and_then(|heap| Craton::new(heap, count)).map_err(|error| error.to_string())?;
        run(task, heap, start)
    }
}

impl UseMedium for OnMedium<'_> {
    type Output = Result<Measured, String>;

    fn call<M: Medium + Space + 'static>(self, medium: M) -> Self::Output {
        self.run(medium, None)
    }
}

fn run<H: Heap>(task: &Task, heap: H, opening: Instant) -> Result<Measured, String> {
    if task.load == Load::Fptree {
        return load::fptree::run(task, heap).map(Measured::from);
    }
    if task.load == Load::ListMake {
        return load::list::make(task, heap).map(Measured::from);
    }
    if task.load == Load::FirstFlushes {
        let found = load::dbmstest::first_flushes(task, &heap, FIRST_FLUSHES);
        let found = found.map(|(flushes_at, figures)| Measured { figures, flushes_at });
        return found.map_err(|_| refused(task, &heap));
    }
    let done = match task.load {
        Load::Threadtest => load::threadtest::run(task, &heap),
        Load::ProdCon => load::prod_con::run(task, &heap),
        Load::Shbench => load::shbench::run(task, &heap),
        Load::LarsonSmall => load::larson::run(task, &heap, &load::larson::SMALL),
        Load::LarsonLarge => load::larson::run(task, &heap, &load::larson::LARGE),
        Load::Dbmstest => load::dbmstest::run(task, &heap),
        Load::FragbenchW1 => load::fragbench::run(task, &heap, 0),
        Load::FragbenchW2 => load::fragbench::run(task, &heap, 1),
        Load::FragbenchW3 => load::fragbench::run(task, &heap, 2),
        Load::FragbenchW4 => load::fragbench::run(task, &heap, 3),
        Load::Publish => load::publish::run(task, &heap),
        Load::ShortThreads => load::growth::short_threads(task, &heap),
        Load::OneLarge => load::growth::one_large(task, &heap),
        Load::ListOpen => load::list::open(task, &heap, opening),
        Load::LogGc => return Err(format!("{} has no such log", task.heap.name())),
        Load::Fptree | Load::ListMake | Load::FirstFlushes => unreachable!("done above"),
    };
    done.map(Measured::from).map_err(|_| refused(task, &heap))
}

fn refused<H: Heap>(task: &Task, heap: &H) -> String {
    format!("{} refused a request: {}", task.heap.name(), heap.why())
}
