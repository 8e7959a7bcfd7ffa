//! The ledger: what a process's memory is for, in rows that sum to what the kernel charges. The
//! process runs, so rows may be some pages apart.
//!
//! **From.** TEMERAIRE Figure 7 for the page heap's part.
//!
//! **State.**
//! ```text
//! Σ Rss of all mappings = heap: live + large + huge + other heaps + caches + free in slabs + free pages
//!                               + metadata + library
//!                       + the rest: files, stack, brk, shared memory, other anonymous memory
//! ```
//! Slabs' pages with memory are live objects, as far as their bytes (rounded up) and those of free
//! objects in caches fit; the rest is free in slabs.
//!
//! **Cost.** 10 ms for a gigabyte of heap.

use crate::heap::{Heap, Span};
use crate::live::Live;
use crate::reader::u32_in;
use crate::resident::{Mapping, Pages, mappings};
use serde::Serialize;
use std::fs;
use std::ops::Range;

#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Row {
    pub name: &'static str,
    pub bytes: u64,
    #[serde(skip)]
    pub text: &'static str,
}

/// Without private heaps.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct ClassRow {
    pub object_bytes: u64,
    pub slabs: u64,
    pub memory_bytes: u64,
    /// With the program.
    pub live: u64,
    pub in_caches: u64,
    pub free: u64,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Ledger {
    pub pid: u32,
    pub rss_bytes: u64,
    pub pss_bytes: u64,
    pub swap_bytes: u64,
    pub heap_bytes: u64,
    /// Charged for the mappings of the page heap and its metadata.
    pub region_rss_bytes: u64,
    pub heap: Vec<Row>,
    pub rest: Vec<Row>,
    pub classes: Vec<ClassRow>,
}

#[derive(Default)]
struct InCaches {
    threads: u64,
    processors: u64,
    transfer: u64,
}

impl Ledger {
    pub const ROWS: [&'static str; HEAP.len() + REST.len()] = {
        let (mut all, mut i) = ([""; HEAP.len() + REST.len()], 0);
        while i < all.len() {
            all[i] = if i < HEAP.len() { HEAP[i].0 } else { REST[i - HEAP.len()].0 };
            i += 1;
        }
        all
    };

    pub fn value(&self, name: &str) -> Option<u64> {
        match name {
            "rss_bytes" => Some(self.rss_bytes),
            "pss_bytes" => Some(self.pss_bytes),
            "swap_bytes" => Some(self.swap_bytes),
            "heap_bytes" => Some(self.heap_bytes),
            name => self.heap.iter().chain(&self.rest).find(|row| row.name == name).map(|row| row.bytes),
        }
    }
}

/// # Errors
/// No such process, no permission, or not on Craton.
pub fn ledger(pid: u32) -> Result<Ledger, String> {
    ledger_of(&Heap::outline(&Live::watch(pid)?)?)
}

