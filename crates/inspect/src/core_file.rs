//! An ELF core file, from the kernel or gcore. Pages that it omits come from mapped files; a
//! missing one is a warning, since written memory is in the core.

use crate::file_bytes::FileBytes;
use crate::memory::{Held, MACHINE, Map, Memory, Thread, words};
use crate::reader::{u32_in, word_in};
use object::elf::{
    self, FileHeader64, NT_ARM_SVE, NT_AUXV, NT_FILE, NT_PRFPREG, NT_PRPSINFO, NT_PRSTATUS, NT_X86_XSTATE,
    ProgramHeader64,
};
use object::read::elf::{FileHeader, ProgramHeader};
use object::{LittleEndian as LE, ReadCache};
use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, File};
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Offsets in a thread's status; and the bytes behind its registers.
pub(crate) const STATUS_ID: usize = 32;
pub(crate) const STATUS_REGISTERS: usize = 112;
pub(crate) const STATUS_TAIL: usize = 8;
pub(crate) const INFO_PID: usize = 24;
/// `AT_PHDR`.
const PROGRAM_HEADERS: u64 = 3;

#[derive(Clone, Copy, Debug)]
struct Segment {
    start: u64,
    end: u64,
    /// Behind the last byte that the core holds.
    held: u64,
    offset: u64,
    flags: u32,
}

#[derive(Clone, Debug)]
struct Mapped {
    start: u64,
    end: u64,
    offset: u64,
    path: String,
}

#[derive(Debug, Default)]
struct Notes {
    mapped: Vec<Mapped>,
    threads: Vec<Thread>,
    pid: u32,
    /// An address in the program's file.
    program: Option<u64>,
}

#[derive(Debug)]
pub struct CoreFile {
    name: String,
    file: File,
    bytes: Option<FileBytes>,
    segments: Vec<Segment>,
    notes: Notes,
    maps: Vec<Map>,
    opened: Mutex<BTreeMap<String, Option<File>>>,
    missing: Mutex<BTreeSet<String>>,
}

impl CoreFile {
    /// `exe` replaces the program's path.
    ///
    /// # Errors
    /// The file's defect.
    pub fn open(path: &Path, exe: Option<&Path>) -> Result<Self, String> {
        let name = path.display().to_string();
        // Opening a pipe would wait.
        if fs::metadata(path).is_ok_and(|there| !there.is_file()) {
            return Err(format!("{name}: not a file; give a core file, or --pid PID for a running process"));
        }
        let file = File::open(path).map_err(|e| {
            let is_number = name.bytes().all(|b| b.is_ascii_digit());
            let target = if is_number { format!("--pid {name}") } else { "--pid PID".to_owned() };
            format!("{name}: cannot be opened: {e}; give a core file, or {target} for a running process")
        })?;
        let (segments, mut notes) = read(&file).map_err(|what| format!("{name}: {what}"))?;
        if let (Some(exe), Some(at)) = (exe, notes.program) {
            let old = notes.mapped.iter().find(|m| (m.start..m.end).contains(&at)).map(|m| m.path.clone());
            let new = exe.to_str().ok_or("the program's path is not UTF-8")?;
            if fs::metadata(exe).is_ok_and(|there| !there.is_file()) {
                return Err(format!("--exe {new}: not a file; give the program's file"));
            }
            File::open(exe).map_err(|e| format!("--exe {new}: cannot be opened: {e}"))?;
            notes.mapped.iter_mut().filter(|m| Some(&m.path) == old.as_ref()).for_each(|m| m.path = new.to_owned());
        }
        let map = |segment: &Segment| {
            let mapped = notes.mapped.iter().find(|m| (m.start..m.end).contains(&segment.start));
            Map {
                start: segment.start,
                end: segment.end,
                readable: segment.flags & elf::PF_R != 0,
                writable: segment.flags & elf::PF_W != 0,
                executable: segment.flags & elf::PF_X != 0,
                offset: mapped.map_or(0, |m| m.offset + (segment.start - m.start)),
                path: mapped.map_or(String::new(), |m| m.path.clone()),
            }
        };
        let maps = segments.iter().map(map).collect();
        // Without it, reads do.
        let bytes = file.metadata().and_then(|is| FileBytes::new(&file, is.len() as usize)).ok();
        Ok(Self { name, file, bytes, segments, notes, maps, opened: Mutex::default(), missing: Mutex::default() })
    }

