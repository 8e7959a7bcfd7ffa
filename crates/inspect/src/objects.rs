//! Live objects by number and by address.
//!
//! **What.** [`Objects::around`] finds the object that holds an address. A search marks objects by
//! number, in bits, and goes from one to the next by [`Found`], without a second look by address.
//!
//! **State.** On a slab of one class an object's number is the slab's first plus its place. Other
//! objects have a sorted list: those of slabs of two classes, of slabs with buffers of the
//! debugging kit or of object caches, and those outside of the heap.
//! ```text
//! page → run ─ slab:  first number + offset / size → live?
//!            └ list:  the last object that begins before the address
//! ```
//!
//! **Cost.** A bit for each place of a slab, 48 bytes for each slab, 40 for each listed object, 4
//! for each page. A search would wait for memory at each of them: for the page's run, the run, the
//! bit, the object. So it goes in steps of [`BATCH`] objects, and [`Objects::find_all`] and
//! [`SharedBits::remove_all`] in passes over as many words, whose loads the processor overlaps.

use crate::heap::{Heap, Kind, Object, Span};
use crate::memory::{Held, words};
use crate::reader::Reader;
use std::collections::HashSet;
use std::ops::Range;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// Objects that a search fetches at a time, and words that it looks up.
pub(crate) const BATCH: usize = 64;
/// Of the processor's cache, in bytes, and those of an object that a search fetches.
const LINE: usize = 64;
const LINES: usize = 4;
const NO_RUN: u32 = u32::MAX;

/// A set of numbers.
#[derive(Clone, Debug, Default)]
pub(crate) struct Bits(Vec<u64>);

impl Bits {
    pub fn new(len: usize) -> Self {
        Self(vec![0; len.div_ceil(64)])
    }

    pub fn has(&self, i: u32) -> bool {
        self.0[i as usize / 64] >> (i % 64) & 1 == 1
    }

    /// Whether it was absent.
    pub fn insert(&mut self, i: u32) -> bool {
        let (word, bit) = (&mut self.0[i as usize / 64], 1 << (i % 64));
        let is_new = *word & bit == 0;
        *word |= bit;
        is_new
    }

    /// Whether it was there.
    pub fn remove(&mut self, i: u32) -> bool {
        let (word, bit) = (&mut self.0[i as usize / 64], 1 << (i % 64));
        let is_there = *word & bit != 0;
        *word &= !bit;
        is_there
    }
}

/// A set of numbers that threads empty together.
#[derive(Debug)]
pub(crate) struct SharedBits(Vec<AtomicU64>);

impl SharedBits {
    pub fn has(&self, i: u32) -> bool {
        self.0[i as usize / 64].load(Relaxed) >> (i % 64) & 1 == 1
    }

    /// `true` once for each number that is there.
    pub fn remove(&self, i: u32) -> bool {
        let (word, bit) = (&self.0[i as usize / 64], 1 << (i % 64));
        // ORDERING: relaxed; a bit says nothing about other memory, and of several exchanges of one
        // word only one sees the bit. Most words lead to an object for the first time, or again.
        word.load(Relaxed) & bit != 0 && word.fetch_and(!bit, Relaxed) & bit != 0
    }
}

impl SharedBits {
    /// Adds those that are removed to `open`.
    pub fn remove_all(&self, all: &[Option<Found>], open: &mut Vec<Found>) {
        let word = |found: &Option<Found>| found.map_or(0, |found| self.0[found.number as usize / 64].load(Relaxed));
        std::hint::black_box(all.iter().map(word).fold(0, |all, word| all ^ word));
        open.extend(all.iter().flatten().filter(|found| self.remove(found.number)));
    }
}

impl From<&Bits> for SharedBits {
    fn from(bits: &Bits) -> Self {
        Self(bits.0.iter().map(|word| AtomicU64::new(*word)).collect())
    }
}

#[derive(Clone, Copy, Debug)]
enum Run<'m> {
    /// `size` up to the next place; `own` as in [`Object`]; `bytes` of all places, if they lie
    /// together in whole words, or else empty.
    Slab { start: u64, first: u32, places: u32, size: u32, class: u8, own: u32, bytes: &'m [u8] },
    /// The list's objects that begin before its end are the first ones.
    Listed { until: u32 },
}

/// An object and its number.
pub(crate) type Numbered = (u32, Object);

/// Where an object is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Found {
    pub number: u32,
    /// [`NO_RUN`] for a listed one.
    run: u32,
}

pub(crate) struct Objects<'m> {
    pub count: u64,
    pub bytes: u64,
    /// By page of the heap.
    run_at: Vec<u32>,
    runs: Vec<Run<'m>>,
    /// By number, listed ones too.
    live: Bits,
    base: u64,
    page_shift: u32,
    /// By address; numbers from `first_listed` on.
    listed: Vec<Object>,
    first_listed: u32,
    /// Those outside of the heap begin here in `listed`.
    apart_at: usize,
    apart: (u64, u64),
}

