//! The heap's contents by class and heap: by slabs' counts where those suffice, else by objects.

use crate::caches::Place;
use crate::heap::{Heap, Kind, Span};
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
    if heap.is_counted {
        count(heap, &mut stats, &mut classes, &mut heaps);
        return finish(heap, stats, classes, heaps);
    }
    for span in &heap.spans {
        match span {
            Span::Slab { class, own: 0, .. } => classes.entry(*class).or_default().slabs += 1,
            Span::Morphed { entry, .. } => {
                let line = classes.entry(entry.to).or_default();
                line.slabs += 1;
                line.morphed += 1;
                let start = heap.address(span.first());
                stats.old_objects += entry.old_objects().filter(|(at, _, _)| heap.is_out(start + at)).count() as u64;
            }
            Span::Large { .. } | Span::Slab { .. } | Span::Cached { .. } | Span::Notes { .. } => continue,
        }
        heap.places(span, |at, class| classes.entry(class).or_default().free += u64::from(!heap.is_out(at)));
    }
    heap.for_each_out(|object| add(&mut stats.objects, &mut stats.bytes, object.size));
    heap.for_each_taken(|object| {
        if object.own > 0 {
            let line = heaps.entry(object.own).or_default();
            return add(&mut line.objects, &mut line.bytes, object.size);
        }
        let waits = heap.kit.under(object.start).is_some_and(|buffer| !buffer.is_live);
        match object.kind {
            Kind::Small(class) if waits => classes.entry(class).or_default().waiting += 1,
            Kind::Large | Kind::Huge if waits => (),
            Kind::Small(class) => {
                let line = classes.entry(class).or_default();
                add(&mut line.objects, &mut line.bytes, object.size);
            }
            Kind::Large => add(&mut stats.large_objects, &mut stats.large_bytes, object.size),
            Kind::Huge => add(&mut stats.huge_objects, &mut stats.huge_bytes, object.size),
            Kind::Buffer | Kind::Cached(_) => (),
        }
    });
    for buffer in &heap.kit.buffers {
        match buffer.is_live {
            true => add(&mut stats.buffers, &mut stats.buffer_bytes, buffer.size),
            false => add(&mut stats.waiting, &mut stats.waiting_bytes, buffer.size),
        }
    }
    for cache in &heap.caches.all {
        let mut line = CacheLine {
            id: cache.id,
            name: cache.name.clone(),
            object_bytes: cache.size,
            buffer_bytes: cache.stride,
            slabs: cache.slabs.len() as u64,
            memory_bytes: cache.held_bytes,
            total: cache.slabs.len() as u64 * cache.capacity,
            constructed: cache.built,
            destroyed: cache.destroyed,
            failures: cache.refused,
            ..CacheLine::default()
        };
        heap.for_each_in_cache(cache, |_, place| match place {
            Place::Out => line.objects += 1,
            Place::Array => line.in_arrays += 1,
            Place::Depot => line.in_depot += 1,
            Place::Built => line.on_slabs += 1,
            Place::Raw => (),
        });
        // Under the kit a cache's objects lie on no slab.
        let of_cache = |b: &&Buffer| b.is_live && b.target == cache.id + 1;
        line.objects += heap.kit.buffers.iter().filter(of_cache).count() as u64;
        stats.caches.push(line);
    }
    finish(heap, stats, classes, heaps)
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
    let lines = classes.values().map(|line| (line.objects, line.bytes));
    let lines = lines.chain(heaps.values().map(|line| (line.objects, line.bytes)));
    let others = [(stats.large_objects, stats.large_bytes), (stats.huge_objects, stats.huge_bytes)];
    for (objects, bytes) in lines.chain(others) {
        stats.objects += objects;
        stats.bytes += bytes;
    }
}

fn finish(
    heap: &Heap<'_>,
    mut stats: Stats,
    classes: BTreeMap<u8, ClassLine>,
    heaps: BTreeMap<u32, HeapLine>,
) -> Result<Stats, String> {
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
