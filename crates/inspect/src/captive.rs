//! Captive bytes: free memory that live objects keep from its next use.
//!
//! **What.** The objects of a slab hold its free places, those of a hugepage its free pages with
//! memory; each holds a part by its size. So the parts of all objects sum to the free memory of
//! slabs and hugepages in use, and a sample counts for the objects for which it stands.
//! ```text
//! captive(object) = size × free(slab) ÷ used(slab), and of both × free(hugepage) ÷ used(hugepage)
//! ```
//! **Units.** Bytes that have memory, by the kernel. Objects in caches of threads count as used.
//!
//! **Failure.** A text with the reason. While the process runs, some spans may have changed.

use crate::heap::{Heap, Span};
use crate::live::Live;
use crate::profile::{Count, Profile};
use crate::reader::{Reader, word_in};
use crate::resident::Pages;
use crate::table::Table;

const HUGEPAGE: u64 = 2 << 20;

/// A live sample; `address` as the object's.
pub(crate) struct Sample {
    pub(crate) address: u64,
    size: u64,
    pub(crate) stands_for: Count,
    /// Among the profile's.
    pub(crate) site: usize,
}

/// Sets the sites' captive bytes in a profile of a running process.
///
/// # Errors
/// As of [`Profile::of`] and the ledger.
pub fn add_captive(profile: &mut Profile, pid: u32) -> Result<(), String> {
    add_captive_by(profile, &Heap::outline(&Live::watch(pid)?)?)
}

pub(crate) fn add_captive_by(profile: &mut Profile, heap: &Heap<'_>) -> Result<(), String> {
    let samples = samples(&heap.reader, &heap.table)?;
    let pid = heap.reader.memory.pid();
    let space = Space::of(heap, &Pages::open(pid)?);
    for sample in samples {
        if let Some(site) = profile.sites.get_mut(sample.site) {
            let captive = space.captive(&sample).unwrap_or(0.0);
            site.captive.bytes += captive as u64;
            site.captive.objects += sample.stands_for.objects;
        }
    }
    Ok(())
}

pub(crate) fn samples(reader: &Reader<'_>, table: &Table) -> Result<Vec<Sample>, String> {
    let at = reader.word(table.get("profile")?)?;
    let [offset, count, bytes] =
        ["samples", "places", "sample_bytes"].map(|name| table.get(&format!("profile.{name}")));
    let (offset, bytes) = (offset?, bytes? as usize);
    let places = reader.bytes(at + offset, count? as usize * bytes)?;
    let sample = |place: &[u8]| Sample {
        // The library hides addresses from searches for leaks.
        address: !word_in(place, 0),
        size: word_in(place, 8),
        stands_for: Count { bytes: word_in(place, 16), objects: word_in(place, 24) },
        site: word_in(place, 40) as usize,
    };
    Ok(places.chunks_exact(bytes.max(1)).filter(|place| word_in(place, 0) != 0).map(sample).collect())
}

/// Free and used memory, by page and by hugepage.
struct Space<'h, 'm> {
    heap: &'h Heap<'m>,
    /// Bytes with memory.
    resident: Vec<u64>,
    hugepages: Vec<Part>,
}

#[derive(Clone, Copy, Debug, Default)]
struct Part {
    used: u64,
    free: u64,
}

impl Part {
    /// Free bytes for each used one.
    fn ratio(self) -> f64 {
        if self.used == 0 { 0.0 } else { self.free as f64 / self.used as f64 }
    }
}

impl<'h, 'm> Space<'h, 'm> {
    fn of(heap: &'h Heap<'m>, pages: &Pages) -> Self {
        let mut resident = vec![0; heap.granted as usize];
        let region = heap.base..heap.base + heap.granted * heap.page;
        pages.each(region, 0, |at| resident[((at - heap.base) / heap.page) as usize] += pages.page());
        let mut is_used = vec![false; heap.granted as usize];
        for span in &heap.spans {
            let end = span.first() + heap.pages_of(span);
            (span.first()..end.min(heap.granted)).for_each(|page| is_used[page as usize] = true);
        }
        let each = (HUGEPAGE / heap.page) as usize;
        let part = |(used, resident): (&[bool], &[u64])| {
            let sum = |is: bool| used.iter().zip(resident).filter(|(used, _)| **used == is).map(|(_, n)| n).sum();
            Part { used: sum(true), free: sum(false) }
        };
        let hugepages = is_used.chunks(each).zip(resident.chunks(each)).map(part).collect();
        Self { heap, resident, hugepages }
    }

    /// `None` for objects outside of the heap's pages.
    fn captive(&self, sample: &Sample) -> Option<f64> {
        let heap = self.heap;
        let span = heap.span_of(heap.page_of(sample.address)?)?;
        let (first, pages) = (span.first(), heap.pages_of(span));
        let (size, slab) = match span {
            Span::Slab { class, .. } => {
                let object = heap.class(*class)?.object;
                let used = heap.record(first).used * object;
                let has: u64 = (first..first + pages).filter_map(|page| self.resident.get(page as usize)).sum();
                (object, Part { used, free: has.saturating_sub(used) })
            }
            Span::Large { .. } => (pages * heap.page, Part::default()),
            _ => (sample.size, Part::default()),
        };
        let hugepage =
            |page: u64| self.hugepages.get((page * heap.page / HUGEPAGE) as usize).map_or(0.0, |h| h.ratio());
        let around = (first..first + pages).map(hugepage).sum::<f64>() / pages as f64;
        let stands_for = sample.stands_for.bytes as f64 * size as f64 / sample.size.max(1) as f64;
        let with_slab = stands_for * (1.0 + slab.ratio());
        Some(with_slab * (1.0 + around) - stands_for)
    }
}
