//! The heap's region: one range of address space, preceded by the metadata of its pages.
//!
//! **What.** Reserved once at the heap's largest size, inaccessible and so free; made usable from
//! the front in large steps. The metadata arrays ("parts") are proportional to the heap and grow
//! with it.
//! ```text
//! | part 0 ... | part 1 ... | ... | (up to 2 MiB) | heap: hugepage 0 | 1 | ... | capacity - 1 |
//!   usable: granted × part size                     usable: granted hugepages, the rest PROT_NONE
//! ```
//! **Cost.** Two mappings for each part and two or three for the heap, however large it grows.
//! **Unsafe.** Calls `mmap`, `mprotect` and `madvise` on the reservation, the region's for ever.

use crate::{process, thp};
use core::ptr::null_mut;
use craton_base::{Advice, Ask, CollapseError, Floor, HugePages, NoMemory, PageRange, Residency};

const MAX_PARTS: usize = 4;

/// A metadata array: how many bytes of it belong to one hugepage of the heap.
#[derive(Clone, Copy, Debug)]
pub struct PartSpec {
    /// Bytes for each hugepage, at least 1.
    pub bytes_per_hugepage: usize,
}

/// A reservation and how much of it is usable.
#[derive(Debug)]
pub struct Region {
    base: usize,
    capacity: HugePages,
    granted: HugePages,
    parts: [Part; MAX_PARTS],
    metadata_bytes: usize,
}

#[derive(Clone, Copy, Debug)]
struct Part {
    at: usize,
    bytes_per_hugepage: usize,
}

impl Region {
    pub const EMPTY: Self = Self {
        base: 0,
        capacity: HugePages(0),
        granted: HugePages(0),
        parts: [Part { at: 0, bytes_per_hugepage: 0 }; MAX_PARTS],
        metadata_bytes: 0,
    };

    /// Reserves `capacity` hugepages and metadata, halved on refusal down to `least`. ≤ 4 parts.
    pub fn new(capacity: HugePages, least: HugePages, parts: &[PartSpec]) -> Option<Self> {
        let mut capacity = capacity;
        loop {
            if let Some(region) = Self::exactly(capacity, parts) {
                return Some(region);
            }
            if capacity.0 / 2 < least.0.max(1) {
                return None;
            }
            capacity = HugePages(capacity.0 / 2);
        }
    }

    fn exactly(capacity: HugePages, specs: &[PartSpec]) -> Option<Self> {
        assert!(specs.len() <= MAX_PARTS);
        let page = process::page_size();
        let huge = HugePages(1).bytes().0;
        let part_len = |s: &PartSpec| (s.bytes_per_hugepage * capacity.0 as usize).next_multiple_of(page);
        let metadata: usize = specs.iter().map(part_len).sum();
        let total = metadata.checked_add(capacity.bytes().0)?.checked_add(huge)?;
        // SAFETY: a new mapping without access, at an address of the kernel's choice.
        let start = unsafe {
            let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE;
            libc::mmap(null_mut(), total, libc::PROT_NONE, flags, -1, 0)
        };
        if start == libc::MAP_FAILED {
            return None;
        }
        let start = start as usize;
        // With `transparent_hugepage=always`, one touch of a sparse array would take 2 MiB.
        // SAFETY: advice on our own reservation.
        unsafe { libc::madvise(start as *mut _, total, libc::MADV_NOHUGEPAGE) };
        // Keeps unused memory out of core files written from outside.
        // SAFETY: as above.
        unsafe { libc::madvise(start as *mut _, total, libc::MADV_DONTDUMP) };
        let mut region = Self { base: (start + metadata).next_multiple_of(huge), capacity, ..Self::EMPTY };
        let mut at = start;
        for (part, spec) in region.parts.iter_mut().zip(specs) {
            *part = Part { at, bytes_per_hugepage: spec.bytes_per_hugepage };
            at += part_len(spec);
        }
        Some(region)
    }