pub(crate) fn ledger_of(heap: &Heap<'_>) -> Result<Ledger, String> {
    let pid = heap.reader.memory.pid();
    let pages = Pages::open(pid)?;
    let all = mappings(pid)?;
    let (classes, cached) = classes(heap)?;

    let region = heap.base..heap.base + heap.granted * heap.page;
    let charged = |range: &Range<u64>| {
        let mut bytes = 0;
        each_charged(&pages, &all, range, |_| bytes += pages.page());
        bytes
    };
    let on = on_pages(heap, &pages, &all, &region);
    let metadata_at = [heap.map_at, heap.records_at, heap.lengths_at].into_iter().min().unwrap_or(heap.base);
    let is_metadata = |m: &&Mapping| m.rss_bytes > 0 && m.map.start < heap.base && m.map.end > metadata_at;
    let parts = all.iter().filter(is_metadata).map(|m| m.map.start.max(metadata_at)..m.map.end.min(heap.base));
    let metadata: Vec<Range<u64>> = parts.chain(arenas(heap)?).collect();
    let library: Vec<Range<u64>> = library(heap, &all);
    let huge: Vec<Range<u64>> = heap.huge.iter().map(|(at, bytes)| *at..at + bytes).collect();
    let kept: Vec<Range<u64>> = heap.kept.iter().map(|(at, bytes)| *at..at + bytes).collect();
    let sum = |ranges: &[Range<u64>]| ranges.iter().map(charged).sum::<u64>();
    let library_bytes = all.iter().filter(|m| library.contains(&(m.map.start..m.map.end))).map(|m| m.rss_bytes).sum();
    let region_rss_bytes =
        all.iter().filter(|m| m.map.start < region.end && m.map.end > metadata_at).map(|m| m.rss_bytes).sum();

    let live: u64 = classes.iter().map(|class| class.live * class.object_bytes).sum::<u64>() + on.old_bytes;
    let in_caches = cached.threads + cached.processors + cached.transfer;
    let live_bytes = live.min(on.slabs.saturating_sub(in_caches));
    let mut left = on.slabs - live_bytes;
    let mut take = |bytes: u64| {
        let taken = bytes.min(left);
        left -= taken;
        taken
    };
    let [threads, processors, transfer] = [cached.threads, cached.processors, cached.transfer].map(&mut take);
    let slab_free_bytes = left;
    let row = |((name, text), bytes): (&(&'static str, &'static str), u64)| Row { name, bytes, text };
    let heap_bytes = [
        live_bytes,
        on.large,
        sum(&huge),
        on.heaps,
        on.caches,
        threads,
        processors,
        transfer,
        slab_free_bytes,
        on.free,
        sum(&kept),
        sum(&metadata),
        library_bytes,
    ];

    let mut ours: Vec<Range<u64>> = huge;
    ours.extend(kept);
    ours.extend(metadata);
    ours.push(region);
    let mut rest_bytes = [0; REST.len()];
    for mapping in all.iter().filter(|m| m.rss_bytes > 0 && !library.contains(&(m.map.start..m.map.end))) {
        let inside = ours.iter().map(|range| range.start.max(mapping.map.start)..range.end.min(mapping.map.end));
        let ours: u64 = inside.filter(|part| part.start < part.end).map(|part| charged(&part)).sum();
        rest_bytes[kind(mapping)] += mapping.rss_bytes.saturating_sub(ours);
    }
    Ok(Ledger {
        pid,
        rss_bytes: all.iter().map(|m| m.rss_bytes).sum(),
        pss_bytes: all.iter().map(|m| m.pss_bytes).sum(),
        swap_bytes: all.iter().map(|m| m.swap_bytes).sum(),
        heap_bytes: heap_bytes.iter().sum(),
        region_rss_bytes,
        heap: HEAP.iter().zip(heap_bytes).map(row).collect(),
        rest: REST.iter().zip(rest_bytes).map(row).collect(),
        classes,
    })
}

const HEAP: [(&str, &str); 13] = [
    ("live_bytes", "objects of size classes that the program has, as rounded up"),
    ("large_bytes", "objects above 128 KiB, with memory"),
    ("huge_bytes", "objects with their own mapping"),
    ("heaps_bytes", "of craton_heap_create and of hints"),
    ("object_caches_bytes", "slabs of object caches"),
    ("thread_cache_bytes", "free objects in threads' caches"),
    ("processor_cache_bytes", "free objects in per-CPU caches"),
    ("transfer_bytes", "free objects in batches between threads"),
    ("slab_free_bytes", "free places on slabs, and what slabs never used"),
    ("free_page_bytes", "pages without objects: kept for the next requests, slack, not released yet"),
    ("kept_mapping_bytes", "freed mappings of huge objects, kept for the next"),
    ("metadata_bytes", "page map, slab records, per-CPU caches, tables"),
    ("library_bytes", "the library's code and data"),
];

const REST: [(&str, &str); 7] = [
    ("code_bytes", "programs and libraries, as mapped from files"),
    ("file_data_bytes", "their written data, and other private mappings of files"),
    ("shared_bytes", "files and memory that are shared by mapping"),
    ("stack_bytes", "the first thread's stack"),
    ("brk_bytes", "what the program or the C library took by brk"),
    ("kernel_bytes", "mappings of the kernel"),
    ("anonymous_bytes", "other memory: threads' stacks, the program's mappings, other allocators"),
];

fn kind(mapping: &Mapping) -> usize {
    let map = &mapping.map;
    match map.path.as_str() {
        _ if mapping.shared => 2,
        "[stack]" => 3,
        "[heap]" => 4,
        "" => 6,
        path if path.starts_with("[anon") => 6,
        path if path.starts_with('[') => 5,
        _ if map.writable => 1,
        _ => 0,
    }
}

