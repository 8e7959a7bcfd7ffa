//! The heap, as a walk finds it.
//!
//! **What.** Spans by the page map, and on each slab its live objects: carved, without a free mark,
//! and on no free list (sized frees set no mark). [`Heap::broken`] collects damage.

mod lists;
mod record;

use crate::caches::{Caches, Place};
use crate::kit::Kit;
use crate::memory::{Held, Memory};
use crate::morph::Morph;
use crate::reader::{Reader, text_in, u32_in, word_in};
use crate::table::{Class, Table};
use record::{Record, RecordShape};
use serde::Serialize;
use std::collections::HashSet;
use std::hash::{BuildHasherDefault, Hasher};

/// 64 TiB; more is damage.
const MOST_PAGES: u64 = 1 << 33;

#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Broken {
    pub address: u64,
    /// By the name in the library's theory.
    pub rule: &'static str,
    pub what: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Of a size class.
    Small(u8),
    /// Of whole pages.
    Large,
    /// A separate mapping.
    Huge,
    Buffer,
    /// By its object cache's number.
    Cached(u32),
}

impl Kind {
    /// As documents have it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Small(_) => "class",
            Self::Large => "large",
            Self::Huge => "huge",
            Self::Buffer => "buffer",
            Self::Cached(_) => "cache",
        }
    }
}

/// A live one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Object {
    pub start: u64,
    pub size: u64,
    pub kind: Kind,
    /// Its private heap, plus 1; 0 for the process's.
    pub own: u32,
}

/// A run of pages with objects.
#[derive(Clone, Debug)]
pub enum Span {
    /// `own` as in [`Object`].
    Slab { first: u64, class: u8, own: u32 },
    /// Of two classes.
    Morphed { first: u64, pages: u64, entry: Box<Morph> },
    /// Of whole pages.
    Large { first: u64, pages: u64, own: u32 },
    /// Of an object cache: index in [`Caches::all`], and in the cache.
    Cached { first: u64, pages: u64, cache: usize, slab: usize },
    /// A page of notes of the object cache.
    Notes { first: u64, cache: u32 },
}

/// Of addresses, which no stranger chooses.
#[derive(Debug, Default)]
pub(crate) struct AddressHasher(u64);

impl Hasher for AddressHasher {
    fn write(&mut self, bytes: &[u8]) {
        bytes.iter().for_each(|byte| self.write_u64(u64::from(*byte)));
    }

    fn write_u64(&mut self, address: u64) {
        let product = (self.0 ^ address).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        self.0 = product ^ product >> 32;
    }

    fn finish(&self) -> u64 {
        self.0
    }
}

pub struct Heap<'m> {
    pub reader: Reader<'m>,
    pub table: Table,
    /// Of page 0.
    pub base: u64,
    pub granted: u64,
    /// The mark of free objects: a secret for each value of the page map, and a factor.
    secrets: Vec<u8>,
    factor: u64,
    /// The difference of marks on slabs.
    on_slab: u64,
    owned_mark: u8,
    /// The end of free lists.
    pub(crate) end: u64,
    pub(crate) heap: u64,
    pub(crate) page: u64,
    pub(crate) map_at: u64,
    pub(crate) records_at: u64,
    pub(crate) lengths_at: u64,
    pub(crate) shards: u64,
    pub(crate) marks: Vec<u8>,
    records: Vec<u8>,
    lengths: Vec<u8>,
    pub(crate) shape: RecordShape,
    /// With contents, by address.
    pub spans: Vec<Span>,
    /// Start and bytes, by address.
    pub huge: Vec<(u64, u64)>,
    /// Freed huge mappings: start and bytes.
    pub(crate) kept: Vec<(u64, u64)>,
    pub caches: Caches,
    pub kit: Kit,
    /// Free, without a mark.
    pub(crate) unmarked: HashSet<u64, BuildHasherDefault<AddressHasher>>,
    /// Free, on slabs' lists.
    pub on_slabs: u64,
    /// On all other free lists.
    pub in_caches: u64,
    /// Of these, by class: on slabs of the class, and of the older class of slabs of two.
    pub(crate) cached: Vec<u64>,
    pub(crate) old_cached: Vec<u64>,
    /// By threads: their data may be between two states.
    pub held: Vec<String>,
    pub broken: Vec<Broken>,
}

