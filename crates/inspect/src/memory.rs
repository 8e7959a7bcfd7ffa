//! A process as it can be read.

use object::elf::{EM_AARCH64, EM_X86_64};
use std::collections::HashSet;
use std::path::PathBuf;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Map {
    pub start: u64,
    /// Exclusive.
    pub end: u64,
    pub readable: bool,
    pub writable: bool,
    pub executable: bool,
    pub offset: u64,
    /// Or a name of the kernel's in brackets; empty for anonymous memory.
    pub path: String,
}

impl Map {
    pub fn contains(&self, at: u64) -> bool {
        (self.start..self.end).contains(&at)
    }

    /// Pages without memory read as zeros.
    pub fn is_anonymous(&self) -> bool {
        let path = self.path.as_str();
        path.is_empty() || path == "[heap]" || path.starts_with("[stack")
    }

    pub fn is_device(&self) -> bool {
        self.path.starts_with("/dev/") && !self.path.starts_with("/dev/shm/") && !self.path.starts_with("/dev/zero")
    }

    pub fn is_file(&self) -> bool {
        self.path.starts_with('/') && !self.path.starts_with("/dev/")
    }
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Thread {
    pub id: u32,
    pub stack: u64,
    /// All words, of the vector unit too.
    pub registers: Vec<u64>,
    /// In the kernel's layout, by note number of a core file; the general ones first.
    pub sets: Vec<(u32, Vec<u8>)>,
}

/// A reader's part of the memory from an address on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Held<'m> {
    /// The bytes that lie together.
    Bytes(&'m [u8]),
    /// Their number.
    Zeros(u64),
    /// [`Memory::read`] fetches it.
    Elsewhere,
}

/// Searches read it from several threads.
pub trait Memory: Sync {
    /// Saves a copy where there is one.
    fn held(&self, _at: u64) -> Held<'_> {
        Held::Elsewhere
    }
    /// Returns the bytes before the first unreadable one.
    fn read(&self, at: u64, into: &mut [u8]) -> usize;
    /// By address.
    fn maps(&self) -> &[Map];
    /// The mapping that holds an address.
    fn map_at(&self, at: u64) -> Option<&Map> {
        let i = self.maps().partition_point(|map| map.start <= at).checked_sub(1)?;
        self.maps().get(i).filter(|map| map.contains(at))
    }
    fn threads(&self) -> &[Thread];
    /// In messages: `process 17`, or a file's name.
    fn name(&self) -> String;
    fn pid(&self) -> u32;
    /// Of a running process: where its paths begin.
    fn root(&self) -> Option<PathBuf> {
        None
    }
    /// As the kernel lays it out.
    fn auxiliary(&self) -> Vec<u8> {
        Vec::new()
    }
    /// Starts of mappings that their owner wants in no core file.
    fn left_out(&self) -> HashSet<u64> {
        HashSet::new()
    }
    /// No thread has run since the first read.
    fn is_unchanged(&self) -> bool {
        true
    }
    /// Threads whose system calls answer `EINTR` since they were stopped.
    fn interrupted(&self) -> usize {
        0
    }
    fn warnings(&self) -> Vec<String> {
        Vec::new()
    }
}

/// In the kernel's general registers.
pub(crate) const STACK_AT: usize = if cfg!(target_arch = "x86_64") { 19 * 8 } else { 31 * 8 };

pub(crate) const MACHINE: u16 = if cfg!(target_arch = "x86_64") { EM_X86_64 } else { EM_AARCH64 };

pub(crate) fn words(bytes: &[u8]) -> impl Iterator<Item = u64> {
    let (whole, _) = bytes.as_chunks::<8>();
    whole.iter().map(|word| u64::from_le_bytes(*word))
}

impl Thread {
    pub(crate) fn new(id: u32, sets: Vec<(u32, Vec<u8>)>) -> Self {
        let general = sets.first().and_then(|(_, bytes)| bytes.get(STACK_AT..));
        let stack = general.and_then(|rest| words(rest).next()).unwrap_or(0);
        let registers = sets.iter().flat_map(|(_, bytes)| words(bytes)).collect();
        Self { id, stack, registers, sets }
    }
}
