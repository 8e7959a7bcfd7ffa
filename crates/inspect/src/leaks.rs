//! Lost objects: no pointer leads to them.
//!
//! **What.** A conservative mark: an aligned word of a root or a kept object keeps the object at or
//! around its value. Of a lost tree the report has the top, with the sum below it; buffers of the
//! debugging kit are also grouped by allocation site.
//!
//! **From.** Boehm and Weiser 1988; Bonwick94 §6.
//!
//! **State.** Roots: registers; stacks from the stack pointer on; other writable memory, and
//! anonymous memory once writable; free objects that a cache keeps constructed, which own what
//! their constructor allocated. Not the heap, nor the library's data about it.
//!
//! **Failure.** Numbers that look like addresses hide leaks; compressed or unaligned pointers cause
//! false ones.
//!
//! **Cost.** One read of each word of memory, two of lost objects; 33 bytes for each object.

use crate::caches::Place;
use crate::heap::{Heap, Kind, Object};
use crate::memory::{Map, words};
use crate::names::Names;
use serde::Serialize;
use std::collections::BTreeMap;

/// Bytes below the stack pointer that a function uses without moving it.
const RED_ZONE: u64 = 128;
const PIECE: usize = 1 << 16;

/// A lost object, and what only it leads to.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Group {
    #[serde(serialize_with = "crate::whatis::as_hex")]
    pub address: u64,
    pub object_bytes: u64,
    /// Says `class`, `large`, `huge`, `buffer` (of the debugging kit) or `cache`.
    pub kind: &'static str,
    /// Empty for malloc.
    pub cache: String,
    /// Lost objects, with the top itself.
    pub objects: u64,
    pub bytes: u64,
}

/// An allocation site that the kit recorded.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Site {
    pub stack: Vec<String>,
    /// Tops that were allocated there.
    pub roots: u64,
    /// Lost objects: the tops and those below them.
    pub objects: u64,
    pub bytes: u64,
    #[serde(serialize_with = "crate::whatis::as_hex")]
    pub example: u64,
}

#[derive(Clone, Debug, Default, Serialize)]
pub struct Leaks {
    /// Live objects.
    pub objects: u64,
    pub bytes: u64,
    pub root_bytes: u64,
    pub lost_objects: u64,
    pub lost_bytes: u64,
    /// Groups, the largest first.
    pub groups: Vec<Group>,
    /// Sites, those with most bytes first.
    pub sites: Vec<Site>,
    pub warnings: Vec<String>,
}

pub(crate) struct Objects {
    pub all: Vec<Object>,
    /// For each page of the heap, the first object that begins on or behind it.
    first: Vec<u32>,
    base: u64,
    page: u64,
    granted: u64,
    /// Objects outside of the heap: start in `all`, address range.
    apart_at: usize,
    apart: (u64, u64),
}

impl Objects {
    pub fn new(heap: &Heap<'_>) -> Result<Self, String> {
        let mut all = Vec::new();
        heap.for_each_out(|object| all.push(object));
        if u32::try_from(all.len()).is_err() {
            return Err(format!("{} objects are out, more than this search can tell apart", all.len()));
        }
        all.sort_unstable_by_key(|o| (heap.page_of(o.start).is_none(), o.start));
        let apart_at = all.partition_point(|o| heap.page_of(o.start).is_some());
        let mut first = Vec::with_capacity(heap.granted as usize + 1);
        let mut at = 0;
        for page in 0..=heap.granted {
            while at < apart_at && all[at].start < heap.address(page) {
                at += 1;
            }
            first.push(at as u32);
        }
        let last = all[apart_at..].last().map_or(0, |o| o.start + o.size.max(1));
        let apart = (all.get(apart_at).map_or(u64::MAX, |o| o.start), last);
        Ok(Self { all, first, base: heap.base, page: heap.page, granted: heap.granted, apart_at, apart })
    }

    /// The object that holds an address.
    pub fn around(&self, at: u64) -> Option<usize> {
        // An object of no bytes is where it begins.
        let within = |i: usize| at - self.all[i].start < self.all[i].size.max(1);
        let page = at.wrapping_sub(self.base) / self.page;
        if page < self.granted {
            let (from, to) = (self.first[page as usize] as usize, self.first[page as usize + 1] as usize);
            let i = from + self.all[from..to].partition_point(|o| o.start <= at);
            return i.checked_sub(1).filter(|i| within(*i));
        }
        if at < self.apart.0 || at >= self.apart.1 {
            return None;
        }
        let i = self.apart_at + self.all[self.apart_at..].partition_point(|o| o.start <= at);
        (i > self.apart_at).then(|| i - 1).filter(|i| within(*i))
    }
}