impl<'m> Objects<'m> {
    /// # Errors
    /// More objects than numbers.
    pub fn new(heap: &Heap<'m>) -> Result<Self, String> {
        let has_buffer: HashSet<u64> = heap.kit.under_starts().filter_map(|start| run_start(heap, start)).collect();
        let is_plain = |span: &Span| match span {
            Span::Slab { first, class, .. } => {
                heap.class(*class).is_some_and(|c| c.object > 0) && !has_buffer.contains(first)
            }
            _ => false,
        };
        let places: u64 = heap.spans.iter().filter(|span| is_plain(span)).map(|span| heap.carved(span)).sum();
        let mut this = Self {
            count: 0,
            bytes: 0,
            run_at: vec![NO_RUN; heap.granted as usize],
            runs: Vec::with_capacity(heap.spans.len()),
            live: Bits::default(),
            base: heap.base,
            page_shift: heap.page.trailing_zeros(),
            listed: Vec::new(),
            first_listed: u32::try_from(places).map_err(|_| too_many(places))?,
            apart_at: 0,
            apart: (u64::MAX, 0),
        };
        this.list(heap, is_plain)?;
        this.live = Bits::new(this.numbers());
        let mut first = 0;
        for span in &heap.spans {
            let pages = span.first() as usize..(span.first() + heap.pages_of(span)) as usize;
            this.run_at[pages].fill(this.runs.len() as u32);
            let run = if is_plain(span) { this.add_slab(heap, span, &mut first) } else { this.listed_run(heap, span) };
            this.runs.push(run);
        }
        (this.first_listed..this.numbers() as u32).for_each(|listed| _ = this.live.insert(listed));
        this.remove_unmarked(heap);
        Ok(this)
    }

    /// Objects that no run of one class holds.
    fn list(&mut self, heap: &Heap<'_>, is_plain: impl Fn(&Span) -> bool) -> Result<(), String> {
        heap.for_each_out_of(|span| !is_plain(span), |object| self.listed.push(object));
        self.listed.sort_unstable_by_key(|o| (heap.page_of(o.start).is_none(), o.start));
        let all = u64::from(self.first_listed) + self.listed.len() as u64;
        if u32::try_from(all).is_err() {
            return Err(too_many(all));
        }
        self.count = self.listed.len() as u64;
        self.bytes = self.listed.iter().map(|object| object.size).sum();
        self.apart_at = self.listed.partition_point(|o| heap.page_of(o.start).is_some());
        let last = self.listed[self.apart_at..].last().map_or(0, |o| o.start + o.size.max(1));
        self.apart = (self.listed.get(self.apart_at).map_or(u64::MAX, |o| o.start), last);
        Ok(())
    }