impl<'m> Heap<'m> {
    /// Walks the heap.
    ///
    /// # Errors
    /// Not on Craton, another release, or required memory is missing.
    pub fn find(memory: &'m dyn Memory) -> Result<Self, String> {
        Self::find_by(memory, Table::of(memory)?)
    }

    /// By a table that was found before.
    ///
    /// # Errors
    /// As [`Heap::find`].
    pub fn find_by(memory: &'m dyn Memory, table: Table) -> Result<Self, String> {
        let mut this = Self::outline_by(memory, table)?;
        this.check_caches();
        this.find_free()?;
        Ok(this)
    }

    /// Enough for [`crate::stats`], and fast: slabs' counts instead of their lists.
    ///
    /// # Errors
    /// As [`Heap::find`].
    pub fn count_by(memory: &'m dyn Memory, table: Table) -> Result<Self, String> {
        let mut this = Self::outline_by(memory, table)?;
        this.check_caches();
        this.find_cached()?;
        Ok(this)
    }

    /// The spans alone, by the library's tables: no object's memory is read. Of a process that runs
    /// some may have changed meanwhile, and count as broken.
    ///
    /// # Errors
    /// As [`Heap::find`].
    pub fn outline(memory: &'m dyn Memory) -> Result<Self, String> {
        Self::outline_by(memory, Table::of(memory)?)
    }

    /// [`Heap::outline`] by a known table, without the search for it.
    pub(crate) fn outline_by(memory: &'m dyn Memory, table: Table) -> Result<Self, String> {
        let reader = Reader::new(memory);
        let get = |name: &str| table.get(name);
        let heap = get("heap")?;
        let layout = heap + get("heap.layout")?;
        let at = |name: &str| reader.word(layout + table.get(name)?);
        let base = at("layout.base")?;
        let (factor, on_slab) = (at("layout.factor")?, at("layout.on_slab")?);
        let owned_mark = get("mark.owned")? as u8;
        let secrets = reader.bytes(layout + get("layout.secrets")?, (usize::from(owned_mark) + 1) * 8)?;
        let end = get("lists.end")?;
        let (map_at, records_at) = (at("layout.map")?, at("layout.records")?);
        let shards = at("layout.more_shards")? + 1;
        let granted = reader.word(heap + get("heap.granted_pages")?)?;
        if granted > MOST_PAGES || shards > get("shards.most")? {
            let what = format!("is overwritten: {granted} pages, {shards} shards");
            return Err(format!("{}: the heap's own data at {heap:#x} {what}", memory.name()));
        }
        let shape = RecordShape::of(&table)?;
        let (unit, bits) = (get("map.unit")? as u32, get("map.bits")?);
        let map = reader.bytes(map_at, granted as usize * 4)?;
        let marks = (0..granted as usize).map(|page| (u32_in(&map, page * 4) % (1 << bits) / unit) as u8).collect();
        let records = reader.bytes(records_at, granted as usize * shape.bytes)?;
        let lengths_at = at("layout.lengths")?;
        let lengths = reader.bytes(lengths_at, granted as usize * 4)?;
        let page = get("page.bytes")?;
        let caches = Caches::read(&reader, &table, table.get("caches")?, page)?;
        let kit = Kit::read(&reader, &table)?;
        let (cached, old_cached) = (vec![0; table.classes.len()], vec![0; table.classes.len()]);
        let mut this = Self {
            caches,
            kit,
            kept: Vec::new(),
            reader,
            table,
            base,
            granted,
            secrets,
            factor,
            on_slab,
            owned_mark,
            end,
            heap,
            page,
            map_at,
            records_at,
            lengths_at,
            shards,
            marks,
            records,
            lengths,
            shape,
            spans: Vec::new(),
            huge: Vec::new(),
            unmarked: HashSet::default(),
            on_slabs: 0,
            in_caches: 0,
            cached,
            old_cached,
            held: Vec::new(),
            broken: Vec::new(),
        };
        this.held = crate::locks::held(&this.reader, &this.table)?;
        this.find_spans()?;
        this.find_huge()?;
        this.find_kept()?;
        Ok(this)
    }

