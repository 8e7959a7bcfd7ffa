//! Writes a core file, without files' instructions and read-only mappings marked `MADV_DONTDUMP`,
//! where the library has gigabytes of zeros.

use crate::core_file::{INFO_PID, STATUS_ID, STATUS_REGISTERS, STATUS_TAIL};
use crate::memory::{Held, MACHINE, Map, Memory};
use object::elf::{self, FileHeader64, Ident, NoteHeader32, ProgramHeader64};
use object::pod::bytes_of;
use object::{LittleEndian as LE, U16, U32, U64};
use std::fs::{self, File};
use std::io::{self, BufWriter, Write};
use std::os::unix::fs::FileExt;
use std::path::Path;

const PAGE: u64 = 4096;
/// Read at a time.
const PIECE: usize = 1 << 20;
const HEAD: usize = size_of::<FileHeader64<LE>>();
const HEADER: usize = size_of::<ProgramHeader64<LE>>();
/// The head's number of segments holds no more.
const MOST: usize = elf::PN_XNUM as usize - 1;
const INFO_BYTES: usize = 136;

/// # Errors
/// It cannot be written, or has too many mappings.
pub fn save(memory: &dyn Memory, path: &Path) -> Result<u64, String> {
    let fail =
        |e: io::Error| format!("cannot write {}: {e}; give a path where the core file can be written", path.display());
    // The kernel's mappings are partly unreadable, and hold no pointers.
    let left_out = memory.left_out();
    let is_in = |m: &&Map| m.readable && !m.path.starts_with("[v") && (m.writable || !left_out.contains(&m.start));
    let maps: Vec<&Map> = memory.maps().iter().filter(is_in).collect();
    if maps.len() >= MOST {
        let (name, n) = (memory.name(), maps.len());
        return Err(format!("{name} has {n} mappings, more than a core file written here can have"));
    }
    // A pipe would keep the process stopped until it has a reader.
    if fs::metadata(path).is_ok_and(|there| !there.is_file() && !there.is_dir()) {
        return Err(fail(io::Error::other("not an ordinary file")));
    }
    write(memory, &maps, File::create(path).map_err(fail)?).map_err(fail)
}

fn write(memory: &dyn Memory, maps: &[&Map], file: File) -> io::Result<u64> {
    let notes = notes(memory, maps);
    let mut out = BufWriter::new(file);
    let headers = maps.len() + 1;
    let notes_at = (HEAD + headers * HEADER) as u64;
    out.write_all(bytes_of(&head(headers as u16)))?;
    out.write_all(bytes_of(&header([elf::PT_NOTE, elf::PF_R], [notes_at, 0, notes.len() as u64, 0, 4])))?;
    // The linker may write addresses into read-only data before it protects them.
    let is_held = |map: &Map| !map.executable || !map.is_file();
    let first = (notes_at + notes.len() as u64).next_multiple_of(PAGE);
    let mut at = first;
    for map in maps {
        let flag = |is: bool, flag| if is { flag } else { 0 };
        let flags = elf::PF_R | flag(map.writable, elf::PF_W) | flag(map.executable, elf::PF_X);
        let len = map.end - map.start;
        let held = if is_held(map) { len } else { 0 };
        out.write_all(bytes_of(&header([elf::PT_LOAD, flags], [at, map.start, held, len, PAGE])))?;
        at += held;
    }
    out.write_all(&notes)?;
    let file = out.into_inner().map_err(io::IntoInnerError::into_error)?;
    let (mut at, mut bytes) = (first, 0);
    let mut buffer = vec![0; PIECE];
    for map in maps.iter().filter(|map| is_held(map)) {
        let mut from = map.start;
        while from < map.end {
            let place = at + (from - map.start);
            from += match memory.held(from) {
                Held::Zeros(zeros) => zeros,
                Held::Bytes(held) => {
                    let held = &held[..held.len().min((map.end - from) as usize)];
                    bytes += write_pages(&file, place, held)?;
                    held.len() as u64
                }
                Held::Elsewhere => {
                    let len = (map.end - from).min(buffer.len() as u64) as usize;
                    let got = memory.read(from, &mut buffer[..len]);
                    bytes += write_pages(&file, place, &buffer[..got])?;
                    if got == len { len as u64 } else { (got as u64) / PAGE * PAGE + PAGE }
                }
            };
        }
        at += map.end - map.start;
    }
    file.set_len(at)?;
    Ok(bytes)
}

