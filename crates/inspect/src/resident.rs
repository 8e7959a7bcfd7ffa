//! Memory that the kernel charges a process for: by mapping (`smaps`) and by page (`pagemap`).
//! Pages that it does not show count as not resident.
//!
//! **Unsafe.** Calls `ioctl`.

use crate::live::{parse, refused};
use crate::memory::Map;
use rustix::param::page_size;
use std::fs::{self, File};
use std::io;
use std::ops::Range;
use std::os::fd::AsRawFd;
use std::os::unix::fs::FileExt;

const PRESENT: u64 = 1 << 63;
/// No other mapping has it, as others have the system's page of zeros.
const EXCLUSIVE: u64 = 1 << 56;
const SWAPPED: u64 = 1 << 62;
/// A page of a file or of shared memory.
const FILE: u64 = 1 << 61;
/// Every access ends by SIGSEGV.
const GUARD: u64 = 1 << 58;
const PIECE: u64 = 1 << 16;

const IS_PRESENT: u64 = 1 << 3;
const ZEROS: u64 = 1 << 5;
const IS_HUGE: u64 = 1 << 6;
/// `_IOWR('f', 16, struct pm_scan_arg)`
const PAGEMAP_SCAN: libc::c_ulong =
    0xc000_0000 | (size_of::<Scan>() as libc::c_ulong) << 16 | (b'f' as libc::c_ulong) << 8 | 16;

/// `struct pm_scan_arg`.
#[repr(C)]
#[derive(Default)]
struct Scan {
    size: u64,
    flags: u64,
    start: u64,
    end: u64,
    walk_end: u64,
    vec: u64,
    vec_len: u64,
    max_pages: u64,
    category_inverted: u64,
    category_mask: u64,
    category_anyof_mask: u64,
    return_mask: u64,
}

/// `struct page_region`.
#[repr(C)]
#[derive(Clone, Copy, Default)]
struct Found {
    start: u64,
    end: u64,
    categories: u64,
}

pub struct Pages {
    pagemap: File,
    page: u64,
}

impl Pages {
    pub fn open(pid: u32) -> Result<Self, String> {
        let pagemap = File::open(format!("/proc/{pid}/pagemap")).map_err(|error| refused(pid, &error))?;
        Ok(Self { pagemap, page: page_size() as u64 })
    }

    /// Calls `each` with each page's number and its entry of `pagemap`.
    fn entries(&self, range: Range<u64>, mut each: impl FnMut(u64, u64)) -> io::Result<()> {
        let (mut at, end) = (range.start / self.page, range.end.div_ceil(self.page));
        let mut buffer = vec![0; (end.saturating_sub(at).min(PIECE) * 8) as usize];
        while at < end {
            let len = (end - at).min(PIECE);
            let part = &mut buffer[..(len * 8) as usize];
            self.pagemap.read_exact_at(part, at * 8)?;
            (at..).zip(crate::memory::words(part)).for_each(|(page, entry)| each(page, entry));
            at += len;
        }
        Ok(())
    }

    /// Without `zeros` bytes of pages that others have, too.
    pub fn each(&self, range: Range<u64>, mut zeros: u64, mut each: impl FnMut(u64)) {
        // Pages that the kernel does not show are not resident.
        let _ = self.entries(range, |page, entry| {
            if entry & PRESENT == 0 {
                return;
            }
            if entry & EXCLUSIVE == 0 && zeros >= self.page {
                zeros -= self.page;
            } else {
                each(page * self.page);
            }
        });
    }

    /// Calls `each` with ranges that have memory, and whether on huge frames; `false` before Linux
    /// 6.7, which cannot tell.
    pub fn scan(&self, range: Range<u64>, mut each: impl FnMut(Range<u64>, bool)) -> bool {
        let mut found = [Found::default(); 512];
        let mut start = range.start;
        while start < range.end {
            let mut scan = Scan {
                size: size_of::<Scan>() as u64,
                start,
                end: range.end,
                vec: found.as_mut_ptr() as u64,
                vec_len: found.len() as u64,
                // Not the system's page of zeros.
                category_inverted: ZEROS,
                category_mask: IS_PRESENT | ZEROS,
                return_mask: IS_HUGE,
                ..Scan::default()
            };
            // SAFETY: the call's structure, and `vec` has its entries.
            let answer = unsafe { libc::ioctl(self.pagemap.as_raw_fd(), PAGEMAP_SCAN, &raw mut scan) };
            let Ok(n) = usize::try_from(answer) else { return false };
            for part in &found[..n.min(found.len())] {
                each(part.start..part.end, part.categories & IS_HUGE != 0);
            }
            if scan.walk_end <= start {
                return false;
            }
            start = scan.walk_end;
        }
        true
    }

    /// Calls `each` with runs of pages that have memory, also swapped; pages of files only with
    /// `files`.
    ///
    /// # Errors
    /// The kernel does not show them.
    pub fn runs(&self, range: Range<u64>, files: bool, mut each: impl FnMut(Range<u64>)) -> io::Result<()> {
        let first = range.start / self.page;
        let mut run = first..first;
        self.entries(range, |page, entry| {
            if entry & (PRESENT | SWAPPED) == 0 || entry & GUARD != 0 || entry & FILE != 0 && !files {
                return;
            }
            if run.end < page {
                if !run.is_empty() {
                    each(run.start * self.page..run.end * self.page);
                }
                run.start = page;
            }
            run.end = page + 1;
        })?;
        if !run.is_empty() {
            each(run.start * self.page..run.end * self.page);
        }
        Ok(())
    }

    pub fn bytes(&self, range: Range<u64>) -> u64 {
        let mut pages = 0;
        self.each(range, 0, |_| pages += 1);
        pages * self.page
    }

    pub fn page(&self) -> u64 {
        self.page
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mapping {
    pub map: Map,
    pub shared: bool,
    pub rss_bytes: u64,
    pub pss_bytes: u64,
    pub swap_bytes: u64,
}

/// By address.
pub fn mappings(pid: u32) -> Result<Vec<Mapping>, String> {
    let text = fs::read(format!("/proc/{pid}/smaps")).map_err(|error| refused(pid, &error))?;
    let all = mappings_in(&String::from_utf8_lossy(&text));
    if all.is_empty() {
        return Err(format!("process {pid} has ended"));
    }
    Ok(all)
}

fn mappings_in(text: &str) -> Vec<Mapping> {
    let mut all: Vec<Mapping> = Vec::new();
    for line in text.lines() {
        if let Some(map) = parse(line) {
            let shared = line.split(' ').nth(1).is_some_and(|access| access.ends_with('s'));
            all.push(Mapping { map, shared, rss_bytes: 0, pss_bytes: 0, swap_bytes: 0 });
        } else if let (Some(last), Some((key, value))) = (all.last_mut(), line.split_once(':')) {
            let bytes =
                || value.trim().strip_suffix(" kB").and_then(|n| n.parse::<u64>().ok()).map_or(0, |kb| kb << 10);
            match key {
                "Rss" => last.rss_bytes = bytes(),
                "Pss" => last.pss_bytes = bytes(),
                "Swap" => last.swap_bytes = bytes(),
                _ => (),
            }
        }
    }
    all
}

#[cfg(test)]
mod tests;