    /// Address of the heap's first byte, a multiple of 2 MiB.
    pub fn base(&self) -> usize {
        self.base
    }

    /// How many hugepages the region can ever have.
    pub fn capacity(&self) -> HugePages {
        self.capacity
    }

    pub fn granted(&self) -> HugePages {
        self.granted
    }

    /// Address of metadata array `i`.
    pub fn part(&self, i: usize) -> usize {
        self.parts[i].at
    }

    /// Bytes of metadata made usable so far (address space; memory follows on first touch).
    pub fn metadata_bytes(&self) -> usize {
        self.metadata_bytes
    }

    fn span(&self, range: PageRange) -> (*mut libc::c_void, usize) {
        assert!(range.end().0 <= self.granted.pages().0, "range beyond what was reserved");
        ((self.base + range.first.offset().0) as *mut _, range.len.bytes().0)
    }

    fn advise_with(&self, range: PageRange, advice: i32) -> Result<(), NoMemory> {
        let (at, len) = self.span(range);
        let saved = process::errno();
        // SAFETY: usable memory of this region; the caller knows the advice's effect on it.
        let refused = unsafe { libc::madvise(at, len, advice) } != 0;
        process::set_errno(saved);
        if refused { Err(NoMemory) } else { Ok(()) }
    }
}

impl Floor for Region {
    fn reserve(&mut self, total: HugePages) -> Result<(), NoMemory> {
        if total > self.capacity {
            return Err(NoMemory);
        }
        assert!(total >= self.granted, "a region does not shrink");
        let page = process::page_size();
        let mut metadata = 0;
        let parts = self.parts.iter().filter(|p| p.bytes_per_hugepage > 0).map(|part| {
            let used = |n: HugePages| (part.bytes_per_hugepage * n.0 as usize).next_multiple_of(page);
            metadata += used(total);
            (part.at + used(self.granted), part.at + used(total))
        });
        let region = (self.base + self.granted.bytes().0, self.base + total.bytes().0);
        for (from, to) in parts.chain([region]).filter(|(from, to)| from < to) {
            let (at, bytes) = (from as *mut libc::c_void, to - from);
            // SAFETY: whole machine pages of the region's own reservation.
            if unsafe { libc::mprotect(at, bytes, libc::PROT_READ | libc::PROT_WRITE) } != 0 {
                return Err(NoMemory);
            }
            let saved = process::errno();
            // SAFETY: as above; a refusal leaves the range out of core files.
            unsafe { libc::madvise(at, bytes, libc::MADV_DODUMP) };
            process::set_errno(saved);
        }
        self.granted = total;
        self.metadata_bytes = metadata;
        Ok(())
    }

    fn back(&mut self, range: PageRange) -> Result<(), NoMemory> {
        self.advise_with(range, libc::MADV_POPULATE_WRITE)
    }

    fn unback(&mut self, range: PageRange) -> Result<(), NoMemory> {
        self.advise_with(range, libc::MADV_DONTNEED)
    }

    fn collapse(&mut self, range: PageRange) -> Result<(), CollapseError> {
        let (at, len) = self.span(range);
        thp::collapse(at as usize, len)
    }

    fn advise(&mut self, range: PageRange, advice: Advice) -> bool {
        // Kernels without hugepages refuse: small pages then.
        match advice {
            Advice::Huge => self.advise_with(range, libc::MADV_HUGEPAGE).is_ok() && thp::is_on(),
            Advice::Small => self.advise_with(range, libc::MADV_NOHUGEPAGE).is_ok(),
        }
    }

    fn residency(&self, range: PageRange, ask: Ask) -> Residency {
        if !thp::may_ask() {
            return Residency::default();
        }
        let (at, len) = self.span(range);
        let resident = || thp::resident_bytes(at as usize, len);
        let huge = || thp::huge_bytes(at as usize, len);
        Residency {
            resident_bytes: if ask == Ask::Huge { 0 } else { resident() },
            huge_bytes: if ask == Ask::Resident { None } else { huge() },
        }
    }
}
