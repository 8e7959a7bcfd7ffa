//! Names of code addresses, for reports.
//!
//! **What.** Reads `/proc/self/maps` and the module's file, since the dynamic linker may be locked
//! or broken.
//! **Units.** Offsets are the file's addresses, as for `addr2line -e MODULE`. Names stay mangled:
//! demangling would need memory.
//! **Cost.** 0.1 ms to 1 ms an address; below 8 KiB of stack; keeps `errno`.
//! **Unsafe.** Reads the kernel's module by address.

mod elf;

use crate::small_file::PathText;
use crate::{Line, maps, process};

pub struct Described {
    path: PathText,
    offset: usize,
    name: Name,
}

struct Name {
    text: [u8; Name::CAPACITY],
    len: usize,
    is_cut: bool,
    offset: usize,
}

impl Name {
    const CAPACITY: usize = 512;
    const NONE: Self = Self { text: [0; Self::CAPACITY], len: 0, is_cut: false, offset: 0 };
}

impl Described {
    /// `[vdso]` and the like without a file.
    pub fn path(&self) -> &[u8] {
        self.path.as_bytes()
    }

    pub fn offset(&self) -> usize {
        self.offset
    }

    /// With the offset in the function.
    pub fn symbol(&self) -> Option<(&[u8], usize)> {
        (self.name.len > 0).then(|| (&self.name.text[..self.name.len], self.name.offset))
    }
}

/// `None`: no file's code, nor the kernel's.
#[inline(never)]
pub fn describe(address: usize) -> Option<Described> {
    describe_near(address, &mut None)
}

/// `last` often holds this one too.
fn describe_near(address: usize, last: &mut Option<Mapping>) -> Option<Described> {
    let saved = process::errno();
    let found = find(address, last);
    process::set_errno(saved);
    found
}

struct Mapping {
    start: usize,
    end: usize,
    offset: usize,
    path: PathText,
}

fn find(address: usize, last: &mut Option<Mapping>) -> Option<Described> {
    if last.as_ref().is_none_or(|m| !(m.start..m.end).contains(&address)) {
        *last = mapping_of(address);
    }
    let mapping = last.as_ref()?;
    let mut described = Described { path: mapping.path.clone(), offset: 0, name: Name::NONE };
    let in_file = address - mapping.start + mapping.offset;
    described.offset = in_file;
    if let Some(image) = elf::Image::open(mapping) {
        // The kernel's module is mapped at offset 0.
        described.offset = image.address(in_file).unwrap_or(in_file);
        image.name(described.offset, &mut described.name);
    }
    Some(described)
}

#[inline(never)]
fn mapping_of(address: usize) -> Option<Mapping> {
    maps::at(address, |m| {
        let path = (!m.name.is_empty()).then(|| PathText::new(m.name))??;
        Some(Mapping { start: m.start, end: m.end, offset: m.offset, path })
    })?
}

/// Innermost first: `craton:  #0 0x55d0c0de1139 main+0x1d (/path/prog+0x1139)`.
pub fn print_stack(stack: &[usize], mut print: impl FnMut(Line)) {
    let mut last = None;
    for (i, address) in stack.iter().enumerate() {
        print(frame(i, *address, &mut last));
    }
}

#[inline(never)]
fn frame(i: usize, address: usize, last: &mut Option<Mapping>) -> Line {
    const PATH: usize = 384;
    let line = Line::new().text("craton:     #").number(i as u64).text(" ").address(address);
    // The call before may be its function's last instruction.
    let Some(found) = describe_near(address.wrapping_sub(1), last) else { return line };
    let line = match found.symbol() {
        Some((name, offset)) => {
            let cut = if found.name.is_cut { "..." } else { "" };
            line.text(" ").bytes(name).text(cut).text("+").address(offset + 1)
        }
        None => line,
    };
    let path = found.path();
    let (cut, path) = match path.len().checked_sub(PATH) {
        Some(more) if more > 0 => ("...", &path[more..]),
        _ => ("", path),
    };
    line.text(" (").text(cut).bytes(path).text("+").address(found.offset() + 1).text(")")
}

#[cfg(test)]
mod tests;