/// # Errors
/// The library's tables cannot be read.
pub fn leaks(heap: &Heap<'_>) -> Result<Leaks, String> {
    let objects = Objects::new(heap)?;
    let mut found = Leaks { objects: objects.all.len() as u64, ..Leaks::default() };
    found.bytes = objects.all.iter().map(|o| o.size).sum();
    let mut kept = vec![false; objects.all.len()];
    let mut open = Vec::new();
    let mut keep = |word: u64, open: &mut Vec<u32>| {
        if let Some(i) = objects.around(word).filter(|i| !kept[*i]) {
            kept[i] = true;
            open.push(i as u32);
        }
    };
    for thread in heap.reader.memory.threads() {
        thread.registers.iter().for_each(|word| keep(*word, &mut open));
    }
    if heap.reader.memory.threads().is_empty() {
        found.warnings.push("no thread's registers are known: what only a register leads to counts as lost".to_owned());
    }
    for (from, to) in roots(heap)? {
        found.root_bytes += to - from;
        for_each_word(heap, from, to, |_, word| keep(word, &mut open));
    }
    for cache in &heap.caches.all {
        keep(cache.argument, &mut open);
        let mut kept = Vec::new();
        heap.for_each_in_cache(cache, |at, place| match place {
            Place::Built => kept.push(at),
            Place::Array | Place::Depot if cache.has_constructor => kept.push(at),
            _ => (),
        });
        for at in kept {
            for_each_word(heap, at, at + cache.size, |_, word| keep(word, &mut open));
        }
    }
    while let Some(i) = open.pop() {
        let object = objects.all[i as usize];
        for_each_word(heap, object.start, object.start + object.size, |_, word| keep(word, &mut open));
    }
    found.groups = groups(heap, &objects, &kept);
    found.sites = sites(heap, &found.groups);
    found.lost_objects = found.groups.iter().map(|group| group.objects).sum();
    found.lost_bytes = found.groups.iter().map(|group| group.bytes).sum();
    let locks = heap.held.join(", ");
    if !locks.is_empty() {
        let what = format!("a thread was changing the heap ({locks}): an object on its way may count as lost");
        found.warnings.push(what);
    }
    if !heap.broken.is_empty() {
        found.warnings.push(format!("the heap is broken in {} places (`verify` says where)", heap.broken.len()));
    }
    found.warnings.extend(heap.reader.memory.warnings());
    Ok(found)
}

/// Calls `each` with place and value of each word of a range; unreadable words are zero.
pub(crate) fn for_each_word(heap: &Heap<'_>, from: u64, to: u64, mut each: impl FnMut(u64, u64)) {
    let mut buffer = [0; PIECE];
    let mut at = from.next_multiple_of(8);
    while at < to {
        let len = (to - at).min(PIECE as u64) as usize;
        buffer[..len].fill(0);
        heap.reader.read(at, &mut buffer[..len]);
        (at..).step_by(8).zip(words(&buffer[..len])).for_each(|(at, word)| each(at, word));
        at += len as u64;
    }
}

/// The tops of lost trees; one object stands for a ring. A search absorbs each group whose top it
/// reaches, so no top is below another.
fn groups(heap: &Heap<'_>, objects: &Objects, kept: &[bool]) -> Vec<Group> {
    const NONE: u32 = u32::MAX;
    let mut group_of = vec![NONE; objects.all.len()];
    // `None` once absorbed.
    let mut tops: Vec<Option<Group>> = Vec::new();
    let mut open = Vec::new();
    for top in (0..objects.all.len()).filter(|i| !kept[*i]) {
        if group_of[top] != NONE {
            continue;
        }
        let number = tops.len() as u32;
        let object = objects.all[top];
        let kind = object.kind.name();
        let cache = cache_of(heap, object);
        let mut group = Group { address: object.start, object_bytes: object.size, kind, cache, objects: 0, bytes: 0 };
        group_of[top] = number;
        open.push(top);
        while let Some(i) = open.pop() {
            let object = objects.all[i];
            group.objects += 1;
            group.bytes += object.size;
            for_each_word(heap, object.start, object.start + object.size, |_, word| {
                let Some(to) = objects.around(word).filter(|to| !kept[*to]) else { return };
                if group_of[to] == NONE {
                    group_of[to] = number;
                    open.push(to);
                } else if let Some(other) = tops.get_mut(group_of[to] as usize)
                    && other.as_ref().is_some_and(|other| other.address == objects.all[to].start)
                    && let Some(other) = other.take()
                {
                    group.objects += other.objects;
                    group.bytes += other.bytes;
                }
            });
        }
        tops.push(Some(group));
    }
    let mut groups: Vec<Group> = tops.into_iter().flatten().collect();
    groups.sort_by_key(|group| (group.object_bytes, std::cmp::Reverse(group.bytes), group.address));
    groups
}

