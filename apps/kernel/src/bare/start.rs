//! PVH's start information: memory map and command line.

use craton_kernel::memory::Given;

const MAGIC: u32 = 0x336e_c578;
const USABLE: u32 = 1;

#[repr(C)]
pub struct Start {
    magic: u32,
    version: u32,
    flags: u32,
    modules: u32,
    module_list: u64,
    command_line: u64,
    acpi: u64,
    memory_map: u64,
    entries: u32,
    reserved: u32,
}

#[repr(C)]
#[derive(Clone, Copy)]
struct Entry {
    begin: u64,
    bytes: u64,
    kind: u32,
    reserved: u32,
}

impl Start {
    pub fn is_known(&self) -> bool {
        self.magic == MAGIC && self.version >= 1
    }

    pub fn memory(&self) -> impl Iterator<Item = Given> {
        // SAFETY: the loader placed `entries` of them below 4 GiB, where nothing has written.
        let entries = unsafe { core::slice::from_raw_parts(self.memory_map as *const Entry, self.entries as usize) };
        entries.iter().map(|entry| Given { begin: entry.begin, bytes: entry.bytes, is_usable: entry.kind == USABLE })
    }

    pub fn has(&self, word: &str) -> bool {
        if self.command_line == 0 {
            return false;
        }
        // SAFETY: the loader placed a string with an end there.
        let line = unsafe { core::ffi::CStr::from_ptr(self.command_line as *const core::ffi::c_char) };
        line.to_bytes().split(|byte| *byte == b' ').any(|given| given == word.as_bytes())
    }
}
