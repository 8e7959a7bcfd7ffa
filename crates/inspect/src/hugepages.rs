//! The heap by hugepage: what the page heap has each for, how full it is, what the kernel gives it.
//!
//! **From.** TEMERAIRE §4, Figure 7: filler, regions, hugepage cache; §4.4: dense and sparse
//! hugepages, donated tails, subrelease.
//!
//! **Units.** Pages of the page heap (8 KiB), bytes of memory.
//!
//! **Failure.** A text with the reason. While the process runs, some may have changed.

use crate::heap::{Heap, Span};
use crate::reader::u16_in;
use crate::resident::Pages;
use serde::Serialize;

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Place {
    /// Free, and without memory as far as the heap knows.
    #[default]
    Unbacked,
    /// Free, in the hugepage cache.
    Cached,
    /// With short spans of many small objects.
    Dense,
    /// With other short spans.
    Sparse,
    /// Part of a long span.
    Large,
    Region,
}

impl Place {
    /// By the library's numbers.
    fn of(number: u8, is_dense: bool) -> Self {
        match number {
            2 => Self::Cached,
            3 if is_dense => Self::Dense,
            3 => Self::Sparse,
            4 => Self::Large,
            5 => Self::Region,
            _ => Self::Unbacked,
        }
    }
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Hugepage {
    pub place: Place,
    /// Of spans with contents.
    pub used_pages: u32,
    /// Of freed spans that caches in front of the page heap keep.
    pub kept_pages: u32,
    pub spans: u32,
    /// Charged by the kernel.
    pub resident_bytes: u64,
    /// On one huge frame, by the kernel; before Linux 6.7 as far as the library knows.
    pub is_huge: bool,
    /// Free pages were released singly (subrelease).
    pub is_broken: bool,
    /// Advised against hugepages.
    pub is_guarded: bool,
    /// A long span's tail and its slack.
    pub is_donated: bool,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Hugepages {
    pub base: u64,
    pub page_bytes: u64,
    pub hugepage_bytes: u64,
    /// By address.
    pub all: Vec<Hugepage>,
}

/// A span on a hugepage.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct SpanRow {
    /// On the hugepage, and how many there.
    pub first_page: u64,
    pub pages: u64,
    /// Of the whole span.
    pub span_pages: u64,
    /// `slab`, `two classes`, `large`, `cache` or `notes`.
    pub kind: &'static str,
    /// 0 for spans that are one object.
    pub object_bytes: u64,
    /// Objects that are out, also in caches.
    pub used: u64,
    pub capacity: u64,
    /// The separate heap or object cache; empty for the process's heap.
    pub owner: String,
}

pub(crate) fn hugepages(heap: &Heap<'_>) -> Result<Hugepages, String> {
    let get = |name: &str| heap.table.get(name);
    let (bytes, hugepage_bytes) = (get("tracker.bytes")? as usize, get("hugepage.bytes")?);
    let each = hugepage_bytes / heap.page;
    let count = heap.granted.div_ceil(each);
    let at = heap.reader.word(heap.heap + get("heap.trackers")?)?;
    let trackers = heap.reader.bytes(at, count as usize * bytes)?;
    let [used, spans, place, dense] = ["used_pages", "allocs", "place", "dense"].map(|name| field(heap, name));
    let [donated, broken, intact, guarded] = ["donated", "broken", "intact", "guarded"].map(|name| field(heap, name));
    let (used, spans, place, dense) = (used?, spans?, place?, dense?);
    let (donated, broken, intact, guarded) = (donated?, broken?, intact?, guarded?);
    let hugepage = |tracker: &[u8]| {
        let flag = |at: usize| tracker[at] != 0;
        Hugepage {
            place: Place::of(tracker[place], flag(dense)),
            kept_pages: u16_in(tracker, used).into(),
            spans: u16_in(tracker, spans).into(),
            is_huge: flag(intact),
            is_broken: flag(broken),
            is_guarded: flag(guarded),
            is_donated: flag(donated),
            ..Hugepage::default()
        }
    };
    let mut all: Vec<Hugepage> = trackers.chunks_exact(bytes.max(1)).map(hugepage).collect();
    for span in &heap.spans {
        parts(span.first(), heap.pages_of(span), each, |i, _, pages| {
            if let Some(hugepage) = all.get_mut(i as usize) {
                hugepage.used_pages += pages as u32;
            }
        });
    }
    for hugepage in &mut all {
        hugepage.kept_pages = hugepage.kept_pages.saturating_sub(hugepage.used_pages);
    }
    add_memory(heap, hugepage_bytes, &mut all)?;
    Ok(Hugepages { base: heap.base, page_bytes: heap.page, hugepage_bytes, all })
}

fn field(heap: &Heap<'_>, name: &str) -> Result<usize, String> {
    let (at, end) = (heap.table.get(&format!("tracker.{name}"))?, heap.table.get("tracker.bytes")?);
    if at + 2 > end {
        return Err(format!("the library's table is damaged: tracker.{name} is {at}"));
    }
    Ok(at as usize)
}

/// Calls `each` with hugepage, first page there, and pages there.
fn parts(first: u64, pages: u64, in_each: u64, mut each: impl FnMut(u64, u64, u64)) {
    let (mut page, end) = (first, first + pages);
    while page < end {
        let next = ((page / in_each + 1) * in_each).min(end);
        each(page / in_each, page % in_each, next - page);
        page = next;
    }
}

fn add_memory(heap: &Heap<'_>, hugepage_bytes: u64, all: &mut [Hugepage]) -> Result<(), String> {
    let pages = Pages::open(heap.reader.memory.pid())?;
    let region = heap.base..heap.base + all.len() as u64 * hugepage_bytes;
    let mut found = Vec::new();
    if !pages.scan(region.clone(), |range, is_huge| found.push((range, is_huge))) {
        pages.each(region, 0, |at| found.push((at..at + pages.page(), false)));
    } else {
        all.iter_mut().for_each(|hugepage| hugepage.is_huge = false);
    }
    for (range, is_huge) in found {
        let mut at = range.start;
        while at < range.end {
            let i = (at - heap.base) / hugepage_bytes;
            let next = (heap.base + (i + 1) * hugepage_bytes).min(range.end);
            if let Some(hugepage) = all.get_mut(i as usize) {
                hugepage.resident_bytes += next - at;
                hugepage.is_huge |= is_huge;
            }
            at = next;
        }
    }
    Ok(())
}

pub(crate) fn spans_on(heap: &Heap<'_>, hugepage: u64) -> Result<Vec<SpanRow>, String> {
    let each = heap.table.get("hugepage.bytes")? / heap.page;
    let (start, end) = (hugepage.saturating_mul(each), hugepage.saturating_add(1).saturating_mul(each));
    if start >= heap.granted {
        let (name, count) = (heap.reader.memory.name(), heap.granted.div_ceil(each));
        return Err(format!("{name}: the heap has {count} hugepages, numbered from 0; there is no {hugepage}"));
    }
    let from = heap.spans.partition_point(|span| span.first() + heap.pages_of(span) <= start);
    let on_it = heap.spans[from..].iter().take_while(|span| span.first() < end);
    on_it.map(|span| row(heap, span, start..end)).collect()
}

fn row(heap: &Heap<'_>, span: &Span, on: std::ops::Range<u64>) -> Result<SpanRow, String> {
    let (first, span_pages) = (span.first(), heap.pages_of(span));
    let (from, to) = (first.max(on.start), (first + span_pages).min(on.end));
    let slab = |class: u8| {
        let class = heap.class(class).unwrap_or_default();
        (class.object, heap.record(first).used, class.capacity)
    };
    let own = |own: u32| if own > 0 { heap.own_name(own) } else { Ok(String::new()) };
    let (kind, (object_bytes, used, capacity), owner) = match span {
        Span::Slab { class, own: of, .. } => ("slab", slab(*class), own(*of)?),
        Span::Morphed { entry, .. } => ("two classes", slab(entry.to), String::new()),
        Span::Large { own: of, .. } => ("large", (0, 1, 1), own(*of)?),
        Span::Cached { cache, .. } => match heap.caches.all.get(*cache) {
            Some(cache) => ("cache", (cache.size, 0, cache.capacity), cache.name.clone()),
            None => ("cache", (0, 0, 0), String::new()),
        },
        Span::Notes { .. } => ("notes", (0, 0, 0), String::new()),
    };
    let pages = to.saturating_sub(from);
    Ok(SpanRow { first_page: from - on.start, pages, span_pages, kind, object_bytes, used, capacity, owner })
}

#[cfg(test)]
mod tests;
