//! Object caches in another process (`craton_slab::object`, `craton_objects`). An object is live
//! when its slab lists it as allocated and it has no free mark.

use crate::heap::{Heap, Span};
use crate::memory::words;
use crate::reader::{Reader, text_in, u32_in, word_in};
use crate::table::Table;
use std::collections::{HashMap, HashSet};

pub(crate) const MOST: u64 = 1 << 32;
/// No Linux has more processors.
pub(crate) const MOST_AREAS: u64 = 8192;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    Out,
    Array,
    Depot,
    /// On its slab, constructed.
    Built,
    /// On its slab, to be constructed or never handed out.
    Raw,
}

#[derive(Clone, Debug)]
pub struct CacheSlab {
    pub at: u64,
    /// Of its first object.
    pub start: u64,
    used: u64,
    out: Vec<u64>,
    built: Vec<u64>,
}

#[derive(Clone, Debug, Default)]
pub struct Cache {
    pub id: u32,
    pub name: String,
    /// As asked for; and from one object to the next.
    pub size: u64,
    pub stride: u64,
    pub capacity: u64,
    pub slab_bytes: u64,
    pub has_constructor: bool,
    /// Of the cache's functions.
    pub argument: u64,
    pub slabs: Vec<CacheSlab>,
    pub in_depot: u64,
    pub held_bytes: u64,
    pub built: u64,
    pub destroyed: u64,
    pub refused: u64,
    /// Free objects.
    pub arrays: HashSet<u64>,
    counted: u64,
    mark_at: u64,
    pub(crate) held: bool,
}

#[derive(Debug, Default)]
pub struct Caches {
    pub all: Vec<Cache>,
    /// By the slab's first byte.
    pub(crate) slabs: HashMap<u64, (usize, usize)>,
    entries: u64,
    entry_bytes: u64,
    entry_cache: u64,
    marks: u64,
    granule: u64,
    in_entry: u64,
    pub(crate) own: Vec<(u64, u64)>,
    broken: Vec<(u64, String)>,
}

impl Caches {
    pub(crate) fn read(reader: &Reader<'_>, table: &Table, at: u64, page: u64) -> Result<Self, String> {
        let get = |name: &str| table.get(name);
        let (base, used) = (reader.word(at + get("caches.base")?)?, reader.word(at + get("caches.used")?)?);
        if base == 0 || used > MOST {
            return Ok(Self::default());
        }
        let mut this = Self {
            entries: reader.word(at + get("caches.entries")?)?,
            entry_bytes: get("caches.entry.bytes")?,
            entry_cache: get("caches.entry.cache")?,
            marks: get("caches.entry.marks")?,
            granule: get("caches.entry.granule")?,
            in_entry: get("caches.mark.in_entry")?,
            ..Self::default()
        };
        let slot_bytes = get("caches.slot.bytes")?;
        let pages = reader.word(at + get("caches.entries.pages")?)?.min(MOST);
        this.own = vec![
            (base, base + used * slot_bytes),
            (this.entries, this.entries.saturating_add(pages * this.entry_bytes)),
        ];
        let (first, area_bytes) = (reader.word(at + get("caches.areas")?)?, get("caches.area.bytes")?);
        let end = if first > 1 { reader.word(at + get("caches.areas.end")?)?.min(MOST_AREAS) } else { 0 };
        let areas: Vec<u64> = (0..end).map(|i| first + i * area_bytes).collect();
        this.own.push((first, first + get("caches.areas.bytes")?));
        for id in 0..used {
            let slot = base + id * slot_bytes;
            if reader.word(slot + get("caches.slot.handle")?)? == 0 {
                continue;
            }
            let mut cache = Cache::read(reader, table, slot, page)?;
            cache.id = id as u32;
            this.read_arrays(reader, table, &areas, &mut cache)?;
            let index = this.all.len();
            this.slabs.extend(cache.slabs.iter().enumerate().map(|(i, slab)| (slab.at, (index, i))));
            this.all.push(cache);
        }
        Ok(this)
    }