pub(crate) fn cache_of(heap: &Heap<'_>, object: Object) -> String {
    let id = match object.kind {
        Kind::Cached(id) => Some(id),
        Kind::Buffer => heap.kit.at(object.start).and_then(|buffer| buffer.target.checked_sub(1)),
        _ => None,
    };
    heap.caches.name_of(id)
}

fn sites(heap: &Heap<'_>, groups: &[Group]) -> Vec<Site> {
    let mut by_stack: BTreeMap<u32, Site> = BTreeMap::new();
    let names = Names::new(heap.reader.memory);
    for group in groups {
        let Some(buffer) = heap.kit.at(group.address).filter(|buffer| buffer.allocated.stack != 0) else { continue };
        let frames = || heap.kit.stack(&heap.reader, buffer.allocated.stack).into_iter();
        let stack = || frames().map(|pc| names.describe(pc)).collect();
        let site = || Site { stack: stack(), roots: 0, objects: 0, bytes: 0, example: group.address };
        let site = by_stack.entry(buffer.allocated.stack).or_insert_with(site);
        site.roots += 1;
        site.objects += group.objects;
        site.bytes += group.bytes;
    }
    let mut sites: Vec<Site> = by_stack.into_values().collect();
    sites.sort_by_key(|site| (std::cmp::Reverse(site.bytes), site.example));
    sites
}

/// Ranges of memory.
pub(crate) fn roots(heap: &Heap<'_>) -> Result<Vec<(u64, u64)>, String> {
    let own = own_memory(heap)?;
    let threads = heap.reader.memory.threads();
    let mut all = Vec::new();
    let maps = heap.reader.memory.maps();
    let behind = maps.iter().skip(1).map(Some).chain([None]);
    for (map, _) in maps.iter().zip(behind).filter(|(map, behind)| is_root(map, *behind)) {
        // Below all stack pointers a stack is unused.
        let lowest = threads.iter().map(|t| t.stack).filter(|stack| map.contains(*stack)).min();
        let start = lowest.map_or(map.start, |stack| (stack - RED_ZONE.min(stack)).max(map.start));
        let mut parts = vec![(start, map.end)];
        for (from, to) in &own {
            parts = parts.into_iter().flat_map(|part| without(part, (*from, *to))).collect();
        }
        all.extend(parts);
    }
    Ok(all)
}

/// Whether a mapping may hold roots; `behind` is the next mapping.
fn is_root(map: &Map, behind: Option<&Map>) -> bool {
    // Written, then protected: anonymous memory, and relocated data, which precede a module's
    // writable ones.
    let relro = behind.is_some_and(|b| b.start == map.end && b.writable && b.path == map.path);
    let was_written = !map.executable && (map.path.is_empty() || map.is_file() && relro);
    map.readable && (map.writable || was_written) && !map.path.starts_with("/dev/") && !map.path.starts_with("[v")
}

fn without((start, end): (u64, u64), (from, to): (u64, u64)) -> impl Iterator<Item = (u64, u64)> {
    let parts = if from >= end || to <= start { [(start, end), (0, 0)] } else { [(start, from), (to, end)] };
    parts.into_iter().filter(|(start, end)| start < end)
}

/// Memory that also names lost objects: the heap, huge and kept mappings, the library's data.
fn own_memory(heap: &Heap<'_>) -> Result<Vec<(u64, u64)>, String> {
    let get = |name: &str| heap.table.get(name);
    let word = |at: u64| heap.reader.word(at);
    let mut own = vec![
        (heap.map_at, heap.base + heap.granted * heap.page),
        (heap.records_at, heap.base),
        (heap.heap, heap.heap + get("heap.bytes")?),
    ];
    own.extend(heap.huge.iter().chain(&heap.kept).map(|(at, bytes)| (*at, at.saturating_add(*bytes))));
    let huge = heap.heap + get("heap.huge")?;
    let (entries, capacity) = (word(huge + get("huge.entries")?)?, word(huge + get("huge.capacity")?)?);
    own.push((entries, entries.saturating_add(capacity.saturating_mul(get("huge.entry.stride")?))));
    let slots = word(get("own")? + get("own.slots")?)?;
    let used = word(get("own")? + get("own.used")?)?;
    own.push((slots, slots.saturating_add(used.saturating_mul(get("own.slot.bytes")?))));
    let bytes = get("thread.bytes")?;
    own.extend(heap.thread_caches()?.into_iter().map(|(at, _)| (at, at + bytes)));
    let bytes = get("area.bytes")?;
    own.extend(heap.areas()?.into_iter().map(|at| (at, at + bytes)));
    own.extend(heap.kit.own.iter().chain(&heap.caches.own));
    own.retain(|(from, to)| from < to);
    Ok(own)
}

#[cfg(test)]
mod tests;
