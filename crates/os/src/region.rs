//! The heap's region: one range of address space, preceded by its metadata, usable from the front.
//!
//! ```text
//! | part 0 ... | part 1 ... | ... | (up to 2 MiB) | heap: hugepage 0 | 1 | ... | capacity - 1 |
//!   usable: granted × part size                     usable: granted hugepages, the rest PROT_NONE
//! ```
//! Where a limit counts reservations, the region lies where the system puts no mappings, and is
//! mapped as it becomes usable.
//! **Unsafe.** Calls `mmap`, `mprotect` and `madvise` on its own reservation.

use crate::label::{self, label};
use crate::mapping::{self, unmap};
use crate::{probe, process, thp};
use core::ptr::null_mut;
use craton_base::{Advice, Ask, CollapseError, Floor, HugePages, NoMemory, PageRange, Residency};

const MAX_PARTS: usize = 4;
const PLACES: usize = 8;

#[derive(Clone, Copy, Debug)]
pub struct PartSpec {
    /// At least 1.
    pub bytes_per_hugepage: usize,
}

impl PartSpec {
    fn bytes(&self, capacity: HugePages) -> usize {
        (self.bytes_per_hugepage * capacity.0 as usize).next_multiple_of(process::page_size())
    }
}

#[derive(Debug)]
pub struct Region {
    base: usize,
    capacity: HugePages,
    granted: HugePages,
    is_mapped_late: bool,
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
        is_mapped_late: false,
        parts: [Part { at: 0, bytes_per_hugepage: 0 }; MAX_PARTS],
        metadata_bytes: 0,
    };

    /// Halves `capacity` on refusal. At most 4 parts.
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
        let total = Self::total(capacity, specs)?;
        // SAFETY: a new mapping where the kernel chooses.
        let start = unsafe {
            let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE;
            libc::mmap(null_mut(), total, libc::PROT_NONE, flags, -1, 0)
        };
        if start == libc::MAP_FAILED {
            return None;
        }
        let start = start as usize;
        // SAFETY: advice on our reservation. With `transparent_hugepage=always`, one touch of a
        // sparse array would take 2 MiB.
        unsafe { libc::madvise(start as *mut _, total, libc::MADV_NOHUGEPAGE) };
        // SAFETY: as above. Keeps unused memory out of core files.
        unsafe { libc::madvise(start as *mut _, total, libc::MADV_DONTDUMP) };
        let region = Self::laid_out(start, capacity, specs);
        label(start, region.base - start, label::METADATA);
        label(region.base, start + total - region.base, label::HEAP);
        Some(region)
    }

    /// The program's mappings in it end its growth. At most 4 parts.
    pub fn unreserved(capacity: HugePages, specs: &[PartSpec]) -> Option<Self> {
        let total = Self::total(capacity, specs)?;
        let probe = mapping::map(process::page_size(), process::page_size())?;
        unmap(probe, process::page_size());
        // The system's places are near the probe, programs' at two thirds of the whole.
        let huge = HugePages(1).bytes().0;
        let start = (13..13 + PLACES).map(|i| (probe - probe / 64 * i) & !(huge - 1)).find(|at| is_free(*at, total))?;
        Some(Self { is_mapped_late: true, ..Self::laid_out(start, capacity, specs) })
    }

    fn total(capacity: HugePages, specs: &[PartSpec]) -> Option<usize> {
        assert!(specs.len() <= MAX_PARTS);
        let metadata: usize = specs.iter().map(|s| s.bytes(capacity)).sum();
        metadata.checked_add(capacity.bytes().0)?.checked_add(HugePages(1).bytes().0)
    }

    fn laid_out(start: usize, capacity: HugePages, specs: &[PartSpec]) -> Self {
        let mut region = Self { capacity, ..Self::EMPTY };
        let mut at = start;
        for (part, spec) in region.parts.iter_mut().zip(specs) {
            *part = Part { at, bytes_per_hugepage: spec.bytes_per_hugepage };
            at += spec.bytes(capacity);
        }
        region.base = at.next_multiple_of(HugePages(1).bytes().0);
        region
    }

    fn open(&self, at: usize, bytes: usize) -> bool {
        if self.is_mapped_late {
            let name = if at < self.base { label::METADATA } else { label::HEAP };
            return map_at(at, bytes).inspect(|at| label(*at, bytes, name)).is_some();
        }
        // SAFETY: whole machine pages of our reservation.
        unsafe { libc::mprotect(at as *mut _, bytes, libc::PROT_READ | libc::PROT_WRITE) == 0 }
    }

    /// A multiple of 2 MiB.
    pub fn base(&self) -> usize {
        self.base
    }

    pub fn capacity(&self) -> HugePages {
        self.capacity
    }

    pub fn granted(&self) -> HugePages {
        self.granted
    }

    pub fn part(&self, i: usize) -> usize {
        self.parts[i].at
    }

    /// Usable address space; memory follows on first touch.
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
        // SAFETY: the region's usable memory; the caller knows the advice's effect.
        let refused = unsafe { libc::madvise(at, len, advice) } != 0;
        process::set_errno(saved);
        if refused { Err(NoMemory) } else { Ok(()) }
    }
}