    fn read_file(&self, at: u64, into: &mut [u8]) -> usize {
        let i = self.notes.mapped.partition_point(|mapped| mapped.start <= at);
        let Some(mapped) = i.checked_sub(1).map(|i| &self.notes.mapped[i]).filter(|m| at < m.end) else { return 0 };
        let mut opened = lock(&self.opened);
        let file = opened.entry(mapped.path.clone()).or_insert_with(|| {
            // A replaced file's name ends in " (deleted)".
            let missing = |error| lock(&self.missing).insert(format!("{}: {error}", mapped.path));
            File::open(&mapped.path).map_err(missing).ok()
        });
        let len = (mapped.end - at).min(into.len() as u64) as usize;
        let Some(file) = file else { return 0 };
        let read = file.read_at(&mut into[..len], mapped.offset + (at - mapped.start)).unwrap_or(0);
        // Behind the file's end a mapping reads as zeros.
        into[read..len].fill(0);
        if read > 0 { len } else { 0 }
    }
}

/// A thread that died while it held the lock left whole values.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

fn read(file: &File) -> Result<(Vec<Segment>, Notes), String> {
    const DAMAGED: &str = "its head is damaged";
    let cut = |_| "the file ends before its head does; was it cut by `ulimit -c` or a full disk?";
    let length = file.metadata().map_err(|e| e.to_string())?.len();
    let mut magic = [0; elf::ELFMAG.len()];
    file.read_at(&mut magic, 0).map_err(|e| format!("cannot be read: {e}"))?;
    if magic != elf::ELFMAG {
        return Err(
            "not an ELF file; give a core file that the kernel, gcore or `craton core --pid PID save FILE` has written"
                .to_owned(),
        );
    }
    let data = ReadCache::new(file);
    let head = FileHeader64::<LE>::parse(&data).ok().filter(|head| head.e_machine(LE) == MACHINE);
    let head = head.ok_or("not of this kind of machine")?;
    if head.e_type(LE) != elf::ET_CORE {
        return Err("an ELF file, but no core; give the program by --exe, and the core first".to_owned());
    }
    if usize::from(head.e_phentsize(LE)) != size_of::<ProgramHeader64<LE>>() {
        return Err(DAMAGED.to_owned());
    }
    let (mut segments, mut notes) = (Vec::new(), Notes::default());
    for header in head.program_headers(LE, &data).map_err(cut)? {
        let start = header.p_vaddr(LE);
        if header.p_type(LE) == elf::PT_LOAD {
            let end = start.checked_add(header.p_memsz(LE)).ok_or(DAMAGED)?;
            let held = start.saturating_add(header.p_filesz(LE).min(header.p_memsz(LE)));
            segments.push(Segment { start, end, held, offset: header.p_offset(LE), flags: header.p_flags(LE) });
        }
        if let Some(mut all) = header.notes(LE, &data).map_err(cut)? {
            let next = || all.next().ok().flatten().map(|note| (note.n_type(LE), note.desc()));
            notes.read(std::iter::from_fn(next));
        }
    }
    segments.sort_by_key(|segment| segment.start);
    let held = segments.iter().filter(|s| s.held > s.start);
    let needed = held.map(|s| s.offset.saturating_add(s.held - s.start)).max();
    match needed.filter(|needed| *needed > length) {
        None => Ok((segments, notes)),
        Some(needed) => {
            Err(format!("truncated: it has {length} of {needed} bytes; was it cut by `ulimit -c` or a full disk?"))
        }
    }
}

