//! Does a task in this process; the caller removes the file.

use super::count::Count;
use super::craton::Craton;
use super::nvalloc::Nvalloc;
use super::pmdk::{Begin, Pmdk};
use super::task::{Kind, Load, Measured, Mode, Task};
use super::{Heap, load};
use craton_base::{Medium, Space};
use craton_os::persistent_file::{Access, FileOptions, Flushed, Room, UseMedium, WriteBackChoice};
use craton_os::{PersistentFile, stamp_clock};
use craton_pheap::{Config, Heap as Pheap, Model, Options};
use craton_sim::{Counted, Latency};
use std::ffi::CString;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::time::Instant;

/// Figure 2 has as many.
const FIRST_FLUSHES: usize = 1000;
/// The heap grows the file.
const FIRST: u64 = 1 << 20;
/// Address space of a file.
const LIMIT: u64 = 1 << 36;

/// Enough, and few to prepare.
fn pool_bytes(task: &Task) -> u64 {
    const MIB: u64 = 1 << 20;
    match task.load {
        Load::LarsonLarge | Load::Dbmstest | Load::FirstFlushes => 768 * MIB * task.threads,
        Load::ListMake | Load::ListOpen => 64 * MIB + 320 * task.of(load::list::NODES),
        _ if Load::FRAGBENCH.contains(&task.load) => 64 * MIB + 7 * task.of(load::fragbench::UNIT),
        Load::Fptree => 512 * MIB,
        _ => 128 * MIB * task.threads,
    }
}

impl Task {
    fn config(&self) -> Config {
        let model = match self.heap {
            Kind::CratonGc => Model::Gc,
            Kind::CratonFrames => Model::Frames,
            Kind::CratonLog | Kind::Pmdk | Kind::Nvalloc => Model::Log,
        };
        // Flushes are counted as if lines were written back.
        let stripes = self.stripes.unwrap_or_else(|| Config::stripes_for(model, self.mode != Mode::None));
        let half = self.half.unwrap_or(Config::default().half);
        Config { model, stripes, half, ..Config::default() }
    }

    fn options(&self) -> Options {
        let default = Options::default();
        Options { morph: self.morph.unwrap_or(default.morph), eager: self.eager, stamp: stamp_clock(), ..default }
    }

    fn begin(&self) -> Begin {
        if self.load == Load::ListOpen { Begin::Old } else { Begin::New(pool_bytes(self)) }
    }
}

pub fn measure(task: &Task) -> Result<Measured, String> {
    match task.heap {
        Kind::Pmdk => {
            let counted = (task.mode == Mode::Counted).then_some(&*task.directory);
            let start = Instant::now();
            let heap = Pmdk::new(&task.file(), task.begin(), counted)?;
            run(task, heap, start)
        }
        Kind::Nvalloc => {
            // Its files are found there after the process has moved.
            let directory = std::path::absolute(&task.directory).map_err(|e| e.to_string())?;
            let task = Task { directory, ..task.clone() };
            let start = Instant::now();
            run(&task, Nvalloc::new(&task)?, start)
        }
        Kind::CratonLog | Kind::CratonGc | Kind::CratonFrames => on_file(task, &task.file()),
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
