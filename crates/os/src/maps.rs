//! Mappings of the process.
//!
//! **Cost.** A line for each mapping; [`at`] reads up to its own before Linux 6.11.
//! **Unsafe.** Opens and reads a file of the system.

use crate::small_file::{File, Lines, PathText};
use crate::{call, process, thp};

const MAPS: &[u8] = b"/proc/self/maps";

#[derive(Clone, Copy, Debug)]
pub struct Mapping<'a> {
    pub start: usize,
    pub end: usize,
    pub readable: bool,
    pub writable: bool,
    pub offset: usize,
    /// Empty: anonymous, also if it was given a name (`[anon:NAME]`).
    pub name: &'a [u8],
}

/// `false`: the system reports none, or not all.
pub fn each(mut visit: impl FnMut(Mapping<'_>)) -> bool {
    let Some(mut lines) = lines() else { return false };
    while let Some(line) = lines.next_line() {
        if let Some(mapping) = parse(line) {
            visit(mapping);
        }
    }
    lines.outcome().is_ok()
}

/// `None`: no mapping, or unknown.
pub fn at<R>(address: usize, visit: impl FnOnce(Mapping<'_>) -> R) -> Option<R> {
    let mut name = [0; PathText::CAPACITY];
    match asked(address, &mut name) {
        Answer::Mapping(mapping) => return Some(visit(mapping)),
        Answer::Nothing => return None,
        Answer::Unknown => {}
    }
    let mut lines = lines()?;
    while let Some(line) = lines.next_line() {
        if let Some(mapping) = parse(line).filter(|m| (m.start..m.end).contains(&address)) {
            return Some(visit(mapping));
        }
    }
    None
}

enum Answer<'a> {
    Mapping(Mapping<'a>),
    Nothing,
    Unknown,
}

/// `struct procmap_query` of `linux/fs.h`.
#[repr(C)]
#[derive(Default)]
struct Query {
    size: u64,
    flags: u64,
    address: u64,
    start: u64,
    end: u64,
    rights: u64,
    page_bytes: u64,
    offset: u64,
    inode: u64,
    device: [u32; 2],
    name_bytes: u32,
    build_id_bytes: u32,
    name: u64,
    build_id: u64,
}

/// `PROCMAP_QUERY`.
const ASK: libc::c_ulong = 3 << 30 | (size_of::<Query>() as libc::c_ulong) << 16 | (b'f' as libc::c_ulong) << 8 | 17;
const READABLE: u64 = 1;
const WRITABLE: u64 = 2;

fn asked(address: usize, name: &mut [u8; PathText::CAPACITY]) -> Answer<'_> {
    // A filter of system calls may allow reads alone.
    let file = match PathText::new(MAPS) {
        Some(path) if thp::may_query() => File::open(&path).ok(),
        _ => None,
    };
    let Some(file) = file else { return Answer::Unknown };
    let mut query = Query {
        size: size_of::<Query>() as u64,
        address: address as u64,
        name_bytes: name.len() as u32,
        name: name.as_mut_ptr() as u64,
        ..Query::default()
    };
    // SAFETY: query and name have their stated sizes.
    match unsafe { file.ioctl(ASK, &raw mut query as usize) } {
        0 => {
            let len = (query.name_bytes as usize).saturating_sub(1).min(name.len());
            Answer::Mapping(Mapping {
                start: query.start as usize,
                end: query.end as usize,
                readable: query.rights & READABLE != 0,
                writable: query.rights & WRITABLE != 0,
                offset: query.offset as usize,
                name: without_label(&name[..len]),
            })
        }
        _ if process::errno() == libc::ENOENT => Answer::Nothing,
        _ => Answer::Unknown,
    }
}

fn lines() -> Option<Lines> {
    Lines::open(&PathText::new(MAPS)?).ok()
}

pub struct Touched {
    fd: i32,
}

impl Touched {
    pub fn open() -> Self {
        Self { fd: call::open(c"/proc/self/pagemap", libc::O_RDONLY, 0) }
    }

    /// Visits runs in memory or swapped, or all if the system has no answer. Other pages, guard
    /// pages too, hold what they were mapped with.
    pub fn each(&self, start: usize, end: usize, mut visit: impl FnMut(usize, usize)) {
        const BATCH: usize = 512;
        let page = crate::process::page_size();
        let mut entries = [0u64; BATCH];
        let (mut at, mut from) = (start, None);
        while at < end {
            let want = ((end - at) / page).clamp(1, BATCH);
            // SAFETY: the buffer has this length; a bad descriptor is an error.
            let read = unsafe { call::read_at(self.fd, entries.as_mut_ptr().cast(), 8 * want, (at / page * 8) as i64) };
            let read = read.max(0) as usize / 8;
            if read == 0 {
                from = from.or(Some(at));
                break;
            }
            for entry in &entries[..read] {
                match (is_there(*entry, at), from) {
                    (true, None) => from = Some(at),
                    (false, Some(first)) => {
                        visit(first, at);
                        from = None;
                    }
                    _ => {}
                }
                at += page;
            }
        }
        if let Some(first) = from {
            visit(first, end);
        }
    }
}

impl Drop for Touched {
    fn drop(&mut self) {
        // SAFETY: ours; a bad one is an error.
        unsafe { call::close(self.fd) };
    }
}

/// Guard pages look like swap, marked from 6.15 on.
fn is_there(entry: u64, at: usize) -> bool {
    const PRESENT: u64 = 1 << 63;
    const SWAP: u64 = 1 << 62;
    const MARK: u64 = 1 << 58;
    match entry & (PRESENT | SWAP | MARK) {
        SWAP => crate::process::can_read(at),
        told => told & PRESENT != 0,
    }
}

/// `START-END RIGHTS OFFSET DEVICE INODE NAME`.
fn parse(line: &[u8]) -> Option<Mapping<'_>> {
    let mut fields = line.splitn(6, |b| *b == b' ');
    let mut range = fields.next()?.split(|b| *b == b'-');
    let (start, end) = (hexadecimal(range.next()?)?, hexadecimal(range.next()?)?);
    let rights = fields.next()?;
    let offset = hexadecimal(fields.next()?)?;
    let name = without_label(fields.nth(2).unwrap_or_default().trim_ascii_start());
    let (readable, writable) = (rights.first() == Some(&b'r'), rights.get(1) == Some(&b'w'));
    Some(Mapping { start, end, readable, writable, offset, name })
}

fn without_label(name: &[u8]) -> &[u8] {
    if name.starts_with(b"[anon:") { b"" } else { name }
}

fn hexadecimal(digits: &[u8]) -> Option<usize> {
    usize::from_str_radix(core::str::from_utf8(digits).ok()?, 16).ok()
}

#[cfg(all(test, not(loom)))]
mod tests;
