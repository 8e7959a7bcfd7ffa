//! A core file of a process that stands still, as gcore writes it.
//!
//! **What.** The registers of each thread, the names of mapped files, and the bytes of every mapping but files' instructions, of which
//! it has the range only, and mappings that can only be read and that somebody wants in no core file: the library has gigabytes of zeros there.

use crate::memory::{MACHINE, Map, Memory};
use std::fs::File;
use std::io::{self, BufWriter, Seek, SeekFrom, Write};
use std::path::Path;

const PAGE: u64 = 4096;
const HEAD: u64 = 64;
const HEADER: u64 = 56;
/// More segments than this do not fit into the head's number.
const MOST: usize = 0xfffe;
/// Bytes of a thread's status before its registers and behind them.
const BEFORE: usize = 112;
const BEHIND: usize = 8;
const ID_AT: usize = 32;

/// Writes a core file; says how many bytes of memory it has.
///
/// # Errors
/// It cannot be written, or there are too many mappings.
pub fn save(memory: &dyn Memory, path: &Path) -> Result<u64, String> {
    let fail = |e: io::Error| format!("cannot write {}: {e}", path.display());
    // What the kernel maps into every process cannot all be read, and has no pointers of the program's.
    let left_out = memory.left_out();
    let is_in = |m: &&Map| m.readable && !m.path.starts_with("[v") && (m.writable || !left_out.contains(&m.start));
    let maps: Vec<&Map> = memory.maps().iter().filter(is_in).collect();
    if maps.len() >= MOST {
        return Err(format!(
            "{} has {} mappings, more than a core file written here can have",
            memory.name(),
            maps.len()
        ));
    }
    write(memory, &maps, File::create(path).map_err(fail)?).map_err(fail)
}

fn write(memory: &dyn Memory, maps: &[&Map], file: File) -> io::Result<u64> {
    let notes = notes(memory, maps);
    let mut out = BufWriter::new(file);
    let headers = maps.len() as u64 + 1;
    let notes_at = HEAD + headers * HEADER;
    let mut head = Vec::from(*b"\x7fELF\x02\x01\x01\0\0\0\0\0\0\0\0\0");
    for number in [4u16, MACHINE] {
        head.extend(number.to_le_bytes());
    }
    head.extend(1u32.to_le_bytes());
    for word in [0, HEAD, 0] {
        head.extend(word.to_le_bytes());
    }
    head.extend(0u32.to_le_bytes());
    for number in [HEAD as u16, HEADER as u16, headers as u16, 0, 0, 0] {
        head.extend(number.to_le_bytes());
    }
    out.write_all(&head)?;
    header(&mut out, [4, 4], [notes_at, 0, 0, notes.len() as u64, 0, 4])?;
    // What is only read may have been written once: the linker writes addresses there before it protects them.
    let is_held = |map: &Map| !map.executable || !map.is_file();
    let mut at = (notes_at + notes.len() as u64).next_multiple_of(PAGE);
    for map in maps {
        let flags = u32::from(map.executable) | u32::from(map.writable) << 1 | 4;
        let len = map.end - map.start;
        let held = if is_held(map) { len } else { 0 };
        header(&mut out, [1, flags], [at, map.start, 0, held, len, PAGE])?;
        at += held;
    }
    out.write_all(&notes)?;
    let mut file = out.into_inner().map_err(io::IntoInnerError::into_error)?;
    let (mut at, mut bytes) = ((notes_at + notes.len() as u64).next_multiple_of(PAGE), 0);
    let mut buffer = vec![0; 1 << 20];
    for map in maps.iter().filter(|map| is_held(map)) {
        let mut from = map.start;
        while from < map.end {
            let len = (map.end - from).min(buffer.len() as u64) as usize;
            let got = memory.read(from, &mut buffer[..len]);
            // What is zero, or cannot be read, is a hole.
            for (i, page) in buffer[..got].chunks(PAGE as usize).enumerate().filter(|(_, p)| p.iter().any(|b| *b != 0))
            {
                file.seek(SeekFrom::Start(at + (from - map.start) + (i as u64) * PAGE))?;
                file.write_all(page)?;
                bytes += page.len() as u64;
            }
            from += if got == len { len as u64 } else { (got as u64) / PAGE * PAGE + PAGE };
        }
        at += map.end - map.start;
    }
    file.set_len(at)?;
    Ok(bytes)
}

/// A program header: kind and flags; offset, address, physical address, bytes in the file and in memory, alignment.
fn header(out: &mut impl Write, kind: [u32; 2], words: [u64; 6]) -> io::Result<()> {
    for number in kind {
        out.write_all(&number.to_le_bytes())?;
    }
    words.iter().try_for_each(|word| out.write_all(&word.to_le_bytes()))
}

fn notes(memory: &dyn Memory, maps: &[&Map]) -> Vec<u8> {
    let mut all = Vec::new();
    // The process's number lies in what is called its information.
    let mut info = vec![0; 136];
    info[24..28].copy_from_slice(&memory.pid().to_le_bytes());
    note(&mut all, 3, &info);
    for thread in memory.threads() {
        for (kind, set) in &thread.sets {
            match kind {
                1 => note(&mut all, 1, &status(thread.id, set)),
                kind => note(&mut all, *kind, set),
            }
        }
    }
    note(&mut all, 6, &memory.auxiliary());
    let files: Vec<&&Map> = maps.iter().filter(|map| map.is_file()).collect();
    let mut list = Vec::new();
    for word in [files.len() as u64, 1] {
        list.extend(word.to_le_bytes());
    }
    for word in files.iter().flat_map(|map| [map.start, map.end, map.offset]) {
        list.extend(word.to_le_bytes());
    }
    for map in &files {
        list.extend(map.path.as_bytes());
        list.push(0);
    }
    note(&mut all, 0x4649_4c45, &list);
    all
}

fn status(id: u32, general: &[u8]) -> Vec<u8> {
    let mut status = vec![0; BEFORE];
    status[ID_AT..ID_AT + 4].copy_from_slice(&id.to_le_bytes());
    status.extend(general);
    status.extend([0; BEHIND]);
    status
}

fn note(all: &mut Vec<u8>, kind: u32, content: &[u8]) {
    // What is of one kind of machine alone bears another name.
    let name: &[u8; 8] = if kind > 0xff && kind < 0x1000 { b"LINUX\0\0\0" } else { b"CORE\0\0\0\0" };
    let len = name.iter().position(|b| *b == 0).unwrap_or(0) as u32 + 1;
    for number in [len, content.len() as u32, kind] {
        all.extend(number.to_le_bytes());
    }
    all.extend(name);
    all.extend(content);
    all.resize(all.len().next_multiple_of(4), 0);
}