/// Where nothing is mapped.
pub(crate) fn map_at(at: usize, bytes: usize) -> Option<usize> {
    let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE | libc::MAP_FIXED_NOREPLACE;
    // SAFETY: replaces no mapping.
    let got = unsafe { libc::mmap(at as *mut _, bytes, libc::PROT_READ | libc::PROT_WRITE, flags, -1, 0) };
    if got == libc::MAP_FAILED {
        return None;
    }
    // Before Linux 4.17 the address is a wish.
    if got as usize != at {
        unmap(got as usize, bytes);
        return None;
    }
    mapping::advise_small(got as usize, bytes);
    Some(got as usize)
}

fn is_free(at: usize, bytes: usize) -> bool {
    let saved = process::errno();
    process::set_errno(0);
    let is_mapped = map_at(at, bytes).map(|at| unmap(at, bytes)).is_some();
    // The system checks the place before the limit.
    let is_free = is_mapped || process::errno() == libc::ENOMEM;
    process::set_errno(saved);
    is_free
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
        let mut opened = [(0, 0); MAX_PARTS + 1];
        for (i, (from, to)) in parts.chain([region]).filter(|(from, to)| from < to).enumerate() {
            if !self.open(from, to - from) {
                let undone = opened[..i].iter().filter(|_| self.is_mapped_late);
                undone.for_each(|&(at, bytes)| unmap(at, bytes));
                return Err(NoMemory);
            }
            opened[i] = (from, to - from);
            let saved = process::errno();
            // SAFETY: ours; a refusal leaves the range out of core files.
            unsafe { libc::madvise(from as *mut _, to - from, libc::MADV_DODUMP) };
            process::set_errno(saved);
        }
        probe::system_map(region.0, region.1 - region.0);
        self.granted = total;
        self.metadata_bytes = metadata;
        Ok(())
    }

    fn back(&mut self, range: PageRange) -> Result<(), NoMemory> {
        let (at, len) = self.span(range);
        thp::populate(at as usize, len)
    }

    fn unback(&mut self, range: PageRange) -> Result<(), NoMemory> {
        let (at, bytes) = self.span(range);
        self.advise_with(range, libc::MADV_DONTNEED).inspect(|()| probe::release(at as usize, bytes))
    }

    fn collapse(&mut self, range: PageRange) -> Result<(), CollapseError> {
        let (at, len) = self.span(range);
        thp::collapse(at as usize, len)
    }

    fn advise(&mut self, range: PageRange, advice: Advice) -> bool {
        match advice {
            Advice::Huge => self.advise_with(range, libc::MADV_HUGEPAGE).is_ok() && thp::is_on(),
            Advice::Small => self.advise_with(range, libc::MADV_NOHUGEPAGE).is_ok(),
        }
    }

    fn residency(&self, range: PageRange, ask: Ask) -> Residency {
        if !thp::may_query() {
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
