//! Core files of a made-up process, and errors.

use crate::memory::{Map, Memory, STACK_AT, Thread};
use crate::{CoreFile, Heap, save};
use std::fs;
use std::path::PathBuf;

struct Made {
    parts: Vec<Vec<u8>>,
    maps: Vec<Map>,
    threads: Vec<Thread>,
}

impl Made {
    fn new(parts: Vec<(u64, Vec<u8>)>) -> Self {
        let map = |(start, bytes): &(u64, Vec<u8>)| Map {
            start: *start,
            end: start + bytes.len() as u64,
            readable: true,
            writable: true,
            executable: false,
            offset: 0,
            path: String::new(),
        };
        let maps = parts.iter().map(map).collect();
        let mut general = vec![0; STACK_AT + 64];
        general[STACK_AT..STACK_AT + 8].copy_from_slice(&0x1_0100u64.to_le_bytes());
        let sets = vec![(1, general), (2, vec![7; 512])];
        Self {
            parts: parts.into_iter().map(|(_, bytes)| bytes).collect(),
            maps,
            threads: vec![Thread::new(4711, sets)],
        }
    }
}

impl Memory for Made {
    fn read(&self, at: u64, into: &mut [u8]) -> usize {
        let Some(i) = self.maps.iter().position(|map| map.contains(at)) else { return 0 };
        let rest = &self.parts[i][(at - self.maps[i].start) as usize..];
        let len = rest.len().min(into.len());
        into[..len].copy_from_slice(&rest[..len]);
        len
    }

    fn maps(&self) -> &[Map] {
        &self.maps
    }

    fn threads(&self) -> &[Thread] {
        &self.threads
    }

    fn name(&self) -> String {
        "a made-up process".to_owned()
    }

    fn pid(&self) -> u32 {
        4712
    }
}

struct Place(PathBuf);

impl Place {
    fn new(name: &str) -> Self {
        Self(std::env::temp_dir().join(format!("craton-inspect-{name}-{}", std::process::id())))
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.0);
    }
}

fn page(first: u8) -> Vec<u8> {
    (0..4096u32).map(|i| first.wrapping_add((i / 16) as u8)).collect()
}

#[test]
fn a_saved_core_has_memory_threads_and_number() {
    let place = Place::new("saved");
    let two = [page(1), vec![0; 4096], page(9)].concat();
    let made = Made::new(vec![(0x1_0000, two.clone()), (0x7f00_0000_0000, page(3))]);
    assert_eq!(save(&made, &place.0), Ok(3 * 4096), "a page of zeros is a hole");
    let core = CoreFile::open(&place.0, None).unwrap();
    assert_eq!((core.pid(), core.maps().len()), (4712, 2));
    assert_eq!(core.threads(), made.threads());
    assert_eq!(core.threads()[0].stack, 0x1_0100);
    let mut bytes = vec![0xaa; 3 * 4096];
    assert_eq!(core.read(0x1_0000, &mut bytes), bytes.len());
    assert_eq!(bytes, two);
    assert_eq!(core.read(0x7f00_0000_0ff0, &mut bytes), 16, "it ends there");
    assert_eq!(core.read(0x9_0000, &mut bytes), 0);
}

#[test]
fn what_is_wrong_with_a_core_is_told() {
    let place = Place::new("wrong");
    let made = Made::new(vec![(0x1_0000, [page(1), page(2)].concat())]);
    save(&made, &place.0).unwrap();
    let whole = fs::read(&place.0).unwrap();
    let error = |bytes: &[u8]| {
        fs::write(&place.0, bytes).unwrap();
        CoreFile::open(&place.0, None).unwrap_err()
    };
    assert!(error(&whole[..whole.len() - 1]).contains("truncated"));
    assert!(error(&whole[..70]).contains("ends before its head"));
    assert!(error(b"").contains("not an ELF file"));
    assert!(error(b"text").contains("not an ELF file"));
    let mut other = whole.clone();
    other[16] = 3;
    assert!(error(&other).contains("no core"));
    other[18] = 0xff;
    assert!(error(&other).contains("kind of machine"));
    assert!(CoreFile::open(&std::env::temp_dir(), None).unwrap_err().contains("not a file"));
}

fn table(version: u32, entries: &[(&str, u64)]) -> Vec<u8> {
    let mut all = b"\0CRATONI".to_vec();
    let bytes = 48 + entries.len() * 40;
    for number in [version, bytes as u32, 48, entries.len() as u32, 40, 48, 0, 24, 0, 0] {
        all.extend(number.to_le_bytes());
    }
    for (name, value) in entries {
        let mut field = [0; 32];
        field[..name.len()].copy_from_slice(name.as_bytes());
        all.extend(field);
        all.extend(value.to_le_bytes());
    }
    all.resize(4096, 0);
    all
}

fn why_not(bytes: Vec<u8>) -> String {
    let made = Made::new(vec![(0x1_0000, bytes)]);
    Heap::find(&made).err().expect("there is no heap")
}

#[test]
fn memory_without_a_heap_is_told_from_that_of_another_release() {
    assert!(why_not(page(0)).contains("not running on Craton"));
    let text = why_not(table(2, &[]));
    assert!(text.contains("version 2") && text.contains("reads version 1"), "{text}");
    // Neither a copy elsewhere counts, nor impossible sizes.
    assert!(why_not(table(1, &[("self", 0x2_0000)])).contains("not running on Craton"));
    let text = why_not(table(1, &[("self", 0x1_0000)]));
    assert!(text.contains("served no request"), "{text}");
}

#[test]
fn an_entry_that_is_missing_is_named() {
    let entries = [("self", 0x1_0000), ("heap", 0x1_0800), ("heap.layout", 0), ("layout.base", 0)];
    let mut bytes = table(1, &entries);
    bytes[0x800] = 1;
    let text = why_not(bytes);
    assert!(text.contains("no entry \"layout.factor\""), "{text}");
}
