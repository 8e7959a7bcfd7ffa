//! What is left of a process: an ELF core file, as the kernel or gcore writes it.
//!
//! **What.** Memory from its `PT_LOAD` segments; threads from its notes; where a page was left out because a file has it, that file's bytes, by
//! the note that names the mapped files. The program itself may have another path by now: `exe`.
//!
//! **Failure.** A file that is no core of this machine, or shorter than its head says. A mapped file that is not there is a
//! warning: most of what is looked for was written by the process and is in the core.

use crate::memory::{MACHINE, Map, Memory, Thread, words};
use crate::reader::{u16_in, u32_in, word_in};
use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::Path;

const LOAD: u32 = 1;
const NOTE: u32 = 4;
const CORE: u16 = 4;
/// In the place of the number of segments, when it is too large for it.
const MANY: u16 = 0xffff;
const STATUS: u32 = 1;
const FLOATING: u32 = 2;
const INFO: u32 = 3;
const AUXILIARY: u32 = 6;
const FILES: u32 = 0x4649_4c45;
/// Sets of vector registers, of both machines.
const VECTORS: [u32; 2] = [0x202, 0x405];
/// Where a thread's number and its general registers lie in its status, in bytes, and how much follows them.
const STATUS_ID: usize = 32;
const STATUS_REGISTERS: usize = 112;
const STATUS_TAIL: usize = 8;
/// The auxiliary value that is the address of the program's own head.
const PROGRAM_HEADERS: u64 = 3;

/// Bytes of memory that the core has.
#[derive(Clone, Copy, Debug)]
struct Segment {
    start: u64,
    end: u64,
    /// Behind the last byte that the core has itself.
    held: u64,
    offset: u64,
    flags: u32,
}

/// A mapped file.
#[derive(Clone, Debug)]
struct Mapped {
    start: u64,
    end: u64,
    /// Where in the file, in bytes.
    offset: u64,
    path: String,
}

/// A core file.
#[derive(Debug)]
pub struct CoreFile {
    name: String,
    file: File,
    segments: Vec<Segment>,
    mapped: Vec<Mapped>,
    maps: Vec<Map>,
    threads: Vec<Thread>,
    pid: u32,
    /// Files that have been opened; `None` could not be.
    opened: RefCell<BTreeMap<String, Option<File>>>,
    missing: RefCell<BTreeSet<String>>,
}