fn each_charged(pages: &Pages, all: &[Mapping], range: &Range<u64>, mut each: impl FnMut(u64)) {
    for m in all.iter().filter(|m| m.rss_bytes > 0 && m.map.start < range.end && m.map.end > range.start) {
        let part = m.map.start.max(range.start)..m.map.end.min(range.end);
        // Memory that was only read shows the system's page of zeros, which is not charged.
        let zeros = pages.bytes(m.map.start..m.map.end).saturating_sub(m.rss_bytes);
        pages.each(part, zeros, &mut each);
    }
}

#[derive(Default)]
struct OnPages {
    slabs: u64,
    large: u64,
    heaps: u64,
    caches: u64,
    free: u64,
    old_bytes: u64,
}

fn on_pages(heap: &Heap<'_>, pages: &Pages, all: &[Mapping], region: &Range<u64>) -> OnPages {
    let mut on = OnPages::default();
    let mut spans = heap.spans.iter().peekable();
    let end = |span: &Span| heap.address(span.first() + heap.pages_of(span));
    each_charged(pages, all, region, |at| {
        while spans.next_if(|span| end(span) <= at).is_some() {}
        let place = match spans.peek().filter(|span| heap.address(span.first()) <= at) {
            Some(Span::Slab { own: 0, .. } | Span::Morphed { .. }) => &mut on.slabs,
            Some(Span::Large { own: 0, .. }) => &mut on.large,
            Some(Span::Slab { .. } | Span::Large { .. }) => &mut on.heaps,
            Some(Span::Cached { .. } | Span::Notes { .. }) => &mut on.caches,
            None => &mut on.free,
        };
        *place += pages.page();
    });
    for span in &heap.spans {
        if let Span::Morphed { entry, .. } = span {
            on.old_bytes += entry.old_objects().map(|(_, size, _)| size).sum::<u64>();
        }
    }
    on
}

fn arenas(heap: &Heap<'_>) -> Result<Vec<Range<u64>>, String> {
    let get = |name: &str| heap.table.get(name);
    let area_bytes = get("area.bytes")?;
    let mut all: Vec<Range<u64>> = heap.areas()?.into_iter().map(|at| at..at + area_bytes).collect();
    let huge = heap.heap + get("heap.huge")?;
    let entries = heap.reader.word(huge + get("huge.entries")?)?;
    let capacity = heap.reader.word(huge + get("huge.capacity")?)?;
    all.push(entries..entries + capacity * get("huge.entry.stride")?);
    // In the library's data they are counted there.
    let is_inside = |range: &Range<u64>| range.start >= heap.base && range.start < heap.base + heap.granted * heap.page;
    all.retain(|range| range.start != 0 && range.start < range.end && !is_inside(range));
    Ok(all)
}

/// Unless it is the program.
fn library(heap: &Heap<'_>, all: &[Mapping]) -> Vec<Range<u64>> {
    let Some(own) = all.iter().find(|m| m.map.contains(heap.table.at)) else { return Vec::new() };
    let program = fs::read_link(format!("/proc/{}/exe", heap.reader.memory.pid()));
    if own.map.path.is_empty() || program.is_ok_and(|program| program.to_str() == Some(own.map.path.as_str())) {
        return Vec::new();
    }
    let mut ranges: Vec<Range<u64>> = Vec::new();
    for m in all {
        // Its zeros follow its data.
        let follows = m.map.path.is_empty() && ranges.last().is_some_and(|last| last.end == m.map.start);
        // The page of a `stats_dir` lies in its data.
        let within = m.map.path.ends_with(".stats") && ranges.last().is_some_and(|last| last.end == m.map.start);
        if m.map.path == own.map.path || follows || within {
            ranges.push(m.map.start..m.map.end);
        }
    }
    ranges
}

