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
//! **Threads.** Those of [`exhaust`] follow pointers together; a bit for each object says that none
//! has led there yet.
//!
//! **Cost.** One read of each word of memory, two of lost objects; two bits for each object, eight
//! bytes for each that was reached and not read yet, and four for each if some are lost.

use crate::caches::Place;
use crate::captive::{Sample, samples};
use crate::exhaust::{exhaust, threads};
use crate::heap::{Heap, Kind, Object};
use crate::memory::{Map, Memory};
use crate::names::Names;
use crate::objects::{BATCH, Found, Objects, SharedBits};
use crate::profile::Profile;
use crate::reader::Reader;
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
    /// Of the smallest and of the largest top.
    pub least_bytes: u64,
    pub most_bytes: u64,
    #[serde(serialize_with = "crate::whatis::as_hex")]
    pub example: u64,
}

impl Site {
    fn of(stack: Vec<String>, groups: &[&Group]) -> Self {
        let sizes = || groups.iter().map(|group| group.object_bytes);
        Self {
            stack,
            roots: groups.len() as u64,
            objects: groups.iter().map(|group| group.objects).sum(),
            bytes: groups.iter().map(|group| group.bytes).sum(),
            least_bytes: sizes().min().unwrap_or(0),
            most_bytes: sizes().max().unwrap_or(0),
            example: groups.iter().map(|group| group.address).min().unwrap_or(0),
        }
    }
}

/// An allocation site of lost objects by the heap profile's samples: estimates.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Sampled {
    pub stack: Vec<String>,
    /// Lost objects that are samples.
    pub samples: u64,
    /// For which they stand.
    pub objects: u64,
    pub bytes: u64,
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
    /// Of the objects that the kit does not know, those with most bytes first.
    pub sampled: Vec<Sampled>,
    pub warnings: Vec<String>,
}