impl CoreFile {
    /// Opens a core file; `exe` is the program that it is of, where that lies elsewhere now.
    ///
    /// # Errors
    /// What is wrong with the file.
    pub fn open(path: &Path, exe: Option<&Path>) -> Result<Self, String> {
        let name = path.display().to_string();
        let fail = |what: &str| format!("{name}: {what}");
        let file = File::open(path).map_err(|e| fail(&format!("cannot be opened: {e}")))?;
        let length = file.metadata().map_err(|e| fail(&e.to_string()))?;
        if !length.is_file() {
            return Err(fail("not a file; give a core file, or --pid PID for a running process"));
        }
        let length = length.len();
        let bytes = |at: u64, len: u64| {
            if at.checked_add(len).is_none_or(|end| end > length) {
                let text = "the file ends before its head does; was it cut by `ulimit -c` or a full disk?";
                return Err(fail(text));
            }
            let mut bytes = vec![0; len as usize];
            file.read_exact_at(&mut bytes, at).map_err(|e| fail(&format!("cannot be read: {e}")))?;
            Ok(bytes)
        };
        let head = bytes(0, 64.min(length))?;
        if !head.starts_with(b"\x7fELF") {
            return Err(fail(
                "not an ELF file; give a core file that the kernel, gcore or `craton core --pid PID save FILE` has written",
            ));
        }
        if head.len() < 64 || head[4] != 2 || head[5] != 1 || u16_in(&head, 18) != MACHINE {
            return Err(fail("not of this kind of machine"));
        }
        if u16_in(&head, 16) != CORE {
            return Err(fail("an ELF file, but no core; give the program by --exe, and the core first"));
        }
        let (at, each) = (word_in(&head, 32), u64::from(u16_in(&head, 54)));
        let many = match u16_in(&head, 56) {
            MANY => u32_in(&bytes(word_in(&head, 40), 64)?, 44).into(),
            n => u64::from(n),
        };
        if each < 56 || many > 1 << 24 {
            return Err(fail("its head is damaged"));
        }
        let headers = bytes(at, many * each)?;
        let (mut segments, mut notes) = (Vec::new(), Vec::new());
        for header in headers.chunks_exact(each as usize) {
            let (offset, start) = (word_in(header, 8), word_in(header, 16));
            let (held, len) = (word_in(header, 32), word_in(header, 40));
            match u32_in(header, 0) {
                LOAD => {
                    let end = start.checked_add(len).ok_or_else(|| fail("its head is damaged"))?;
                    let held_to = start.saturating_add(held.min(len));
                    segments.push(Segment { start, end, held: held_to, offset, flags: u32_in(header, 4) });
                }
                NOTE => notes.push(bytes(offset, held)?),
                _ => {}
            }
        }
        segments.sort_by_key(|segment| segment.start);
        let needed = segments.iter().filter(|s| s.held > s.start).map(|s| s.offset + (s.held - s.start)).max();
        if let Some(needed) = needed.filter(|needed| *needed > length) {
            return Err(fail(&format!(
                "truncated: it has {length} of {needed} bytes; was it cut by `ulimit -c` or a full disk?"
            )));
        }
        let mut this = Self {
            name,
            file,
            segments,
            mapped: Vec::new(),
            maps: Vec::new(),
            threads: Vec::new(),
            pid: 0,
            opened: RefCell::default(),
            missing: RefCell::default(),
        };
        let mut program = None;
        notes.iter().for_each(|note| this.read_notes(note, &mut program));
        if let (Some(exe), Some(at)) = (exe, program) {
            let old = this.mapped.iter().find(|m| (m.start..m.end).contains(&at)).map(|m| m.path.clone());
            let new = exe.to_str().ok_or("the program's path is not UTF-8")?;
            File::open(exe).map_err(|e| format!("--exe {new}: cannot be opened: {e}"))?;
            this.mapped.iter_mut().filter(|m| Some(&m.path) == old.as_ref()).for_each(|m| m.path = new.to_owned());
        }
        this.make_maps();
        Ok(this)
    }

    fn read_notes(&mut self, mut rest: &[u8], program: &mut Option<u64>) {
        // Registers that are not general follow the status of their thread.
        let mut thread = None::<(u32, Vec<(u32, Vec<u8>)>)>;
        while rest.len() >= 12 {
            let (name, len, kind) = (u32_in(rest, 0) as usize, u32_in(rest, 4) as usize, u32_in(rest, 8));
            let from = 12 + name.next_multiple_of(4);
            let Some(content) = rest.get(from..from.saturating_add(len)) else { break };
            match kind {
                STATUS => {
                    self.threads.extend(thread.take().map(|(id, sets)| Thread::new(id, sets)));
                    let end = content.len().saturating_sub(STATUS_TAIL).max(STATUS_REGISTERS);
                    let registers = content.get(STATUS_REGISTERS..end).unwrap_or_default();
                    thread = Some((u32_in(content, STATUS_ID), vec![(STATUS, registers.to_vec())]));
                }
                kind if kind == FLOATING || VECTORS.contains(&kind) => {
                    if let Some((_, sets)) = &mut thread {
                        sets.push((kind, content.to_vec()));
                    }
                }
                INFO => self.pid = u32_in(content, 24),
                AUXILIARY => {
                    let pairs: Vec<u64> = words(content).collect();
                    *program = pairs.chunks_exact(2).find(|pair| pair[0] == PROGRAM_HEADERS).map(|pair| pair[1]);
                }
                FILES => self.read_files(content),
                _ => {}
            }
            let next = from.saturating_add(len.next_multiple_of(4));
            rest = rest.get(next..).unwrap_or_default();
        }
        self.threads.extend(thread.map(|(id, sets)| Thread::new(id, sets)));
    }