    fn read_arrays(
        &mut self,
        reader: &Reader<'_>,
        table: &Table,
        areas: &[u64],
        cache: &mut Cache,
    ) -> Result<(), String> {
        let get = |name: &str| table.get(name);
        let (bytes, slots) = (get("caches.array.bytes")?, get("caches.array.slots")?);
        let (word, mask) = (get("caches.array.word")?, get("caches.array.count.mask")?);
        for area in areas {
            let at = area + u64::from(cache.id) * bytes;
            // A core may omit untouched pages.
            let count = reader.word(at + word).unwrap_or(0) & mask;
            if count > (bytes - slots) / 8 {
                self.broken
                    .push((at, format!("a processor's array of the cache \"{}\" has {count} objects", cache.name)));
                continue;
            }
            let objects = reader.bytes(at + slots, count as usize * 8)?;
            cache.arrays.extend(words(&objects));
        }
        Ok(())
    }

    pub fn name_of(&self, id: Option<u32>) -> String {
        id.and_then(|id| self.by_id(id)).map_or(String::new(), |cache| cache.name.clone())
    }

    pub fn by_id(&self, id: u32) -> Option<&Cache> {
        self.all.iter().find(|cache| cache.id == id)
    }
}

impl Cache {
    fn read(reader: &Reader<'_>, table: &Table, slot: u64, page: u64) -> Result<Self, String> {
        let get = |name: &str| table.get(name);
        let word = |name: &str| reader.word(slot + table.get(name)?);
        let slabs = slot + get("caches.slot.slabs")?;
        let half = |name: &str| Ok::<u64, String>(reader.u32(slabs + table.get(name)?)?.into());
        let name = reader.bytes(slot + get("caches.slot.name")?, 32)?;
        let held_pages = reader.u32(slot + get("caches.slot.held")?)?;
        let mut this = Self {
            name: text_in(&name),
            size: word("caches.slot.size")?,
            stride: half("objects.stride")?.max(1),
            capacity: half("objects.capacity")?,
            slab_bytes: reader.word(slabs + get("objects.slab_bytes")?)?.max(page),
            has_constructor: reader.byte(slabs + get("objects.constructed")?) != 0,
            argument: word("caches.slot.argument")?,
            in_depot: word("caches.slot.in_depot")?,
            held_bytes: u64::from(held_pages) * page,
            built: word("caches.slot.built")?,
            destroyed: word("caches.slot.destroyed")?,
            refused: word("caches.slot.refused")?,
            counted: half("objects.slabs")?,
            mark_at: word("caches.slot.mark_at")?,
            held: word("caches.slot.lock")? != 0,
            ..Self::default()
        };
        let (own, far) = (slabs + get("objects.table.own")?, reader.word(slabs + get("objects.table.far")?)?);
        let (places, more) = (get("objects.table.own.places")?, half("objects.table.more_bits")?.min(32));
        let (at, places) = if far == 0 { (own, places) } else { (far, places << more) };
        if places > MOST || this.capacity > this.slab_bytes {
            return Err(format!("the data of the cache \"{}\" at {slot:#x} is overwritten", this.name));
        }
        let entries = reader.bytes(at, places as usize * 8)?;
        // The lowest bit: a slab's second entry.
        let records: Vec<u64> = words(&entries).filter(|entry| *entry != 0 && entry & 1 == 0).collect();
        let (head, bits) = (get("object.record.bytes")? as usize, half("objects.words")? as usize);
        let all = head + bits * if this.has_constructor { 16 } else { 8 };
        let (slab, start, used) =
            (get("object.record.slab")? as usize, get("object.record.start")? as usize, get("object.record.used")?);
        for record in records {
            let Ok(bytes) = reader.bytes(record, all) else { continue };
            let mut rest = words(&bytes[head..]);
            this.slabs.push(CacheSlab {
                at: word_in(&bytes, slab),
                start: word_in(&bytes, start),
                used: u32_in(&bytes, used as usize).into(),
                out: rest.by_ref().take(bits).collect(),
                built: rest.collect(),
            });
        }
        this.slabs.sort_unstable_by_key(|slab| slab.at);
        Ok(this)
    }

    pub fn index_of(&self, slab: &CacheSlab, at: u64) -> Option<u64> {
        let i = at.checked_sub(slab.start)? / self.stride;
        (i < self.capacity).then_some(i)
    }

