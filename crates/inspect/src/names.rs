//! Functions by address, from the symbols of the files on disk.
//!
//! **What.** An address is that of a return: what is looked up is the byte before it. What has no name is the file and the place in it, as
//! `addr2line` takes it; what lies in no file is the address alone.
//!
//! **Failure.** A file that is gone or was replaced gives no names, or wrong ones.
//!
//! **Cost.** A file is read once, when an address in it is first asked for.

use crate::memory::Memory;
use crate::reader::{u16_in, u32_in, word_in};
use std::cell::RefCell;
use std::collections::HashMap;

/// Kinds of sections and symbols in ELF files.
const SYMBOLS: u32 = 2;
const DYNAMIC_SYMBOLS: u32 = 11;
const FUNCTION: u8 = 2;
const INDIRECT_FUNCTION: u8 = 10;
const LOAD: u32 = 1;

/// A function: where it begins and how long it is, in the file's own numbering.
#[derive(Debug, PartialEq, Eq)]
struct Function {
    at: u64,
    bytes: u64,
    name: String,
}

/// A file of code.
#[derive(Debug, Default)]
struct Image {
    /// What is loaded: place in the file, bytes, and address in the file's own numbering.
    loaded: Vec<(u64, u64, u64)>,
    functions: Vec<Function>,
}

impl Image {
    fn parse(file: &[u8]) -> Option<Self> {
        if !file.starts_with(b"\x7fELF\x02\x01") {
            return None;
        }
        let (segments, sections) = (word_in(file, 32) as usize, word_in(file, 40) as usize);
        let mut this = Self::default();
        for i in 0..usize::from(u16_in(file, 56)) {
            let Some(header) = file.get(segments.checked_add(i * usize::from(u16_in(file, 54)))?..) else { break };
            if u32_in(header, 0) == LOAD {
                this.loaded.push((word_in(header, 8), word_in(header, 32), word_in(header, 16)));
            }
        }
        let section_bytes = usize::from(u16_in(file, 58));
        let section = |i: usize| {
            let header = file.get(sections.checked_add(i.checked_mul(section_bytes)?)?..)?;
            let (from, len) = (word_in(header, 24) as usize, word_in(header, 32) as usize);
            Some((u32_in(header, 4), u32_in(header, 40) as usize, file.get(from..from.checked_add(len)?)?))
        };
        for i in 0..usize::from(u16_in(file, 60)) {
            let Some((kind, texts, symbols)) = section(i) else { continue };
            if kind != SYMBOLS && kind != DYNAMIC_SYMBOLS {
                continue;
            }
            let Some((_, _, texts)) = section(texts) else { continue };
            for symbol in symbols.chunks_exact(24) {
                let (kind, at) = (symbol[4] & 15, word_in(symbol, 8));
                if at == 0 || u16_in(symbol, 6) == 0 || kind != FUNCTION && kind != INDIRECT_FUNCTION {
                    continue;
                }
                let text = texts.get(u32_in(symbol, 0) as usize..).unwrap_or_default();
                let name: Vec<u8> = text.iter().copied().take_while(|b| *b != 0).collect();
                let name = String::from_utf8_lossy(&name).into_owned();
                this.functions.push(Function { at, bytes: word_in(symbol, 16), name });
            }
        }
        // Of several names of one place the longest function's comes last, and among equals the first by the alphabet.
        this.functions.sort_by(|a, b| (a.at, a.bytes, &b.name).cmp(&(b.at, b.bytes, &a.name)));
        Some(this)
    }

    /// The address in the file's own numbering of a place in the file.
    fn address(&self, in_file: u64) -> Option<u64> {
        let (from, _, at) = self.loaded.iter().find(|(from, len, _)| in_file.wrapping_sub(*from) < *len)?;
        Some(at.wrapping_add(in_file - from))
    }

    fn function(&self, at: u64) -> Option<&Function> {
        let i = self.functions.partition_point(|function| function.at <= at).checked_sub(1)?;
        let function = &self.functions[i];
        (function.bytes == 0 || at - function.at < function.bytes).then_some(function)
    }
}

/// Names of a process's functions.
pub struct Names<'m> {
    memory: &'m dyn Memory,
    images: RefCell<HashMap<String, Option<Image>>>,
}

impl<'m> Names<'m> {
    /// None looked up yet.
    pub fn new(memory: &'m dyn Memory) -> Self {
        Self { memory, images: RefCell::new(HashMap::new()) }
    }

    /// A frame such as `0x55d1c0a4b139 main+0x1d (/home/me/program+0x1139)`.
    pub fn describe(&self, pc: u64) -> String {
        let at = pc.wrapping_sub(1);
        let map = self.memory.maps().iter().find(|map| map.contains(at));
        let Some(map) = map.filter(|map| !map.path.is_empty()) else { return format!("{pc:#x}") };
        let in_file = at - map.start + map.offset;
        let mut images = self.images.borrow_mut();
        let image = images
            .entry(map.path.clone())
            .or_insert_with(|| if map.is_file() { Image::parse(&std::fs::read(&map.path).ok()?) } else { None });
        let address = image.as_ref().and_then(|image| image.address(in_file)).unwrap_or(in_file);
        let place = format!("({}+{:#x})", map.path, address + 1);
        match image.as_ref().and_then(|image| image.function(address)) {
            Some(function) => format!("{pc:#x} {}+{:#x} {place}", function.name, address + 1 - function.at),
            None => format!("{pc:#x} {place}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::memory::{Map, Thread};

    struct Own(Vec<Map>);

    impl Memory for Own {
        fn read(&self, _: u64, _: &mut [u8]) -> usize {
            0
        }
        fn maps(&self) -> &[Map] {
            &self.0
        }
        fn threads(&self) -> &[Thread] {
            &[]
        }
        fn name(&self) -> String {
            "this process".to_owned()
        }
        fn pid(&self) -> u32 {
            std::process::id()
        }
        fn warnings(&self) -> Vec<String> {
            Vec::new()
        }
    }

    #[unsafe(no_mangle)]
    extern "C" fn craton_inspect_names_function(n: u64) -> u64 {
        std::hint::black_box(n) + 1
    }

    #[test]
    fn functions_of_this_program_have_their_names() {
        let text = std::fs::read_to_string("/proc/self/maps").unwrap();
        let own = Own(text.lines().filter_map(crate::live::parse).collect());
        let names = Names::new(&own);
        let pc = craton_inspect_names_function as *const () as u64 + 3;
        let said = names.describe(pc);
        assert!(said.starts_with(&format!("{pc:#x} craton_inspect_names_function+0x3 (/")), "{said}");
        assert_eq!(names.describe(1), "0x1");
    }

    #[test]
    fn what_is_no_such_file_has_no_names() {
        assert!(Image::parse(b"#!/bin/sh").is_none());
        let mut header = vec![0xff; 64];
        header[..6].copy_from_slice(b"\x7fELF\x02\x01");
        assert!(Image::parse(&header).is_none_or(|image| image.functions.is_empty()), "numbers that lead nowhere");
    }
}
