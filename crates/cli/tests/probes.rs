//! The library's static probes, read back from its file: docs/probes.md lists them.

use crate::common::library;
use object::read::elf::ElfFile64;
use object::{LittleEndian, Object, ObjectSection, SectionKind};
use std::collections::BTreeMap;
use std::fs;

#[derive(Debug)]
struct Note {
    location: u64,
    base: u64,
    semaphore: u64,
    provider: String,
    name: String,
    arguments: String,
}

fn word(bytes: &[u8], at: usize) -> u64 {
    u64::from_le_bytes(bytes[at..at + 8].try_into().unwrap())
}

fn half(bytes: &[u8], at: usize) -> usize {
    u32::from_le_bytes(bytes[at..at + 4].try_into().unwrap()) as usize
}

/// Each with its owner and type checked.
fn notes(mut bytes: &[u8]) -> Vec<Note> {
    let mut found = Vec::new();
    while bytes.len() >= 12 {
        let (name_len, len, kind) = (half(bytes, 0), half(bytes, 4), half(bytes, 8));
        let owner = &bytes[12..12 + name_len];
        assert_eq!((owner, kind), (&b"stapsdt\0"[..], 3));
        let from = 12 + name_len.next_multiple_of(4);
        let rest = &bytes[from..from + len];
        let mut texts = rest[24..].split(|byte| *byte == 0).map(|text| String::from_utf8(text.to_vec()).unwrap());
        let mut text = || texts.next().unwrap();
        let (provider, name, arguments) = (text(), text(), text());
        let (location, base, semaphore) = (word(rest, 0), word(rest, 8), word(rest, 16));
        found.push(Note { location, base, semaphore, provider, name, arguments });
        bytes = &bytes[from + len.next_multiple_of(4)..];
    }
    found
}

/// Names and numbers of arguments by the table in the documents.
fn documented() -> BTreeMap<String, usize> {
    let text = fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/probes.md")).unwrap();
    let cells = |line: &str| line.split('|').map(|cell| cell.trim().to_owned()).collect::<Vec<_>>();
    let rows = text.lines().filter(|line| line.starts_with("| `")).map(cells);
    rows.map(|row| (row[1].trim_matches('`').to_owned(), row[3].split(", ").count())).collect()
}

#[test]
fn each_documented_probe_is_a_nop_in_the_code_with_its_arguments_in_registers() {
    let bytes = fs::read(library()).unwrap();
    let file = ElfFile64::<LittleEndian, _>::parse(&*bytes).unwrap();
    let section = file.section_by_name(".note.stapsdt").expect("the library has notes of probes");
    let base = file.section_by_name(".stapsdt.base").expect("and the section that they refer to");
    let mut counts: BTreeMap<String, usize> = BTreeMap::new();
    for note in notes(section.data().unwrap()) {
        assert_eq!((note.provider.as_str(), note.semaphore), ("craton", 0), "{note:?}");
        assert_eq!(note.base, base.address(), "{note:?}");
        let code = file.sections().find(|s| (s.address()..s.address() + s.size()).contains(&note.location));
        let code =
            code.filter(|s| s.kind() == SectionKind::Text).unwrap_or_else(|| panic!("not in the code: {note:?}"));
        let nop: &[u8] = if cfg!(target_arch = "x86_64") { &[0x90] } else { &[0x1f, 0x20, 0x03, 0xd5] };
        assert_eq!(code.data_range(note.location, nop.len() as u64).unwrap(), Some(nop), "{note:?}");
        let operands: Vec<&str> = note.arguments.split(' ').collect();
        let is_register = |operand: &&str| {
            let name = operand.strip_prefix("8@").unwrap_or_default();
            let name = if cfg!(target_arch = "x86_64") { name.strip_prefix("%r") } else { name.strip_prefix('x') };
            name.is_some_and(|name| name.bytes().all(|b| b.is_ascii_alphanumeric()))
        };
        assert!(operands.iter().all(is_register), "{note:?}");
        let known = counts.entry(note.name.clone()).or_insert(operands.len());
        assert_eq!(*known, operands.len(), "{note:?}");
    }
    assert_eq!(counts, documented());
}