    pub(crate) fn record_broken(&mut self, address: u64, rule: &'static str, what: String) {
        self.broken.push(Broken { address, rule, what });
    }

    pub fn address(&self, page: u64) -> u64 {
        self.base + page * self.page
    }

    /// If granted.
    pub fn page_of(&self, at: u64) -> Option<u64> {
        let page = at.checked_sub(self.base)? / self.page;
        (page < self.granted).then_some(page)
    }

    pub fn class(&self, class: u8) -> Option<Class> {
        self.table.classes.get(usize::from(class)).copied().filter(|c| c.object > 0)
    }

    pub(crate) fn record(&self, page: u64) -> Record {
        let pages = u32_in(&self.lengths, page as usize * 4);
        self.shape.record(&self.records[page as usize * self.shape.bytes..][..self.shape.bytes], pages)
    }

    /// Where a shard's slabs of a class are known.
    pub(crate) fn class_at(&self, shard: u64, class: u64) -> Result<u64, String> {
        let get = |name: &str| self.table.get(name);
        let shard = self.heap + get("heap.shards")? + shard * get("shard.bytes")?;
        Ok(shard + get("shard.classes")? + (class - 1) * get("shard.class.bytes")?)
    }

    /// Private heap and class.
    fn owned(&self, record: Record) -> Option<(u32, u8)> {
        (record.morph & self.shape.owned != 0)
            .then_some((record.morph & 0xffff, (record.morph >> self.shape.class_shift) as u8))
    }

    fn find_spans(&mut self) -> Result<(), String> {
        let get = |name: &str| self.table.get(name);
        let marks = [get("mark.large")?, get("mark.morphed")?, get("mark.owned")?];
        let [large, morphed, owned] = marks.map(|mark| mark as u8);
        let cached = get("caches.class")? as u8;
        let mut page = 0;
        while page < self.granted {
            let mark = self.marks[page as usize];
            page += match mark {
                0 => 1,
                mark if mark == large => self.add_large(page, 0),
                mark if mark == morphed => self.add_morphed(page)?,
                mark if mark == owned => match self.owned(self.record(page)) {
                    Some((cache, class)) if class == cached => self.add_cached(page, cache),
                    Some((heap, class)) if class == large => self.add_large(page, heap + 1),
                    Some((heap, class)) => self.add_slab(page, class, owned, heap + 1),
                    None => {
                        let what = "the page has the mark of a separate heap, and its record names none";
                        self.record_broken(self.address(page), "H4", what.to_owned());
                        1
                    }
                },
                class => self.add_slab(page, class, class, 0),
            };
        }
        Ok(())
    }

    fn add_large(&mut self, first: u64, own: u32) -> u64 {
        let record = self.record(first);
        let end = first + record.pages;
        if record.is_gone || record.pages == 0 || end > self.granted {
            let (pages, freed) = (record.pages, if record.is_gone { ", freed" } else { "" });
            let what = format!("the page is marked as the start of a large object of {pages} pages{freed}");
            self.record_broken(self.address(first), "M1", what);
            return 1;
        }
        if let Some(inside) = (first + 1..end).find(|page| self.marks[*page as usize] != 0) {
            let mark = self.marks[inside as usize];
            let what = format!("a page inside the large object at {:#x} has the mark {mark}", self.address(first));
            self.record_broken(self.address(inside), "M1", what);
            return inside - first;
        }
        self.spans.push(Span::Large { first, pages: record.pages, own });
        record.pages
    }

