//! A running process's page of statistics, read without a stop.

use crate::live::{Live, is_zombie};
use crate::memory::Memory;
use crate::published::{PAGE, Published};
use crate::reader::Reader;
use crate::table::Table;
use std::fs;

#[derive(Debug)]
pub struct Watch {
    memory: Live,
    at: u64,
}

impl Watch {
    /// # Errors
    /// No such process, no permission, or not on Craton.
    pub fn open(pid: u32) -> Result<Self, String> {
        let memory = Live::watch(pid)?;
        let found = Table::find(&Reader::new(&memory)).and_then(|table| table.get("segment"));
        // A process that ends meanwhile seems to have no table.
        let at = found.map_err(|why| if is_zombie(pid, pid) { format!("process {pid} has ended") } else { why })?;
        Ok(Self { memory, at })
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