/// Leaves out pages of zeros, which are holes of the file.
fn write_pages(file: &File, at: u64, bytes: &[u8]) -> io::Result<u64> {
    const ZEROS: [u8; PAGE as usize] = [0; PAGE as usize];
    let is_zero = |page: &[u8]| *page == ZEROS[..page.len()];
    let (mut written, mut start) = (0, 0);
    while start < bytes.len() {
        let pages = bytes[start..].chunks(PAGE as usize);
        let zeros: usize = pages.take_while(|page| is_zero(page)).map(<[u8]>::len).sum();
        start += zeros;
        let len: usize = bytes[start..].chunks(PAGE as usize).take_while(|page| !is_zero(page)).map(<[u8]>::len).sum();
        file.write_all_at(&bytes[start..start + len], at + start as u64)?;
        (start, written) = (start + len, written + len as u64);
    }
    Ok(written)
}

fn head(headers: u16) -> FileHeader64<LE> {
    let none = U16::new(LE, 0);
    FileHeader64 {
        e_ident: Ident {
            magic: elf::ELFMAG,
            class: elf::ELFCLASS64,
            data: elf::ELFDATA2LSB,
            version: elf::EV_CURRENT,
            os_abi: elf::ELFOSABI_NONE,
            abi_version: 0,
            padding: [0; 7],
        },
        e_type: U16::new(LE, elf::ET_CORE),
        e_machine: U16::new(LE, MACHINE),
        e_version: U32::new(LE, elf::EV_CURRENT.into()),
        e_entry: U64::new(LE, 0),
        e_phoff: U64::new(LE, HEAD as u64),
        e_shoff: U64::new(LE, 0),
        e_flags: U32::new(LE, 0),
        e_ehsize: U16::new(LE, HEAD as u16),
        e_phentsize: U16::new(LE, HEADER as u16),
        e_phnum: U16::new(LE, headers),
        e_shentsize: none,
        e_shnum: none,
        e_shstrndx: none,
    }
}

/// Offset, address, bytes in file and memory, alignment.
fn header([kind, flags]: [u32; 2], words: [u64; 5]) -> ProgramHeader64<LE> {
    let [p_offset, p_vaddr, p_filesz, p_memsz, p_align] = words.map(|word| U64::new(LE, word));
    let (p_type, p_flags, p_paddr) = (U32::new(LE, kind), U32::new(LE, flags), U64::new(LE, 0));
    ProgramHeader64 { p_type, p_flags, p_offset, p_vaddr, p_paddr, p_filesz, p_memsz, p_align }
}

fn notes(memory: &dyn Memory, maps: &[&Map]) -> Vec<u8> {
    let mut all = Vec::new();
    let mut info = vec![0; INFO_BYTES];
    info[INFO_PID..INFO_PID + 4].copy_from_slice(&memory.pid().to_le_bytes());
    note(&mut all, elf::NT_PRPSINFO, &info);
    for thread in memory.threads() {
        for (kind, set) in &thread.sets {
            match *kind {
                elf::NT_PRSTATUS => note(&mut all, elf::NT_PRSTATUS, &status(thread.id, set)),
                kind => note(&mut all, kind, set),
            }
        }
    }
    note(&mut all, elf::NT_AUXV, &memory.auxiliary());
    let files: Vec<&&Map> = maps.iter().filter(|map| map.is_file()).collect();
    let places = files.iter().flat_map(|map| [map.start, map.end, map.offset]);
    let mut list: Vec<u8> = [files.len() as u64, 1].into_iter().chain(places).flat_map(u64::to_le_bytes).collect();
    files.iter().for_each(|map| list.extend(map.path.bytes().chain([0])));
    note(&mut all, elf::NT_FILE, &list);
    all
}

fn status(id: u32, general: &[u8]) -> Vec<u8> {
    let mut status = vec![0; STATUS_REGISTERS];
    status[STATUS_ID..STATUS_ID + 4].copy_from_slice(&id.to_le_bytes());
    status.extend(general);
    status.extend([0; STATUS_TAIL]);
    status
}

fn note(all: &mut Vec<u8>, kind: u32, content: &[u8]) {
    let name = if (0x100..0x1000).contains(&kind) { elf::ELF_NOTE_LINUX } else { elf::ELF_NOTE_CORE };
    let [n_namesz, n_descsz, n_type] = [name.len() as u32 + 1, content.len() as u32, kind].map(|n| U32::new(LE, n));
    all.extend(bytes_of(&NoteHeader32 { n_namesz, n_descsz, n_type }));
    for part in [&[name, &[0]].concat(), content] {
        all.extend(part);
        all.resize(all.len().next_multiple_of(4), 0);
    }
}