    /// All its pages have `mark`. Returns its pages.
    fn add_slab(&mut self, first: u64, class: u8, mark: u8, own: u32) -> u64 {
        let Some(g) = self.class(class) else {
            self.record_broken(self.address(first), "M1", format!("the page has the mark {class}, which is none"));
            return 1;
        };
        let is_single = g.capacity == 1;
        let align = if is_single { 1 } else { g.pages.next_power_of_two() };
        let end = first + g.pages;
        let expected = |page: u64| if is_single { 0 } else { mark } == self.marks[page as usize];
        if !first.is_multiple_of(align) || end > self.granted || !(first + 1..end).all(expected) {
            let what = format!("no whole slab of the class of {}, as whose page it is marked, is there", g.object);
            self.record_broken(self.address(first), "M1", what);
            return 1;
        }
        let record = self.record(first);
        if record.pages != g.pages || record.carved > g.capacity || record.used > record.carved {
            let (pages, carved, used) = (record.pages, record.carved, record.used);
            let what = format!(
                "the slab of the class of {} has the record {pages} pages, {carved} of {} places cut, {used} used",
                g.object, g.capacity
            );
            self.record_broken(self.address(first), "S1", what);
        }
        self.spans.push(Span::Slab { first, class, own });
        g.pages
    }

    /// Of a slab of two sizes.
    pub(crate) fn morph_entry(&self, page: u64) -> Option<u32> {
        let morph = self.record(page).morph;
        Some(morph & self.shape.entry_mask).filter(|entry| morph & self.shape.owned == 0 && *entry != 0)
    }

    /// Address and bytes of the old object that crosses its start.
    pub(crate) fn old_across(&self, mut first: u64) -> Option<(u64, u64)> {
        loop {
            let Span::Morphed { first: before, entry, .. } = self.span_of(first.checked_sub(1)?)? else { return None };
            if let Some((at, len, _)) = entry.old_objects().last() {
                return Some((self.address(*before) + at, len));
            }
            first = *before;
        }
    }

    fn add_morphed(&mut self, first: u64) -> Result<u64, String> {
        let Some(morph) = Morph::read(self, first)? else {
            let what = "the page is marked as one of a slab of two classes, and its entry is not its".to_owned();
            self.record_broken(self.address(first), "S6", what);
            return Ok(1);
        };
        let pages = morph.bytes / self.page;
        self.spans.push(Span::Morphed { first, pages, entry: Box::new(morph) });
        Ok(pages)
    }

    fn find_huge(&mut self) -> Result<(), String> {
        let get = |name: &str| self.table.get(name);
        let at = self.heap + get("heap.huge")?;
        let entries = self.reader.word(at + get("huge.entries")?)?;
        let capacity = self.reader.word(at + get("huge.capacity")?)?;
        let len = self.reader.word(at + get("huge.len")?)?;
        let stride = get("huge.entry.stride")? as usize;
        let (start, bytes) = (get("huge.entry.at")? as usize, get("huge.entry.bytes")? as usize);
        if capacity > 1 << 32 {
            self.record_broken(at, "huge", format!("a table of {capacity} entries"));
            return Ok(());
        }
        let table = self.reader.bytes(entries, capacity as usize * stride)?;
        self.huge = table.chunks_exact(stride.max(1)).map(|e| (word_in(e, start), word_in(e, bytes))).collect();
        self.huge.retain(|(at, _)| *at != 0);
        self.huge.sort_unstable();
        if self.huge.len() as u64 != len {
            self.record_broken(at, "huge", format!("{} entries, where {len} are counted", self.huge.len()));
        }
        if let Some(pair) = self.huge.windows(2).find(|pair| pair[0].0.saturating_add(pair[0].1) > pair[1].0) {
            self.record_broken(pair[1].0, "huge", format!("it lies in the huge object at {:#x}", pair[0].0));
        }
        Ok(())
    }

