//! Functions and variables by address, from the symbols of the files on disk.
//!
//! **What.** For a function the byte before a return address is looked up. Without a symbol: file
//! and offset, as `addr2line` takes them; outside of files, the address.
//!
//! **Failure.** A file that is gone or was replaced has no names, or wrong ones.

use crate::call::Call;
use crate::demangle::demangled;
use crate::lines::Lines;
use crate::mapped;
use crate::memory::{Map, Memory};
use object::read::elf::ElfFile64;
use object::{LittleEndian, Object, ObjectSegment, ObjectSymbol, SymbolKind};
use std::cell::RefCell;
use std::collections::HashMap;
use std::path::{Path, PathBuf};

/// In the file's numbering.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Function {
    at: u64,
    bytes: u64,
    pub(crate) name: String,
}

#[derive(Debug, Default)]
pub(crate) struct Image {
    /// Offset in the file, bytes, and address in the file's numbering.
    loaded: Vec<(u64, u64, u64)>,
    functions: Vec<Function>,
    /// Variables, tables of virtual functions, constants.
    data: Vec<Function>,
}

impl Image {
    pub(crate) fn parse(file: &[u8]) -> Option<Self> {
        let file = ElfFile64::<LittleEndian, _>::parse(file).ok()?;
        let of_kind = |kind| {
            let symbols = file.symbols().chain(file.dynamic_symbols());
            let wanted = symbols.filter(|s| s.kind() == kind && s.address() != 0 && !s.is_undefined());
            let mut all: Vec<_> = wanted
                .map(|symbol| {
                    let name = String::from_utf8_lossy(symbol.name_bytes().unwrap_or_default()).into_owned();
                    Function { at: symbol.address(), bytes: symbol.size(), name }
                })
                .collect();
            // Of several names of one place the longest one's comes last; among equals the
            // alphabetically first.
            all.sort_by(|a, b| (a.at, a.bytes, &b.name).cmp(&(b.at, b.bytes, &a.name)));
            all
        };
        let (functions, data) = (of_kind(SymbolKind::Text), of_kind(SymbolKind::Data));
        let place = |(from, bytes): (u64, u64), at| (from, bytes, at);
        let loaded = file.segments().map(|segment| place(segment.file_range(), segment.address())).collect();
        Some(Self { loaded, functions, data })
    }

    pub(crate) fn address(&self, in_file: u64) -> Option<u64> {
        let (from, _, at) = self.loaded.iter().find(|(from, len, _)| in_file.wrapping_sub(*from) < *len)?;
        Some(at.wrapping_add(in_file - from))
    }

    pub(crate) fn function(&self, at: u64) -> Option<&Function> {
        around(&self.functions, at)
    }

    /// The address of a place behind a mapping's part of the file, where variables without a value
    /// lie: by the last segment that begins before `offset`, which is writable.
    fn behind(&self, offset: u64, into: u64) -> Option<u64> {
        let before = self.loaded.iter().filter(|(from, bytes, _)| from & !0xfff <= offset && *bytes > 0);
        let (from, _, at) = before.max_by_key(|(from, ..)| *from)?;
        Some(at.wrapping_add(offset + into).wrapping_sub(*from))
    }
}

fn around(all: &[Function], at: u64) -> Option<&Function> {
    let i = all.partition_point(|symbol| symbol.at <= at).checked_sub(1)?;
    (all[i].bytes == 0 || at - all[i].at < all[i].bytes).then(|| &all[i])
}

pub struct Names<'m> {
    memory: &'m dyn Memory,
    root: Option<PathBuf>,
    lines: RefCell<Lines<'m>>,
    images: RefCell<HashMap<String, Option<Image>>>,
}

impl<'m> Names<'m> {
    pub fn new(memory: &'m dyn Memory) -> Self {
        let root = memory.root();
        let lines = RefCell::new(Lines::new(memory.maps()).with_root(root.clone()));
        Self { memory, root, lines, images: RefCell::new(HashMap::new()) }
    }

    /// The variable or function at an address, and the distance from its start.
    pub fn symbol(&self, at: u64) -> Option<(String, u64)> {
        let maps = self.memory.maps();
        let i = maps.partition_point(|map| map.start <= at).checked_sub(1).filter(|i| maps[*i].contains(at))?;
        // Variables without a value lie in anonymous memory behind the file's.
        let follows = |i: &usize| *i > 0 && maps[*i].path.is_empty() && maps[*i - 1].end == maps[*i].start;
        let map = maps.get(if follows(&i) { i - 1 } else { i }).filter(|map| map.is_file())?;
        let mut images = self.images.borrow_mut();
        let image = images.entry(map.path.clone()).or_insert_with(|| self.image(map));
        let image = image.as_ref()?;
        let (offset, into) = (map.offset, at - map.start);
        let address = image.address(offset + into).or_else(|| image.behind(offset, into))?;
        // Marks of sections have no size.
        let variable = around(&image.data, address).filter(|symbol| symbol.bytes > 0);
        let function = || image.function(address).filter(|symbol| symbol.bytes > 0 && !map.writable);
        let symbol = variable.or_else(function)?;
        Some((demangled(&symbol.name), address - symbol.at))
    }

    fn image(&self, map: &Map) -> Option<Image> {
        map.is_file().then(|| Image::parse(&mapped::read(self.root.as_deref(), Path::new(&map.path))?)).flatten()
    }

    /// The calls of a stack, innermost first, inlined ones as well: `0x55d1c0a4b139 put(int)
    /// grow.cpp:9`, or without a line as [`Self::in_file`]. It begins behind those of the
    /// language's library, which allocate for their caller.
    pub fn stack(&self, stack: impl IntoIterator<Item = u64>) -> Vec<String> {
        let calls: Vec<(bool, String)> = stack.into_iter().flat_map(|pc| self.calls(pc)).collect();
        let own = calls.iter().position(|(is_of_language, _)| !is_of_language).unwrap_or(0);
        calls.into_iter().skip(own).map(|(_, text)| text).collect()
    }

    /// Each with whether it is of the language's library.
    fn calls(&self, pc: u64) -> Vec<(bool, String)> {
        let mut lines = self.lines.borrow_mut();
        let frames = lines.frames(pc);
        let has_lines = frames.iter().any(|frame| frame.file.is_some());
        let text = |call: &Call| match call.place() {
            Some(place) => format!("{pc:#x} {} {place}", call.function),
            None if has_lines => format!("{pc:#x} {}", call.function),
            None => self.in_file(pc),
        };
        frames.iter().map(Call::of).map(|call| (call.is_of_language(), text(&call))).collect()
    }

    /// `0x55d1c0a4b139 main+0x1d (/home/me/program+0x1139)`.
    fn in_file(&self, pc: u64) -> String {
        let at = pc.wrapping_sub(1);
        let map = self.memory.map_at(at);
        let Some(map) = map.filter(|map| !map.path.is_empty()) else { return format!("{pc:#x}") };
        let in_file = at - map.start + map.offset;
        let mut images = self.images.borrow_mut();
        let image = images.entry(map.path.clone()).or_insert_with(|| self.image(map));
        let address = image.as_ref().and_then(|image| image.address(in_file)).unwrap_or(in_file);
        let place = format!("({}+{:#x})", map.path, address + 1);
        match image.as_ref().and_then(|image| image.function(address)) {
            Some(function) => {
                format!("{pc:#x} {}+{:#x} {place}", demangled(&function.name), address + 1 - function.at)
            }
            None => format!("{pc:#x} {place}"),
        }
    }
}

#[cfg(test)]
mod tests;