    /// By the slabs' bits: objects that are out, also with arrays and the depot, and constructed
    /// ones on slabs.
    pub fn counts(&self) -> (u64, u64) {
        let (mut out, mut built) = (0, 0);
        for slab in &self.slabs {
            for i in 0..self.capacity {
                let is_out = bit(&slab.out, i);
                out += u64::from(is_out);
                built += u64::from(!is_out && bit(&slab.built, i));
            }
        }
        (out, built)
    }

    pub fn object(&self, slab: &CacheSlab, i: u64) -> u64 {
        slab.start + i * self.stride
    }
}

fn bit(words: &[u64], i: u64) -> bool {
    words.get((i / 64) as usize).is_some_and(|word| word >> (i % 64) & 1 == 1)
}

impl Heap<'_> {
    /// A slab, or a page of notes; returns its pages.
    pub(crate) fn add_cached(&mut self, first: u64, id: u32) -> u64 {
        let Some(known) = self.caches.by_id(id) else {
            let what = format!("the page is one of object cache number {id}, and there is none");
            self.record_broken(self.address(first), "K2", what);
            return 1;
        };
        let slab_bytes = known.slab_bytes;
        let at = self.caches.slabs.get(&self.address(first)).copied();
        let Some((cache, slab)) = at.filter(|(cache, _)| self.caches.all[*cache].id == id) else {
            self.spans.push(Span::Notes { first, cache: id });
            return 1;
        };
        let pages = (slab_bytes / self.page).clamp(1, self.granted - first);
        self.spans.push(Span::Cached { first, pages, cache, slab });
        pages
    }

    pub fn place_in_cache(&self, cache: &Cache, slab: &CacheSlab, i: u64) -> Place {
        let at = cache.object(slab, i);
        if !bit(&slab.out, i) {
            return if bit(&slab.built, i) { Place::Built } else { Place::Raw };
        }
        if cache.arrays.contains(&at) {
            return Place::Array;
        }
        if self.is_freed_in_cache(cache, at) { Place::Depot } else { Place::Out }
    }

    fn is_freed_in_cache(&self, cache: &Cache, at: u64) -> bool {
        if cache.mark_at != self.caches.in_entry {
            return self.reader.word(at + cache.mark_at).is_ok_and(|word| word == self.mark_in_cache(at));
        }
        let Some(page) = self.page_of(at) else { return false };
        let entry = self.caches.entries + page * self.caches.entry_bytes;
        if self.reader.word(entry + self.caches.entry_cache).unwrap_or(0) == 0 {
            return false;
        }
        self.reader.byte(entry + self.caches.marks + at % self.page / self.caches.granule.max(1)) != 0
    }

    pub fn for_each_in_cache(&self, cache: &Cache, mut each: impl FnMut(u64, Place)) {
        for slab in &cache.slabs {
            (0..cache.capacity).for_each(|i| each(cache.object(slab, i), self.place_in_cache(cache, slab, i)));
        }
    }

    pub(crate) fn check_caches(&mut self) {
        let mut wrong = std::mem::take(&mut self.caches.broken);
        for cache in self.caches.all.iter().filter(|cache| !cache.held) {
            let name = &cache.name;
            for slab in &cache.slabs {
                let out = (0..cache.capacity).filter(|i| bit(&slab.out, *i)).count() as u64;
                if out != slab.used {
                    let what = format!("counts {} objects, and has {out} by its bits", slab.used);
                    wrong.push((slab.at, format!("a slab of the cache \"{name}\" {what}")));
                }
            }
            if cache.slabs.len() as u64 != cache.counted {
                let (found, counted) = (cache.slabs.len(), cache.counted);
                wrong.push((0, format!("the cache \"{name}\" counts {counted} slabs, and its table has {found}")));
            }
            for at in &cache.arrays {
                let slab = cache.slabs.partition_point(|slab| slab.at <= *at).checked_sub(1).map(|i| &cache.slabs[i]);
                let place = slab.and_then(|slab| Some((slab, cache.index_of(slab, *at)?)));
                let fits = |(slab, i)| cache.object(slab, i) == *at && bit(&slab.out, i);
                if !place.is_some_and(fits) {
                    let what = "has this address, where no object of it is in use";
                    wrong.push((*at, format!("a processor's array of the cache \"{name}\" {what}")));
                }
            }
        }
        for (at, what) in wrong {
            self.record_broken(at, "O1", what);
        }
    }
}