    fn find_kept(&mut self) -> Result<(), String> {
        let get = |name: &str| self.table.get(name);
        let places = self.heap + get("heap.huge")? + get("huge.kept")? + get("kept.places")?;
        let (bytes, at, len) = (get("kept.place.bytes")?, get("kept.place.at")?, get("kept.place.len")?);
        for place in 0..get("kept.most")? {
            let place = places + place * bytes;
            self.kept.push((self.reader.word(place + at)?, self.reader.word(place + len)?));
        }
        self.kept.retain(|(_, len)| *len > 0);
        Ok(())
    }

    /// Whether a free object's mark is there.
    pub fn is_marked(&self, at: u64) -> bool {
        let Ok(word) = self.reader.word(at + 8) else { return false };
        match self.page_of(at).and_then(|page| self.span_of(page)) {
            Some(Span::Slab { class, .. }) => self.is_mark(word, *class, at),
            // Of an old or the new class.
            _ => (1..self.table.classes.len()).any(|class| self.is_mark(word, class as u8, at)),
        }
    }

    pub(crate) fn is_mark(&self, word: u64, class: u8, at: u64) -> bool {
        let mark = self.mark(class, at);
        word == mark || word == mark ^ self.on_slab
    }

    fn mark(&self, class: u8, at: u64) -> u64 {
        (at ^ self.secret(class)).wrapping_mul(self.factor)
    }

    fn secret(&self, class: u8) -> u64 {
        self.secrets.chunks_exact(8).nth(class.into()).map_or(0, |word| word_in(word, 0))
    }

    pub(crate) fn mark_in_cache(&self, at: u64) -> u64 {
        self.mark(self.owned_mark, at)
    }

    /// Of a carved place.
    pub fn is_out(&self, at: u64) -> bool {
        !self.is_marked(at) && !self.unmarked.contains(&at)
    }

    /// Places of a slab that were cut.
    pub(crate) fn carved(&self, span: &Span) -> u64 {
        let Span::Slab { first, class, .. } = span else { return 0 };
        self.record(*first).carved.min(self.class(*class).map_or(0, |c| c.capacity))
    }

    /// Calls `each` with the places that were cut, and whether the object there is out.
    pub(crate) fn for_each_place(&self, span: &Span, mut each: impl FnMut(u64, bool)) {
        let (first, class) = match span {
            Span::Slab { first, class, .. } => (*first, *class),
            Span::Morphed { first, entry, .. } => {
                let places = entry.places().map(|offset| self.address(*first) + offset);
                return places.for_each(|at| each(at, self.is_out(at)));
            }
            Span::Large { .. } | Span::Cached { .. } | Span::Notes { .. } => return,
        };
        let carved = self.carved(span);
        self.for_each_mark(first, class, carved, |at, is_marked| each(at, !is_marked && !self.unmarked.contains(&at)));
    }

    /// Calls `each` with the first places of a slab of one class, and whether each has the mark of
    /// a free object.
    pub(crate) fn for_each_mark(&self, first: u64, class: u8, carved: u64, mut each: impl FnMut(u64, bool)) {
        let (start, size) = (self.address(first), self.class(class).map_or(1, |c| c.object));
        let len = (carved * size + 8) as usize;
        let bytes = if let Held::Bytes(bytes) = self.reader.memory.held(start) { bytes } else { &[] };
        let (secret, factor, on_slab) = (self.secret(class), self.factor, self.on_slab);
        for place in 0..carved {
            let (at, mark_at) = (start + place * size, (place * size + 8) as usize);
            let word = if len <= bytes.len() { Ok(word_in(bytes, mark_at)) } else { self.reader.word(at + 8) };
            let mark = (at ^ secret).wrapping_mul(factor);
            each(at, word.is_ok_and(|word| word == mark || word == mark ^ on_slab));
        }
    }

