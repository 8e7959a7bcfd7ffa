//! A running process, read again and again without a stop.
//!
//! **What.** [`Watch::page`] reads the page of statistics, for microseconds. The rest walks the
//! library's tables, whose place is known from the first time.
//!
//! **Failure.** A text with the reason. A process that has become another program by `exec` has
//! ended for a watch.

use crate::captive::add_captive_by;
use crate::heap::Heap;
use crate::hugepages::{Hugepages, SpanRow, hugepages, spans_on};
use crate::ledger::{Ledger, ledger_of};
use crate::live::{Live, is_zombie};
use crate::memory::Memory;
use crate::profile::Profile;
use crate::published::{PAGE, Published};
use crate::reader::Reader;
use crate::table::Table;
use std::fs;

#[derive(Debug)]
pub struct Watch {
    memory: Live,
    table: Table,
    at: u64,
}

impl Watch {
    /// # Errors
    /// No such process, no permission, or not on Craton.
    pub fn open(pid: u32) -> Result<Self, String> {
        let memory = Live::watch(pid)?;
        // A process that ends meanwhile seems to have no table.
        let why = |why| if is_zombie(pid, pid) { format!("process {pid} has ended") } else { why };
        let table = Table::find(&Reader::new(&memory)).map_err(why)?;
        let at = table.get("segment")?;
        Ok(Self { memory, table, at })
    }

    /// # Errors
    /// The process has ended, or the page is of another version.
    pub fn page(&self) -> Result<Published, String> {
        let mut bytes = vec![0; PAGE];
        if self.memory.read(self.at, &mut bytes) < PAGE {
            return Err(format!("{} has ended, or runs another program", self.memory.name()));
        }
        Published::parse(&bytes).map_err(|why| format!("{}: {why}", self.memory.name()))
    }

    /// With the mappings of now. The old memory must still be there: a new program may have
    /// anything at the table's addresses.
    fn memory(&self) -> Result<Live, String> {
        let new = Live::watch(self.memory.pid())?;
        self.page().map(|_| new)
    }

    /// # Errors
    /// As [`crate::ledger`].
    pub fn ledger(&self) -> Result<Ledger, String> {
        ledger_of(&Heap::outline_by(&self.memory()?, self.table.clone())?)
    }

    /// # Errors
    /// As [`Profile::of`].
    pub fn profile(&self) -> Result<Profile, String> {
        Profile::by(&self.memory()?, &self.table)
    }

    /// # Errors
    /// As [`crate::add_captive`].
    pub fn add_captive(&self, profile: &mut Profile) -> Result<(), String> {
        add_captive_by(profile, &Heap::outline_by(&self.memory()?, self.table.clone())?)
    }

    /// # Errors
    /// The process has ended, or its library is of another release.
    pub fn hugepages(&self) -> Result<Hugepages, String> {
        hugepages(&Heap::outline_by(&self.memory()?, self.table.clone())?)
    }

    /// The spans on a hugepage, by its number from the heap's start.
    ///
    /// # Errors
    /// As [`Watch::hugepages`], or the heap has no such hugepage.
    pub fn spans_on(&self, hugepage: u64) -> Result<Vec<SpanRow>, String> {
        spans_on(&Heap::outline_by(&self.memory()?, self.table.clone())?, hugepage)
    }
}

/// Those with the library mapped, not linked.
pub fn on_craton() -> Vec<u32> {
    let numbers = fs::read_dir("/proc").into_iter().flatten().flatten();
    let pids = numbers.filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
    let has_library = |pid: &u32| {
        let maps = fs::read(format!("/proc/{pid}/maps")).unwrap_or_default();
        maps.windows(LIBRARY.len()).any(|part| part == LIBRARY)
    };
    let mut all: Vec<u32> = pids.filter(|pid| *pid != std::process::id()).filter(has_library).collect();
    all.sort_unstable();
    all
}

const LIBRARY: &[u8] = b"libcraton.so";