/// # Errors
/// The library's tables cannot be read.
pub fn leaks(heap: &Heap<'_>) -> Result<Leaks, String> {
    let objects = Objects::new(heap)?;
    let mut found = Leaks { objects: objects.count, bytes: objects.bytes, ..Leaks::default() };
    let left = SharedBits::from(objects.live());
    let mut open = Vec::new();
    let keep = |word: u64, open: &mut Vec<Found>| {
        open.extend(objects.find(word).filter(|found| left.remove(found.number)));
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
    follow(&objects, &left, heap.reader.memory, open);
    found.groups = groups(heap, &objects, &left);
    found.sites = sites(heap, &found.groups);
    found.sampled = sampled(heap, &objects, &left).unwrap_or_default();
    found.lost_objects = found.groups.iter().map(|group| group.objects).sum();
    found.lost_bytes = found.groups.iter().map(|group| group.bytes).sum();
    let locks = heap.held.join(", ");
    if !locks.is_empty() {
        let what = format!("a thread was changing the heap ({locks}): an object on its way may count as lost");
        found.warnings.push(what);
    }
    if !heap.broken.is_empty() {
        found.warnings.push(format!("the heap is broken (`verify` says where); faults: {}", heap.broken.len()));
    }
    found.warnings.extend(heap.reader.memory.warnings());
    Ok(found)
}

/// Removes from `left` all to which words of `open` lead.
fn follow(objects: &Objects<'_>, left: &SharedBits, memory: &dyn Memory, open: Vec<Found>) {
    exhaust(open, threads(), || {
        let (reader, mut batch) = (Reader::new(memory), Vec::with_capacity(BATCH));
        let (mut words, mut hits) = (Vec::with_capacity(BATCH), Vec::with_capacity(BATCH));
        let mut look = move |words: &mut Vec<u64>, open: &mut Vec<Found>| {
            objects.find_all(words.iter().copied(), &mut hits);
            left.remove_all(&hits, open);
            words.clear();
            hits.clear();
        };
        move |open: &mut Vec<Found>| {
            batch.extend(open.drain(open.len().saturating_sub(BATCH)..));
            objects.fetch(&reader, &batch);
            for from in batch.drain(..) {
                objects.for_each_word_of(&reader, from, |_, word| {
                    if objects.may_find(word) {
                        words.push(word);
                        if words.len() == BATCH {
                            look(&mut words, open);
                        }
                    }
                });
            }
            look(&mut words, open);
        }
    });
}

/// The tops of lost trees; one object stands for a ring. A search absorbs each group whose top it
/// reaches, so no top is below another.
fn groups(heap: &Heap<'_>, objects: &Objects<'_>, left: &SharedBits) -> Vec<Group> {
    const NONE: u32 = u32::MAX;
    let mut lost = Vec::new();
    objects.for_each(|number| left.has(number), |found| lost.push(found));
    let mut group_of = if lost.is_empty() { Vec::new() } else { vec![NONE; objects.numbers()] };
    // `None` once absorbed.
    let mut tops: Vec<Option<Group>> = Vec::new();
    let mut open = Vec::new();
    for top in lost {
        if group_of[top.number as usize] != NONE {
            continue;
        }
        let number = tops.len() as u32;
        group_of[top.number as usize] = number;
        open.push(top);
        let top = objects.object(top);
        let (kind, cache) = (top.kind.name(), cache_of(heap, top));
        let mut group = Group { address: top.start, object_bytes: top.size, kind, cache, objects: 0, bytes: 0 };
        while let Some(from) = open.pop() {
            group.objects += 1;
            group.bytes += objects.object(from).size;
            objects.for_each_word_of(&heap.reader, from, |_, word| {
                let Some(to) = objects.find(word).filter(|to| left.has(to.number)) else { return };
                let before = group_of[to.number as usize];
                if before == NONE {
                    group_of[to.number as usize] = number;
                    open.push(to);
                } else if let Some(other) = tops.get_mut(before as usize)
                    && other.as_ref().is_some_and(|other| other.address == objects.object(to).start)
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
    // The kit keeps a sampled stack for each sample, so that equal ones have several numbers.
    let mut by_number: BTreeMap<u32, Vec<&Group>> = BTreeMap::new();
    for group in groups {
        if let Some(buffer) = heap.kit.at(group.address).filter(|buffer| buffer.allocated.stack != 0) {
            by_number.entry(buffer.allocated.stack).or_default().push(group);
        }
    }
    let mut by_stack: BTreeMap<Vec<u64>, Vec<&Group>> = BTreeMap::new();
    for (number, groups) in by_number {
        by_stack.entry(heap.kit.stack(&heap.reader, number)).or_default().extend(groups);
    }
    let names = Names::new(heap.reader.memory);
    let site = |(stack, groups): (Vec<u64>, Vec<&Group>)| Site::of(names.stack(stack), &groups);
    let mut sites: Vec<Site> = by_stack.into_iter().map(site).collect();
    sites.sort_by_key(|site| (std::cmp::Reverse(site.bytes), site.example));
    sites
}

/// Of lost objects that are samples. A process has them without the kit, too.
fn sampled(heap: &Heap<'_>, objects: &Objects<'_>, left: &SharedBits) -> Result<Vec<Sampled>, String> {
    let is_lost = |at: u64| objects.find(at).is_some_and(|found| left.has(found.number));
    let lost: Vec<Sample> =
        samples(&heap.reader, &heap.table)?.into_iter().filter(|sample| is_lost(sample.address)).collect();
    let Some(profile) = Profile::sampled(heap.reader.memory, &heap.reader, &heap.table)? else { return Ok(Vec::new()) };
    let names = Names::new(heap.reader.memory);
    let mut sites: BTreeMap<Vec<String>, [u64; 3]> = BTreeMap::new();
    for sample in lost {
        let Some(site) = profile.sites.get(sample.site) else { continue };
        let sum = sites.entry(names.stack(site.stack.iter().copied())).or_default();
        let more = [1, sample.stands_for.objects, sample.stands_for.bytes];
        sum.iter_mut().zip(more).for_each(|(sum, more)| *sum += more);
    }
    let site = |(stack, [samples, objects, bytes]): (Vec<String>, [u64; 3])| Sampled { stack, samples, objects, bytes };
    let mut sites: Vec<Sampled> = sites.into_iter().map(site).collect();
    sites.sort_by_key(|site| std::cmp::Reverse(site.bytes));
    Ok(sites)
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