    /// The program's live objects: the kit's buffers, not what is under them.
    pub fn for_each_out(&self, each: impl FnMut(Object)) {
        self.for_each_out_of(|_| true, each);
    }

    /// Those on spans that are `wanted`, and all outside of spans.
    pub(crate) fn for_each_out_of(&self, wanted: impl Fn(&Span) -> bool, mut each: impl FnMut(Object)) {
        self.for_each_taken_of(wanted, |object| {
            if self.kit.under(object.start).is_none() {
                each(object);
            }
        });
        for buffer in self.kit.buffers.iter().filter(|buffer| buffer.is_live) {
            each(Object { start: buffer.address, size: buffer.size, kind: Kind::Buffer, own: 0 });
        }
        for cache in &self.caches.all {
            self.for_each_in_cache(cache, |start, place| {
                if place == Place::Out {
                    each(Object { start, size: cache.size, kind: Kind::Cached(cache.id), own: 0 });
                }
            });
        }
    }

    /// The heap's live objects, huge ones last.
    fn for_each_taken_of(&self, wanted: impl Fn(&Span) -> bool, mut each: impl FnMut(Object)) {
        for span in self.spans.iter().filter(|span| wanted(span)) {
            let (class, own) = match span {
                Span::Slab { class, own, .. } => (*class, *own),
                Span::Large { first, pages, own } => {
                    let (start, size) = (self.address(*first), pages * self.page);
                    each(Object { start, size, kind: Kind::Large, own: *own });
                    continue;
                }
                Span::Morphed { first, entry, .. } => {
                    for (offset, size, class) in entry.old_objects() {
                        let start = self.address(*first) + offset;
                        // To the slab it is out while a cache has it.
                        if self.is_out(start) {
                            each(Object { start, size, kind: Kind::Small(class), own: 0 });
                        }
                    }
                    (entry.to, 0)
                }
                Span::Cached { .. } | Span::Notes { .. } => continue,
            };
            let size = self.class(class).map_or(0, |c| c.object);
            self.for_each_place(span, |start, is_out| {
                if is_out {
                    each(Object { start, size, kind: Kind::Small(class), own });
                }
            });
        }
        for (start, size) in &self.huge {
            each(Object { start: *start, size: *size, kind: Kind::Huge, own: 0 });
        }
    }

    pub fn span_of(&self, page: u64) -> Option<&Span> {
        let at = self.spans.partition_point(|span| span.first() <= page).checked_sub(1)?;
        let span = &self.spans[at];
        (page < span.first() + self.pages_of(span)).then_some(span)
    }

    pub fn pages_of(&self, span: &Span) -> u64 {
        match span {
            Span::Slab { class, .. } => self.class(*class).map_or(1, |c| c.pages),
            Span::Morphed { pages, .. } | Span::Large { pages, .. } | Span::Cached { pages, .. } => *pages,
            Span::Notes { .. } => 1,
        }
    }

    /// By [`Object::own`].
    pub fn own_name(&self, own: u32) -> Result<String, String> {
        let get = |name: &str| self.table.get(name);
        let slots = self.reader.word(get("own")? + get("own.slots")?)?;
        let slot = slots + u64::from(own.saturating_sub(1)) * get("own.slot.bytes")?;
        let name = self.reader.bytes(slot + get("own.slot.name")?, 32)?;
        Ok(text_in(&name))
    }
}

impl Span {
    pub fn first(&self) -> u64 {
        let (Self::Slab { first, .. }
        | Self::Morphed { first, .. }
        | Self::Large { first, .. }
        | Self::Cached { first, .. }
        | Self::Notes { first, .. }) = self;
        *first
    }
}
