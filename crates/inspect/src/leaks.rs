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
//! **Cost.** One read of each word of memory, two of lost objects; three bits for each object, and
//! four bytes if some are lost.

use crate::caches::Place;
use crate::heap::{Heap, Kind, Object};
use crate::memory::Map;
use crate::names::Names;
use crate::objects::{BATCH, Bits, Objects};
use serde::Serialize;
use std::collections::BTreeMap;

/// Bytes below the stack pointer that a function uses without moving it.
const RED_ZONE: u64 = 128;

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

/// # Errors
/// The library's tables cannot be read.
pub fn leaks(heap: &Heap<'_>) -> Result<Leaks, String> {
    let objects = Objects::new(heap)?;
    let mut found = Leaks { objects: objects.count, bytes: objects.bytes, ..Leaks::default() };
    let mut kept = Bits::new(objects.numbers());
    // By address: that of an object of no bytes names it, too.
    let mut open = Vec::new();
    let mut keep = |word: u64, open: &mut Vec<u64>| {
        if let Some((i, object)) = objects.around(word)
            && kept.insert(i)
        {
            open.push(object.start);
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
        heap.reader.for_each_word(from, to, |_, word| keep(word, &mut open));
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
            heap.reader.for_each_word(at, at + cache.size, |_, word| keep(word, &mut open));
        }
    }
    let mut batch = Vec::new();
    while !open.is_empty() {
        let from = open.len().saturating_sub(BATCH);
        objects.fetch(&heap.reader, open.drain(from..), &mut batch);
        for object in batch.drain(..) {
            heap.reader.for_each_word(object.start, object.start + object.size, |_, word| keep(word, &mut open));
        }
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

/// The tops of lost trees; one object stands for a ring. A search absorbs each group whose top it
/// reaches, so no top is below another.
fn groups(heap: &Heap<'_>, objects: &Objects, kept: &Bits) -> Vec<Group> {
    const NONE: u32 = u32::MAX;
    let mut lost = Vec::new();
    objects.for_each(|i, object| {
        if !kept.has(i) {
            lost.push(object);
        }
    });
    let mut group_of = if lost.is_empty() { Vec::new() } else { vec![NONE; objects.numbers()] };
    // `None` once absorbed.
    let mut tops: Vec<Option<Group>> = Vec::new();
    let mut open = Vec::new();
    for top in lost {
        let Some((i, _)) = objects.around(top.start).filter(|(i, _)| group_of[*i as usize] == NONE) else { continue };
        let number = tops.len() as u32;
        let (kind, cache) = (top.kind.name(), cache_of(heap, top));
        let mut group = Group { address: top.start, object_bytes: top.size, kind, cache, objects: 0, bytes: 0 };
        group_of[i as usize] = number;
        open.push(top);
        while let Some(object) = open.pop() {
            group.objects += 1;
            group.bytes += object.size;
            heap.reader.for_each_word(object.start, object.start + object.size, |_, word| {
                let Some((to, object)) = objects.around(word).filter(|(to, _)| !kept.has(*to)) else { return };
                let before = group_of[to as usize];
                if before == NONE {
                    group_of[to as usize] = number;
                    open.push(object);
                } else if let Some(other) = tops.get_mut(before as usize)
                    && other.as_ref().is_some_and(|other| other.address == object.start)
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
