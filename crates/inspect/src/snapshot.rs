//! A process's memory, copied while the process stood still.
//!
//! **What.** [`Snapshot::of`] copies the pages that the process may have written, and lets it go
//! on. Pages of files that it only reads come from the process afterwards, or from the file.
//! [`Room`] takes the memory for the copy before the stop, which lasts as long as the copying.
//!
//! **State.** Parts of blocks: the room, and a second block for what the process has taken since.
//! ```text
//! pages with memory → parts, by address → pieces of 2 MiB → threads, by process_vm_readv → blocks
//! ```
//!
//! **Failure.** No room, or a kernel that does not show which pages have memory: an error before
//! the stop. Unreadable pages are zeros.
//!
//! **Cost.** Bytes that the process has in memory and in the swap. 0.1 to 0.2 s of stop for 1 GiB.
//!
//! **Unsafe.** Calls `madvise` and `process_vm_readv`.

use crate::live::{Live, maps};
use crate::memory::{Held, Map, Memory, Thread};
use crate::resident::Pages;
use crate::spare::spare_bytes;
use std::collections::HashSet;
use std::fs::File;
use std::io;
use std::ops::Range;
use std::os::unix::fs::FileExt;
use std::path::PathBuf;
use std::sync::Mutex;
use std::thread;

/// A thread's piece of work.
const PIECE: usize = 2 << 20;
/// Ranges of one call; the system allows 1024.
const MOST_RANGES: usize = 512;
const MOST_THREADS: usize = 4;
const PAGE: u64 = 4096;
/// By which a process may grow before its stop, without a second block.
const GROWTH: usize = 16 << 20;

/// Memory for the copy of a process.
#[derive(Debug)]
pub struct Room(Vec<u8>);

impl Room {
    /// # Errors
    /// The reason for which no copy can be made.
    pub fn take(pid: u32) -> Result<Self, String> {
        let bytes: u64 = ranges(pid, &maps(pid)?)?.iter().map(|range| range.end - range.start).sum();
        let needed = bytes as usize + bytes as usize / 16 + GROWTH;
        let (spare, mib) = (spare_bytes(), needed >> 20);
        // The search needs tables besides.
        if (needed + needed / 4) as u64 > spare {
            return Err(format!("a copy takes {mib} MiB, and {} MiB of memory are to spare", spare >> 20));
        }
        // If memory runs short nevertheless, this program ends first.
        let _ = std::fs::write("/proc/self/oom_score_adj", "1000");
        block(needed).map(Self).map_err(|_| format!("a copy takes {mib} MiB, more than this program may have"))
    }

    pub fn bytes(&self) -> u64 {
        self.0.len() as u64
    }
}

/// Zeros that have memory.
fn block(bytes: usize) -> Result<Vec<u8>, std::collections::TryReserveError> {
    let mut block: Vec<u8> = Vec::new();
    block.try_reserve_exact(bytes)?;
    let (page, at) = (PAGE as usize, block.as_ptr() as usize);
    let (start, end) = (at.next_multiple_of(page), (at + bytes) / page * page);
    if start < end {
        // SAFETY: whole pages of the block; the advice changes no contents.
        unsafe { libc::madvise(start as *mut _, end - start, libc::MADV_HUGEPAGE) };
    }
    block.resize(bytes, 0);
    Ok(block)
}

/// Of the process, and where its copy lies.
#[derive(Debug)]
struct Part {
    start: u64,
    end: u64,
    block: usize,
    at: usize,
}

#[derive(Debug)]
pub struct Snapshot {
    live: Live,
    parts: Vec<Part>,
    blocks: Vec<Vec<u8>>,
}

impl Snapshot {
    /// The process goes on when this returns.
    ///
    /// # Errors
    /// It has ended, or may not be read.
    pub fn of(mut live: Live, room: Room) -> Result<Self, String> {
        let pid = live.pid();
        let ranges = ranges(pid, live.maps())?;
        let bytes: usize = ranges.iter().map(|range| (range.end - range.start) as usize).sum();
        let mut blocks = vec![room.0];
        if let Some(more) = bytes.checked_sub(blocks[0].len()).filter(|more| *more > 0) {
            let no_room = |_| format!("process {pid} has grown by {} MiB, for which no memory is left", more >> 20);
            blocks.push(block(more).map_err(no_room)?);
        }
        let parts = parts(&ranges, &blocks);
        let copied = copy(pid, &parts, &mut blocks);
        live.let_go();
        copied.map_err(|error| crate::live::refused(pid, &error))?;
        Ok(Self { live, parts, blocks })
    }

