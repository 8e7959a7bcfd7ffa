//! The heap's contents by class and heap: the counts of slabs and object caches, less what the
//! lists of caches hold. No object's memory is read but the links of those lists.

use crate::caches::Cache;
use crate::heap::{Heap, Kind, Object, Span};
use crate::kit::Buffer;
use serde::Serialize;
use std::collections::BTreeMap;

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct ClassLine {
    pub object_bytes: u64,
    /// With morphed ones.
    pub slabs: u64,
    /// With objects of two classes.
    pub morphed: u64,
    /// Live, with those under the debugging kit's buffers.
    pub objects: u64,
    pub bytes: u64,
    /// Under freed buffers that wait.
    pub waiting: u64,
    /// On slabs and in caches.
    pub free: u64,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct HeapLine {
    pub id: u32,
    pub name: String,
    pub objects: u64,
    pub bytes: u64,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct CacheLine {
    pub id: u32,
    pub name: String,
    /// As asked for.
    pub object_bytes: u64,
    /// From one object to the next.
    pub buffer_bytes: u64,
    pub slabs: u64,
    pub memory_bytes: u64,
    pub objects: u64,
    /// For which the slabs have room.
    pub total: u64,
    pub in_arrays: u64,
    pub in_depot: u64,
    pub on_slabs: u64,
    pub constructed: u64,
    pub destroyed: u64,
    pub failures: u64,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Stats {
    pub pid: u32,
    #[serde(serialize_with = "crate::whatis::as_hex")]
    pub base: u64,
    /// Address space for use now.
    pub granted_bytes: u64,
    pub objects: u64,
    pub bytes: u64,
    /// Live, without those under quarantined buffers.
    pub large_objects: u64,
    pub large_bytes: u64,
    pub huge_objects: u64,
    pub huge_bytes: u64,
    /// In caches of threads, of processors, and between them.
    pub free_in_caches: u64,
    /// Of the older class on slabs of two.
    pub old_objects: u64,
    pub buffers: u64,
    pub buffer_bytes: u64,
    pub waiting: u64,
    pub waiting_bytes: u64,
    pub broken: u64,
    pub classes: Vec<ClassLine>,
    pub heaps: Vec<HeapLine>,
    pub caches: Vec<CacheLine>,
}

fn add(objects: &mut u64, bytes: &mut u64, size: u64) {
    *objects += 1;
    *bytes += size;
}

fn remove(objects: &mut u64, bytes: &mut u64, size: u64) {
    *objects = objects.saturating_sub(1);
    *bytes = bytes.saturating_sub(size);
}

/// # Errors
/// The library's tables cannot be read.
pub fn stats(heap: &Heap<'_>) -> Result<Stats, String> {
    let mut stats = Stats {
        pid: heap.reader.memory.pid(),
        base: heap.base,
        granted_bytes: heap.granted * heap.page,
        free_in_caches: heap.in_caches,
        broken: heap.broken.len() as u64,
        ..Stats::default()
    };
    let mut classes: BTreeMap<u8, ClassLine> = BTreeMap::new();
    let mut heaps: BTreeMap<u32, HeapLine> = BTreeMap::new();
    count(heap, &mut stats, &mut classes, &mut heaps);
    for cache in &heap.caches.all {
        let mut line = cache_line(cache);
        stats.objects += line.objects;
        stats.bytes += line.objects * cache.size;
        // Under the kit a cache's objects lie on no slab.
        let of_cache = |b: &&Buffer| b.is_live && b.target == cache.id + 1;
        line.objects += heap.kit.buffers.iter().filter(of_cache).count() as u64;
        stats.caches.push(line);
    }
    for (class, mut line) in classes {
        line.object_bytes = heap.class(class).map_or(0, |c| c.object);
        stats.classes.push(line);
    }
    for (own, mut line) in heaps {
        (line.id, line.name) = (own - 1, heap.own_name(own)?);
        stats.heaps.push(line);
    }
    Ok(stats)
}

fn cache_line(cache: &Cache) -> CacheLine {
    let (slabs, in_arrays) = (cache.slabs.len() as u64, cache.arrays.len() as u64);
    let (out, built) = cache.counts();
    CacheLine {
        id: cache.id,
        name: cache.name.clone(),
        object_bytes: cache.size,
        buffer_bytes: cache.stride,
        slabs,
        memory_bytes: cache.held_bytes,
        total: slabs * cache.capacity,
        objects: out.saturating_sub(in_arrays + cache.in_depot),
        in_arrays,
        in_depot: cache.in_depot,
        on_slabs: built,
        constructed: cache.built,
        destroyed: cache.destroyed,
        failures: cache.refused,
    }
}

/// By slabs' records, less what caches hold.
fn count(
    heap: &Heap<'_>,
    stats: &mut Stats,
    classes: &mut BTreeMap<u8, ClassLine>,
    heaps: &mut BTreeMap<u32, HeapLine>,
) {
    let size = |class: u8| heap.class(class).map_or(0, |class| class.object);
    let mut old = vec![0u64; heap.old_cached.len()];
    for span in &heap.spans {
        let record = heap.record(span.first());
        match span {
            Span::Slab { class, own: 0, .. } => {
                let line = classes.entry(*class).or_default();
                line.slabs += 1;
                line.objects += record.used;
                line.free += record.carved.saturating_sub(record.used);
            }
            Span::Slab { class, own, .. } => {
                let line = heaps.entry(*own).or_default();
                line.objects += record.used;
                line.bytes += record.used * size(*class);
            }
            Span::Morphed { entry, .. } => {
                let line = classes.entry(entry.to).or_default();
                line.slabs += 1;
                line.morphed += 1;
                line.objects += record.used;
                line.free += record.carved.saturating_sub(record.used);
                entry.old_objects().for_each(|(_, _, class)| old[usize::from(class)] += 1);
            }
            Span::Large { pages, own: 0, .. } => {
                add(&mut stats.large_objects, &mut stats.large_bytes, pages * heap.page);
            }
            Span::Large { pages, own, .. } => {
                let line = heaps.entry(*own).or_default();
                add(&mut line.objects, &mut line.bytes, pages * heap.page);
            }
            Span::Cached { .. } | Span::Notes { .. } => (),
        }
    }
    for (class, (old, cached)) in old.into_iter().zip(&heap.old_cached).enumerate() {
        let live = old.saturating_sub(*cached);
        stats.old_objects += live;
        if live > 0 {
            classes.entry(class as u8).or_default().objects += live;
        }
    }
    for (class, line) in classes.iter_mut() {
        let cached = heap.cached[usize::from(*class)].min(line.objects);
        line.objects -= cached;
        line.free += cached;
        line.bytes = line.objects * size(*class);
    }
    for (_, bytes) in &heap.huge {
        add(&mut stats.huge_objects, &mut stats.huge_bytes, *bytes);
    }
    // Objects under live buffers, which the sums leave out.
    let mut under = (0, 0);
    for buffer in &heap.kit.buffers {
        match buffer.is_live {
            true => add(&mut stats.buffers, &mut stats.buffer_bytes, buffer.size),
            false => add(&mut stats.waiting, &mut stats.waiting_bytes, buffer.size),
        }
        let Some(object) = heap.kit.under(buffer.under).and_then(|_| taken_at(heap, buffer.under)) else { continue };
        if buffer.is_live || object.own > 0 {
            add(&mut under.0, &mut under.1, object.size);
            continue;
        }
        match object.kind {
            Kind::Small(class) => {
                let line = classes.entry(class).or_default();
                line.waiting += 1;
                remove(&mut line.objects, &mut line.bytes, object.size);
            }
            Kind::Large => remove(&mut stats.large_objects, &mut stats.large_bytes, object.size),
            _ => remove(&mut stats.huge_objects, &mut stats.huge_bytes, object.size),
        }
    }
    let lines = classes.values().map(|line| (line.objects, line.bytes));
    let lines = lines.chain(heaps.values().map(|line| (line.objects, line.bytes)));
    let others = [
        (stats.large_objects, stats.large_bytes),
        (stats.huge_objects, stats.huge_bytes),
        (stats.buffers, stats.buffer_bytes),
    ];
    for (objects, bytes) in lines.chain(others) {
        stats.objects += objects;
        stats.bytes += bytes;
    }
    stats.objects = stats.objects.saturating_sub(under.0);
    stats.bytes = stats.bytes.saturating_sub(under.1);
}

/// The object of the heap that begins at an address.
fn taken_at(heap: &Heap<'_>, start: u64) -> Option<Object> {
    let size = |class: u8| heap.class(class).map_or(0, |class| class.object);
    let Some(span) = heap.page_of(start).and_then(|page| heap.span_of(page)) else {
        let huge = heap.huge.iter().find(|(at, _)| *at == start)?;
        return Some(Object { start, size: huge.1, kind: Kind::Huge, own: 0 });
    };
    let small = |class, own| Object { start, size: size(class), kind: Kind::Small(class), own };
    match span {
        Span::Slab { class, own, .. } => Some(small(*class, *own)),
        Span::Morphed { first, entry, .. } => {
            let old = entry.old_objects().find(|(at, ..)| heap.address(*first) + at == start);
            Some(small(old.map_or(entry.to, |(_, _, class)| class), 0))
        }
        Span::Large { pages, own, .. } => Some(Object { start, size: pages * heap.page, kind: Kind::Large, own: *own }),
        Span::Cached { .. } | Span::Notes { .. } => None,
    }
}
