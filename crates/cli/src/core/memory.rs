//! The memory that a command looks at.
//!
//! **What.** Commands that read much of the heap get a copy of a process's memory, so that the
//! process stands still only while it is copied. Commands that need little read the process
//! itself, without a stop if all its threads sleep.
//!
//! **Failure.** Without memory for the copy the process is read while it stands still; the line
//! about the stop has the reason.

use super::Target;
use crate::args::CoreTask;
use crate::terminal::{plain, say};
use craton_inspect::{CoreFile, Live, Memory, Room, Snapshot, Table, Watch, locks};
use craton_lab::format;
use std::cell::Cell;
use std::path::Path;
use std::thread::sleep;
use std::time::Duration;

/// Stops until no thread is changing the heap.
const TRIES: u32 = 20;
pub const BETWEEN: Duration = Duration::from_millis(2);
/// A stop that is announced.
const NOTICED_S: f64 = 0.1;
/// Of a byte that is copied, and of a byte of the heap that is walked or searched where it lies:
/// for small objects, on a machine of 2 slow processors.
const COPY_NS: f64 = 0.3;
const STATS_NS: f64 = 0.05;
const WALK_NS: f64 = 8.0;
const SEARCH_NS: f64 = 40.0;

type Opened = (Box<dyn Memory>, Result<Table, String>);

/// A command's target, which it may open several times.
pub struct Opener<'a> {
    pub target: Target<'a>,
    pub exe: Option<&'a Path>,
    pub task: &'a CoreTask,
    /// A stop, once.
    announced: Cell<bool>,
}

impl<'a> Opener<'a> {
    pub fn new(target: Target<'a>, exe: Option<&'a Path>, task: &'a CoreTask) -> Self {
        Self { target, exe, task, announced: Cell::new(false) }
    }

    /// Whether there is something to read.
    ///
    /// # Errors
    /// There is not.
    pub fn check(&self) -> Result<(), String> {
        match self.target {
            Target::Core(core) => CoreFile::open(core, self.exe).map(drop),
            Target::Process(pid) => Live::watch(pid).map(drop),
        }
    }

    /// Reads without a stop where it can, unless `stops`.
    ///
    /// # Errors
    /// The target cannot be read.
    pub fn open(&self, stops: bool) -> Result<Opened, String> {
        let pid = match self.target {
            Target::Core(core) => {
                let core = CoreFile::open(core, self.exe)?;
                let table = Table::of(&core);
                return Ok((Box::new(core), table));
            }
            Target::Process(pid) => pid,
        };
        // Before the stop. A process on another allocator can be saved, too.
        let table = Table::of(&Live::watch(pid)?);
        let room = match self.task {
            CoreTask::Stats | CoreTask::Log { .. } => None,
            _ => Some(Room::take(pid)),
        };
        let mut live = self.stand(pid, stops, room.as_ref())?;
        for _ in 1..TRIES {
            // Without its table the heap cannot be read, as the caller finds.
            let held = table.as_ref().map_or(Ok(Vec::new()), |table| locks(&live, table));
            if held.is_ok_and(|held| held.is_empty()) {
                break;
            }
            drop(live);
            sleep(BETWEEN);
            live = self.stand(pid, stops, room.as_ref())?;
        }
        if let threads @ 1.. = live.interrupted() {
            let name = live.name();
            say(&format!(
                "craton: {name}: the stop interrupts a system call in {threads} of its threads, which returns EINTR\n"
            ));
        }
        match room {
            Some(Ok(room)) => Ok((Box::new(Snapshot::of(live, room)?), table)),
            _ => Ok((Box::new(live), table)),
        }
    }

    /// Asleep, or stopped.
    fn stand(&self, pid: u32, stops: bool, room: Option<&Result<Room, String>>) -> Result<Live, String> {
        if !stops && let Some(asleep) = Live::asleep(pid)? {
            return Ok(asleep);
        }
        if !self.announced.replace(true) {
            self.announce(pid, room);
        }
        Live::stop(pid)
    }

    /// Says how long the process will stand still, if one would notice.
    fn announce(&self, pid: u32, room: Option<&Result<Room, String>>) {
        let heap = Watch::open(pid).and_then(|watch| watch.page()).map_or(0, |page| page.heap_bytes());
        let read = || format!("its heap of {} is read", format::bytes(heap));
        let (bytes, ns, what) = match (room, self.task) {
            (Some(Ok(room)), _) => {
                (room.bytes(), COPY_NS, format!("{} of its memory are copied", format::bytes(room.bytes())))
            }
            (None, _) => (heap, STATS_NS, read()),
            (Some(Err(why)), CoreTask::Leaks { .. } | CoreTask::Refs { .. }) => {
                (heap, SEARCH_NS, format!("{}: {why}", read()))
            }
            (Some(Err(why)), _) => (heap, WALK_NS, format!("{}: {why}", read())),
        };
        let seconds = bytes as f64 * ns / 1e9;
        if seconds >= NOTICED_S {
            say(&format!("craton: process {pid} stands still for up to {seconds:.1} s while {}\n", plain(&what)));
        }
    }
}
