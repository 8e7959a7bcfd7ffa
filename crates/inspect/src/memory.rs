//! A process as it can be read: its memory, its mappings, its threads.

use object::elf::{EM_AARCH64, EM_X86_64};
use std::collections::HashSet;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Map {
    pub start: u64,
    /// Behind the last byte.
    pub end: u64,
    pub readable: bool,
    pub writable: bool,
    pub executable: bool,
    /// Where in the file it begins, in bytes.
    pub offset: u64,
    /// The file, or a name of the kernel's in brackets; empty for anonymous memory.
    pub path: String,
}

impl Map {
    pub fn contains(&self, at: u64) -> bool {
        (self.start..self.end).contains(&at)
    }

    pub fn is_file(&self) -> bool {
        self.path.starts_with('/') && !self.path.starts_with("/dev/")
    }
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Thread {
    pub id: u32,
    /// Its stack pointer.
    pub stack: u64,
    /// Every word of its registers, those of the vector unit too.
    pub registers: Vec<u64>,
    /// Register sets in the kernel's layout by note number of a core file, the general ones first.
    pub sets: Vec<(u32, Vec<u8>)>,
}

/// A process that stands still.
pub trait Memory {
    /// Reads bytes from an address; returns how many precede the first unreadable one.
    fn read(&self, at: u64, into: &mut [u8]) -> usize;
    /// Its mappings, by address.
    fn maps(&self) -> &[Map];
    fn threads(&self) -> &[Thread];
    /// The name in messages: `process 17`, or a file's name.
    fn name(&self) -> String;
    fn pid(&self) -> u32;
    /// Its auxiliary values, as the kernel lays them out.
    fn auxiliary(&self) -> Vec<u8> {
        Vec::new()
    }
    /// Where mappings begin that their owner wants in no core file.
    fn left_out(&self) -> HashSet<u64> {
        HashSet::new()
    }
    /// Whether what was read is of one moment: no thread has run meanwhile.
    fn is_unchanged(&self) -> bool {
        true
    }
    /// Threads whose system call answers `EINTR` since they were stopped.
    fn interrupted(&self) -> usize {
        0
    }
    /// Names the missing memory, and a remedy.
    fn warnings(&self) -> Vec<String> {
        Vec::new()
    }
}

/// Offset of the stack pointer in the kernel's general registers.
pub(crate) const STACK_AT: usize = if cfg!(target_arch = "x86_64") { 19 * 8 } else { 31 * 8 };

pub(crate) const MACHINE: u16 = if cfg!(target_arch = "x86_64") { EM_X86_64 } else { EM_AARCH64 };

/// The words in bytes; a rest that is no word is left out.
pub(crate) fn words(bytes: &[u8]) -> impl Iterator<Item = u64> {
    let (whole, _) = bytes.as_chunks::<8>();
    whole.iter().map(|word| u64::from_le_bytes(*word))
}

impl Thread {
    /// A thread by the sets of its registers, the general ones first.
    pub(crate) fn new(id: u32, sets: Vec<(u32, Vec<u8>)>) -> Self {
        let general = sets.first().and_then(|(_, bytes)| bytes.get(STACK_AT..));
        let stack = general.and_then(|rest| words(rest).next()).unwrap_or(0);
        let registers = sets.iter().flat_map(|(_, bytes)| words(bytes)).collect();
        Self { id, stack, registers, sets }
    }
}