    /// The note of mapped files: their number, the unit of offsets, three words for each, and their names.
    fn read_files(&mut self, content: &[u8]) {
        let (n, unit) = (word_in(content, 0), word_in(content, 8));
        let names_at = (n.min(content.len() as u64 / 24) * 24 + 16) as usize;
        let mut names = content.get(names_at..).unwrap_or_default().split(|b| *b == 0);
        for i in 0..(names_at - 16) / 24 {
            let at = 16 + i * 24;
            let (start, end, offset) = (word_in(content, at), word_in(content, at + 8), word_in(content, at + 16));
            let path = String::from_utf8_lossy(names.next().unwrap_or_default()).into_owned();
            self.mapped.push(Mapped { start, end, offset: offset.saturating_mul(unit.max(1)), path });
        }
        self.mapped.sort_by_key(|mapped| mapped.start);
    }

    fn make_maps(&mut self) {
        let map = |segment: &Segment| {
            let mapped = self.mapped.iter().find(|m| (m.start..m.end).contains(&segment.start));
            Map {
                start: segment.start,
                end: segment.end,
                readable: segment.flags & 4 != 0,
                writable: segment.flags & 2 != 0,
                executable: segment.flags & 1 != 0,
                offset: mapped.map_or(0, |m| m.offset + (segment.start - m.start)),
                path: mapped.map_or(String::new(), |m| m.path.clone()),
            }
        };
        self.maps = self.segments.iter().map(map).collect();
    }

    /// Bytes of a mapped file.
    fn read_file(&self, at: u64, into: &mut [u8]) -> usize {
        let i = self.mapped.partition_point(|mapped| mapped.start <= at);
        let Some(mapped) = i.checked_sub(1).map(|i| &self.mapped[i]).filter(|m| at < m.end) else { return 0 };
        let mut opened = self.opened.borrow_mut();
        let file = opened.entry(mapped.path.clone()).or_insert_with(|| {
            // A file that was replaced since has " (deleted)" behind its name.
            let file = File::open(&mapped.path);
            if let Err(error) = &file {
                self.missing.borrow_mut().insert(format!("{}: {error}", mapped.path));
            }
            file.ok()
        });
        let len = (mapped.end - at).min(into.len() as u64) as usize;
        let Some(file) = file else { return 0 };
        let read = file.read_at(&mut into[..len], mapped.offset + (at - mapped.start)).unwrap_or(0);
        // Behind the file's end a mapping reads as zeros.
        into[read..len].fill(0);
        if read > 0 { len } else { 0 }
    }
}

impl Memory for CoreFile {
    fn read(&self, at: u64, into: &mut [u8]) -> usize {
        let mut done = 0;
        while done < into.len() {
            let Some(here) = at.checked_add(done as u64) else { break };
            let i = self.segments.partition_point(|segment| segment.start <= here);
            let Some(segment) = i.checked_sub(1).map(|i| self.segments[i]).filter(|s| here < s.end) else { break };
            let rest = &mut into[done..];
            let got = if here < segment.held {
                let len = (segment.held - here).min(rest.len() as u64) as usize;
                self.file.read_at(&mut rest[..len], segment.offset + (here - segment.start)).unwrap_or(0)
            } else {
                let len = (segment.end - here).min(rest.len() as u64) as usize;
                self.read_file(here, &mut rest[..len])
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
        &self.threads
    }

    fn name(&self) -> String {
        self.name.clone()
    }

    fn pid(&self) -> u32 {
        self.pid
    }

    fn warnings(&self) -> Vec<String> {
        let missing = self.missing.borrow();
        let advice =
            "what the process only read of it is not known; --exe FILE names the program if it lies elsewhere now";
        missing.iter().map(|what| format!("a mapped file is not there: {what}; {advice}")).collect()
    }
}