    /// From the process, which may have changed since, or its file.
    fn fetch(&self, at: u64, into: &mut [u8]) -> usize {
        let read = self.live.read(at, into);
        if read > 0 {
            return read;
        }
        let Some(map) = self.map_at(at).filter(|map| map.is_file()) else { return 0 };
        let len = (map.end - at).min(into.len() as u64) as usize;
        let file = File::open(&map.path);
        file.and_then(|file| file.read_at(&mut into[..len], map.offset + (at - map.start))).unwrap_or(0)
    }

    /// The part that holds an address, or else the start of the next one.
    fn part(&self, at: u64) -> Result<&Part, u64> {
        let next = self.parts.partition_point(|part| part.start <= at);
        let here = next.checked_sub(1).map(|i| &self.parts[i]).filter(|part| at < part.end);
        here.ok_or_else(|| self.parts.get(next).map_or(u64::MAX, |part| part.start))
    }
}

/// Pages that may have been written since the program's start.
fn ranges(pid: u32, maps: &[Map]) -> Result<Vec<Range<u64>>, String> {
    let pages = Pages::open(pid)?;
    let mut all: Vec<Range<u64>> = Vec::new();
    for map in maps.iter().filter(|map| map.readable && !map.path.starts_with("[v") && !map.is_device()) {
        let add = |run: Range<u64>| match all.last_mut() {
            Some(last) if last.end == run.start => last.end = run.end,
            _ => all.push(run),
        };
        let shown = pages.runs(map.start..map.end, map.writable, add);
        shown.map_err(|e| format!("the kernel does not show which of its pages have memory: {e}"))?;
    }
    Ok(all)
}

/// Lays the ranges into the blocks, one behind the other.
fn parts(ranges: &[Range<u64>], blocks: &[Vec<u8>]) -> Vec<Part> {
    let (mut block, mut at) = (0, 0);
    let mut all = Vec::with_capacity(ranges.len() + blocks.len());
    for range in ranges {
        let mut start = range.start;
        while start < range.end {
            if at == blocks[block].len() {
                (block, at) = (block + 1, 0);
            }
            let len = ((range.end - start) as usize).min(blocks[block].len() - at);
            let end = start + len as u64;
            all.push(Part { start, end, block, at });
            (start, at) = (end, at + len);
        }
    }
    all
}

/// A run of a block, and the process's ranges that belong there.
struct Piece<'b> {
    into: &'b mut [u8],
    from: Vec<Range<u64>>,
}

fn copy(pid: u32, parts: &[Part], blocks: &mut [Vec<u8>]) -> io::Result<()> {
    let mut pieces: Vec<Piece<'_>> = Vec::new();
    for (number, block) in blocks.iter_mut().enumerate() {
        let mut rest = block.as_mut_slice();
        let (mut from, mut len) = (Vec::new(), 0);
        for part in parts.iter().filter(|part| part.block == number) {
            let mut start = part.start;
            while start < part.end {
                let end = part.end.min(start + (PIECE - len) as u64);
                from.push(start..end);
                (len, start) = (len + (end - start) as usize, end);
                if len == PIECE || from.len() == MOST_RANGES {
                    let into = rest.split_off_mut(..len).unwrap_or_default();
                    pieces.push(Piece { into, from: std::mem::take(&mut from) });
                    len = 0;
                }
            }
        }
        let into = rest.split_off_mut(..len).unwrap_or_default();
        pieces.push(Piece { into, from });
    }
    let threads = thread::available_parallelism().map_or(1, usize::from).min(MOST_THREADS).min(pieces.len());
    let (pieces, failed) = (Mutex::new(pieces.into_iter()), Mutex::new(Ok(())));
    let work = || {
        while let Some(piece) = pieces.lock().ok().and_then(|mut pieces| pieces.next()) {
            if let Err(error) = fill(pid, piece)
                && let Ok(mut failed) = failed.lock()
            {
                *failed = Err(error);
            }
        }
    };
    thread::scope(|scope| {
        for _ in 1..threads {
            scope.spawn(work);
        }
        work();
    });
    failed.into_inner().unwrap_or(Ok(()))
}