    /// With the free objects that have no mark.
    fn add_slab(&mut self, heap: &Heap<'m>, span: &Span, next: &mut u32) -> Run<'m> {
        let Span::Slab { first: page, class, own } = span else { return Run::Listed { until: 0 } };
        let (start, size, first) = (heap.address(*page), heap.class(*class).map_or(1, |c| c.object), *next);
        let places = heap.carved(span);
        let mut number = first;
        heap.for_each_mark(*page, *class, places, |_, is_marked| {
            if !is_marked {
                self.live.insert(number);
                self.count += 1;
                self.bytes += size;
            }
            number += 1;
        });
        *next = number;
        let bytes = match heap.reader.memory.held(start) {
            Held::Bytes(bytes) if size.is_multiple_of(8) => bytes.get(..(places * size) as usize).unwrap_or_default(),
            _ => &[],
        };
        Run::Slab { start, first, places: places as u32, size: size as u32, class: *class, own: *own, bytes }
    }

    /// Those of slabs of one class; the others are not listed.
    fn remove_unmarked(&mut self, heap: &Heap<'_>) {
        for at in &heap.unmarked {
            let Some(found) = self.find(*at).filter(|found| found.run != NO_RUN) else { continue };
            let object = self.object(found);
            if object.start == *at && self.live.remove(found.number) {
                self.count -= 1;
                self.bytes -= object.size;
            }
        }
    }

    fn listed_run(&self, heap: &Heap<'_>, span: &Span) -> Run<'m> {
        let end = heap.address(span.first() + heap.pages_of(span));
        Run::Listed { until: self.listed[..self.apart_at].partition_point(|object| object.start < end) as u32 }
    }

    /// One more than the highest number.
    pub fn numbers(&self) -> usize {
        self.first_listed as usize + self.listed.len()
    }

    /// The numbers of all live ones.
    pub fn live(&self) -> &Bits {
        &self.live
    }

    fn run_of(&self, at: u64) -> u32 {
        let page = at.wrapping_sub(self.base) >> self.page_shift;
        self.run_at.get(page as usize).copied().unwrap_or(NO_RUN)
    }

    fn find_in(&self, run: u32, at: u64) -> Option<Found> {
        match self.runs.get(run as usize) {
            Some(Run::Slab { start, first, places, size, .. }) => {
                let place = (at - start) as u32 / size;
                (place < *places).then_some(Found { number: first + place, run })
            }
            Some(Run::Listed { until }) => self.listed_at(at, 0, *until as usize),
            None if self.apart.0 <= at && at < self.apart.1 => self.listed_at(at, self.apart_at, self.listed.len()),
            None => None,
        }
    }

    /// The place that holds an address, whose object may be free.
    pub fn find(&self, at: u64) -> Option<Found> {
        self.find_in(self.run_of(at), at)
    }

    /// Whether [`Objects::find`] is worth a call.
    #[inline]
    pub fn may_find(&self, at: u64) -> bool {
        let page = at.wrapping_sub(self.base) >> self.page_shift;
        page < self.run_at.len() as u64 || self.apart.0 <= at && at < self.apart.1
    }

    /// [`Objects::find`] for each of up to [`BATCH`] words.
    pub fn find_all(&self, words: impl Iterator<Item = u64> + Clone, into: &mut Vec<Option<Found>>) {
        let mut runs = [NO_RUN; BATCH];
        runs.iter_mut().zip(words.clone()).for_each(|(run, word)| *run = self.run_of(word));
        into.extend(runs.iter().zip(words).map(|(run, word)| self.find_in(*run, word)));
    }

    pub fn object(&self, found: Found) -> Object {
        match self.runs.get(found.run as usize) {
            Some(Run::Slab { start, first, size, class, own, .. }) => {
                let start = start + u64::from(found.number - first) * u64::from(*size);
                Object { start, size: (*size).into(), kind: Kind::Small(*class), own: *own }
            }
            _ => self.listed[(found.number - self.first_listed) as usize],
        }
    }

    /// The object that holds an address.
    pub fn around(&self, at: u64) -> Option<Numbered> {
        let found = self.find(at).filter(|found| self.live.has(found.number))?;
        Some((found.number, self.object(found)))
    }

    /// Its memory, if that lies together in whole words.
    fn bytes_of(&self, found: Found) -> Option<(u64, &'m [u8])> {
        let Some(Run::Slab { start, first, size, bytes, .. }) = self.runs.get(found.run as usize) else { return None };
        let at = (found.number - first) as usize * *size as usize;
        Some((start + at as u64, bytes.get(at..at + *size as usize)?))
    }

    /// Calls `each` with place and value of each aligned word of an object.
    #[inline]
    pub fn for_each_word_of(&self, reader: &Reader<'_>, found: Found, mut each: impl FnMut(u64, u64)) {
        if let Some((start, bytes)) = self.bytes_of(found) {
            return (start..).step_by(8).zip(words(bytes)).for_each(|(at, word)| each(at, word));
        }
        let object = self.object(found);
        reader.for_each_word(object.start, object.start + object.size, each);
    }

    /// Brings objects' first lines into the processor's cache: it waits for many at once, where a
    /// search along pointers would wait for each. Behind them it reads ahead by itself.
    pub fn fetch(&self, reader: &Reader<'_>, all: &[Found]) {
        let lines = |bytes: &[u8]| bytes.iter().step_by(LINE).take(LINES).fold(0, |all, byte| all ^ byte);
        let first = |found: &Found| match self.bytes_of(*found) {
            Some((_, bytes)) => lines(bytes),
            None => match reader.memory.held(self.object(*found).start) {
                Held::Bytes(bytes) => lines(&bytes[..bytes.len().min(LINE)]),
                Held::Zeros(_) | Held::Elsewhere => 0,
            },
        };
        std::hint::black_box(all.iter().map(first).fold(0, |all, byte| all ^ byte));
    }

    fn listed_at(&self, at: u64, from: usize, until: usize) -> Option<Found> {
        let i = from + self.listed[from..until].partition_point(|o| o.start <= at);
        let i = i.checked_sub(1).filter(|i| *i >= from)?;
        // An object of no bytes is where it begins.
        let object = self.listed[i];
        let number = self.first_listed + i as u32;
        (at - object.start < object.size.max(1)).then_some(Found { number, run: NO_RUN })
    }

    /// Those of a set, by address, those outside of the heap last.
    pub fn for_each(&self, is_in: impl Fn(u32) -> bool, mut each: impl FnMut(Found)) {
        let mut at = 0;
        for (run, kind) in self.runs.iter().enumerate() {
            match *kind {
                Run::Slab { first, places, .. } => {
                    let numbers = (first..first + places).filter(|number| is_in(*number));
                    numbers.for_each(|number| each(Found { number, run: run as u32 }));
                }
                Run::Listed { until } => {
                    self.each_listed(at..until, &is_in, &mut each);
                    at = at.max(until);
                }
            }
        }
        self.each_listed(at..self.listed.len() as u32, &is_in, &mut each);
    }

    fn each_listed(&self, all: Range<u32>, is_in: &impl Fn(u32) -> bool, each: &mut impl FnMut(Found)) {
        let numbers = all.map(|i| self.first_listed + i).filter(|number| is_in(*number));
        numbers.for_each(|number| each(Found { number, run: NO_RUN }));
    }
}

/// The first page of the span around an address.
fn run_start(heap: &Heap<'_>, at: u64) -> Option<u64> {
    heap.page_of(at).and_then(|page| heap.span_of(page)).map(Span::first)
}

fn too_many(objects: u64) -> String {
    format!("the heap has places for {objects} objects, more than this search can tell apart")
}

#[cfg(test)]
mod tests;