fn classes(heap: &Heap<'_>) -> Result<(Vec<ClassRow>, InCaches), String> {
    let mut rows: Vec<ClassRow> =
        heap.table.classes.iter().map(|class| ClassRow { object_bytes: class.object, ..ClassRow::default() }).collect();
    for span in &heap.spans {
        let (class, first) = match span {
            Span::Slab { first, class, own: 0 } => (*class, *first),
            Span::Morphed { first, entry, .. } => (entry.to, *first),
            _ => continue,
        };
        let Some(row) = rows.get_mut(usize::from(class)) else { continue };
        let (used, capacity) = (heap.record(first).used, heap.class(class).map_or(0, |class| class.capacity));
        row.slabs += 1;
        row.memory_bytes += heap.pages_of(span) * heap.page;
        row.live += used;
        row.free += capacity.saturating_sub(used);
    }
    let mut cached = InCaches::default();
    let mut counts = vec![0u64; rows.len()];
    let sum =
        |counts: &[u64], rows: &[ClassRow]| counts.iter().zip(rows).map(|(n, row)| n * row.object_bytes).sum::<u64>();
    count_threads(heap, &mut counts)?;
    cached.threads = sum(&counts, &rows);
    add_up(&mut rows, &mut counts);
    let count = heap.table.get("area.count")?;
    for area in heap.areas()? {
        for (class, n) in heap.table.classes.iter().zip(&mut counts).skip(1) {
            *n += u64::from(heap.reader.u32(area + class.count_at + count)?).min(2 * class.batch);
        }
    }
    cached.processors = sum(&counts, &rows);
    add_up(&mut rows, &mut counts);
    count_transfer(heap, &mut counts)?;
    cached.transfer = sum(&counts, &rows);
    add_up(&mut rows, &mut counts);
    rows.retain(|row| row.slabs > 0);
    Ok((rows, cached))
}

fn add_up(rows: &mut [ClassRow], counts: &mut [u64]) {
    for (row, n) in rows.iter_mut().zip(counts) {
        // A list's count may be a little too high.
        let free = std::mem::take(n).min(row.live);
        row.live -= free;
        row.in_caches += free;
    }
}

fn count_threads(heap: &Heap<'_>, counts: &mut [u64]) -> Result<(), String> {
    let get = |name: &str| heap.table.get(&format!("thread.{name}")).map(|value| value as usize);
    let [lists, list_bytes, room, one] = [get("lists")?, get("list.bytes")?, get("list.room")?, get("room.one")?];
    let [paces, pace_bytes, max] = [get("paces")?, get("pace.bytes")?, get("pace.max")?];
    // Lists of classes that await a sample; those of no class were given nothing.
    let [awaited, awaited_bytes, awaited_count] = [get("awaited")?, get("awaited.bytes")?, get("awaited.count")?];
    let [class, given, popped] = [get("awaited.class")?, get("awaited.given")?, get("room.popped")?];
    for (cache, _) in heap.thread_caches()?.into_iter().filter(|(_, taken)| *taken) {
        let bytes = heap.reader.bytes(cache, get("bytes")?)?;
        for (class, n) in counts.iter_mut().enumerate().skip(1) {
            let room = u32_in(&bytes, lists + class * list_bytes + room) as i32;
            let max = u32_in(&bytes, paces + class * pace_bytes + max) as i32;
            *n += u64::try_from(max - room.div_euclid(one as i32)).unwrap_or(0);
        }
        for at in (0..awaited_count).map(|n| awaited + n * awaited_bytes) {
            let popped = u32_in(&bytes, at + room) / popped as u32;
            if let Some(n) = counts.get_mut(u32_in(&bytes, at + class) as usize) {
                *n += u64::from(u32_in(&bytes, at + given).saturating_sub(popped));
            }
        }
    }
    Ok(())
}

fn count_transfer(heap: &Heap<'_>, counts: &mut [u64]) -> Result<(), String> {
    let get = |name: &str| heap.table.get(name);
    let (shards, stride, transfer) = (get("heap.shards")?, get("shard.bytes")?, get("shard.transfer")?);
    let (class_bytes, slots) = (get("transfer.class.bytes")?, get("transfer.class.slots")?);
    for shard in 0..heap.shards {
        let at = heap.heap + shards + shard * stride + transfer;
        for class in 1..counts.len() as u64 {
            let words = heap.reader.bytes(at + (class - 1) * class_bytes, slots as usize * 8)?;
            let full = crate::memory::words(&words).filter(|first| *first != 0).count() as u64;
            counts[class as usize] += full * heap.table.classes[class as usize].batch;
        }
    }
    Ok(())
}