fn fill(pid: u32, Piece { mut into, mut from }: Piece<'_>) -> io::Result<()> {
    let mut first = 0;
    while first < from.len() {
        let got = read(pid, into, &from[first..])?;
        // After a page that cannot be read the rest is still missing; it stays zero.
        let unreadable = if got < into.len() { PAGE as usize } else { 0 };
        let mut done = (got + unreadable).min(into.len());
        into = into.split_off_mut(done..).unwrap_or_default();
        while first < from.len() && done > 0 {
            let len = ((from[first].end - from[first].start) as usize).min(done);
            from[first].start += len as u64;
            done -= len;
            first += usize::from(from[first].is_empty());
        }
    }
    Ok(())
}

/// Bytes before the first page that cannot be read.
fn read(pid: u32, into: &mut [u8], from: &[Range<u64>]) -> io::Result<usize> {
    let local = libc::iovec { iov_base: into.as_mut_ptr().cast(), iov_len: into.len() };
    let place = |range: &Range<u64>| libc::iovec {
        iov_base: range.start as *mut _,
        iov_len: (range.end - range.start) as usize,
    };
    let remote: Vec<libc::iovec> = from.iter().map(place).collect();
    // SAFETY: writes at most `into`'s bytes, there.
    let got = unsafe { libc::process_vm_readv(pid as i32, &local, 1, remote.as_ptr(), remote.len() as u64, 0) };
    match usize::try_from(got) {
        Ok(got) => Ok(got),
        Err(_) => match io::Error::last_os_error() {
            error if error.raw_os_error() == Some(libc::EFAULT) => Ok(0),
            error => Err(error),
        },
    }
}

impl Memory for Snapshot {
    fn held(&self, at: u64) -> Held<'_> {
        match self.part(at) {
            Ok(part) => {
                let from = part.at + (at - part.start) as usize;
                Held::Bytes(&self.blocks[part.block][from..part.at + (part.end - part.start) as usize])
            }
            // A page without memory was never written.
            Err(next) => match self.map_at(at).filter(|map| map.readable && map.is_anonymous()) {
                Some(map) => Held::Zeros(next.min(map.end) - at),
                None => Held::Elsewhere,
            },
        }
    }

    fn read(&self, at: u64, into: &mut [u8]) -> usize {
        let mut done = 0;
        while done < into.len() {
            let Some(here) = at.checked_add(done as u64) else { break };
            let rest = &mut into[done..];
            let got = match self.held(here) {
                Held::Bytes(bytes) => {
                    let len = bytes.len().min(rest.len());
                    rest[..len].copy_from_slice(&bytes[..len]);
                    len
                }
                Held::Zeros(bytes) => {
                    let len = (rest.len() as u64).min(bytes) as usize;
                    rest[..len].fill(0);
                    len
                }
                Held::Elsewhere => {
                    let next = self.part(here).err().unwrap_or(here);
                    let len = (rest.len() as u64).min(next - here) as usize;
                    self.fetch(here, &mut rest[..len])
                }
            };
            if got == 0 {
                break;
            }
            done += got;
        }
        done
    }

    fn maps(&self) -> &[Map] {
        self.live.maps()
    }

    fn threads(&self) -> &[Thread] {
        self.live.threads()
    }

    fn name(&self) -> String {
        self.live.name()
    }

    fn pid(&self) -> u32 {
        self.live.pid()
    }

    fn root(&self) -> Option<PathBuf> {
        self.live.root()
    }

    fn auxiliary(&self) -> Vec<u8> {
        self.live.auxiliary()
    }

    fn left_out(&self) -> HashSet<u64> {
        self.live.left_out()
    }

    fn is_unchanged(&self) -> bool {
        self.live.is_unchanged()
    }

    fn interrupted(&self) -> usize {
        self.live.interrupted()
    }
}

#[cfg(test)]
mod tests;