impl Notes {
    fn read<'d>(&mut self, all: impl Iterator<Item = (u32, &'d [u8])>) {
        // They follow their thread's status.
        let mut threads = Vec::new();
        for (kind, content) in all {
            match kind {
                NT_PRSTATUS => {
                    let end = content.len().saturating_sub(STATUS_TAIL).max(STATUS_REGISTERS);
                    let registers = content.get(STATUS_REGISTERS..end).unwrap_or_default();
                    threads.push((u32_in(content, STATUS_ID), vec![(kind, registers.to_vec())]));
                }
                NT_PRFPREG | NT_X86_XSTATE | NT_ARM_SVE => {
                    threads
                        .last_mut()
                        .into_iter()
                        .for_each(|(_, sets): &mut (_, Vec<_>)| sets.push((kind, content.to_vec())));
                }
                NT_PRPSINFO => self.pid = u32_in(content, INFO_PID),
                NT_AUXV => {
                    let pairs: Vec<u64> = words(content).collect();
                    self.program = pairs.chunks_exact(2).find(|pair| pair[0] == PROGRAM_HEADERS).map(|pair| pair[1]);
                }
                NT_FILE => self.read_files(content),
                _ => {}
            }
        }
        self.threads.extend(threads.into_iter().map(|(id, sets)| Thread::new(id, sets)));
    }

    /// Count, unit of offsets, three words for each file, names.
    fn read_files(&mut self, content: &[u8]) {
        let (n, unit) = (word_in(content, 0), word_in(content, 8));
        let names_at = (n.min(content.len() as u64 / 24) * 24 + 16) as usize;
        let mut names = content.get(names_at..).unwrap_or_default().split(|b| *b == 0);
        for at in (16..names_at).step_by(24) {
            let (start, end, offset) = (word_in(content, at), word_in(content, at + 8), word_in(content, at + 16));
            let path = String::from_utf8_lossy(names.next().unwrap_or_default()).into_owned();
            self.mapped.push(Mapped { start, end, offset: offset.saturating_mul(unit.max(1)), path });
        }
        self.mapped.sort_by_key(|mapped| mapped.start);
    }
}

impl Memory for CoreFile {
    fn held(&self, at: u64) -> Held<'_> {
        let i = self.segments.partition_point(|segment| segment.start <= at);
        let segment = i.checked_sub(1).map(|i| self.segments[i]).filter(|segment| at < segment.held);
        let place = |segment: Segment| {
            let (from, to) = (segment.offset + (at - segment.start), segment.offset + (segment.held - segment.start));
            self.bytes.as_ref()?.bytes().get(from as usize..to as usize)
        };
        segment.and_then(place).map_or(Held::Elsewhere, Held::Bytes)
    }

    fn read(&self, at: u64, into: &mut [u8]) -> usize {
        let mut done = 0;
        while done < into.len() {
            let Some(here) = at.checked_add(done as u64) else { break };
            let i = self.segments.partition_point(|segment| segment.start <= here);
            let Some(segment) = i.checked_sub(1).map(|i| self.segments[i]).filter(|s| here < s.end) else { break };
            let held = here < segment.held;
            let end = if held { segment.held } else { segment.end };
            let len = (end - here).min((into.len() - done) as u64) as usize;
            let rest = &mut into[done..done + len];
            let got = match held {
                true => self.file.read_at(rest, segment.offset + (here - segment.start)).unwrap_or(0),
                false => self.read_file(here, rest),
            };
            if got == 0 {
                break;
            }
            done += got;
        }
        done
    }

    fn maps(&self) -> &[Map] {
        &self.maps
    }

    fn threads(&self) -> &[Thread] {
        &self.notes.threads
    }

    fn name(&self) -> String {
        self.name.clone()
    }

    fn pid(&self) -> u32 {
        self.notes.pid
    }

    fn warnings(&self) -> Vec<String> {
        let advice =
            "what the process only read of it is not known; --exe FILE names the program if it lies elsewhere now";
        let told = |what: &String| format!("a mapped file is not there: {what}; {advice}");
        lock(&self.missing).iter().map(told).collect()
    }
}
