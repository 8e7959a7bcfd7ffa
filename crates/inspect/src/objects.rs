//! Live objects by number and by address.
//!
//! **What.** [`Objects::around`] finds the object that holds an address. A search marks objects by
//! number, in [`Bits`].
//!
//! **State.** On a slab of one class an object's number is the slab's first plus its place. Other
//! objects have a sorted list: those of slabs of two classes, of slabs with buffers of the
//! debugging kit or of object caches, and those outside of the heap.
//! ```text
//! page → run ─ slab:  first number + offset / size → live?
//!            └ list:  the last object that begins before the address
//! ```
//!
//! **Cost.** A bit for each place of a slab, 40 bytes for each listed object, 4 for each page.

use crate::heap::{Heap, Kind, Object, Span};
use crate::memory::Held;
use crate::reader::Reader;
use std::collections::HashSet;

/// Objects that a search fetches at a time.
pub(crate) const BATCH: usize = 64;
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
}

#[derive(Clone, Copy, Debug)]
enum Run {
    /// `size` up to the next place; `own` as in [`Object`].
    Slab { start: u64, first: u32, places: u32, size: u32, class: u8, own: u32 },
    /// The list's objects that begin before its end are the first ones.
    Listed { until: u32 },
}

/// An object and its number.
pub(crate) type Numbered = (u32, Object);

pub(crate) struct Objects {
    pub count: u64,
    pub bytes: u64,
    /// By page of the heap.
    run_at: Vec<u32>,
    runs: Vec<Run>,
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

impl Objects {
    /// # Errors
    /// More objects than numbers.
    pub fn new(heap: &Heap<'_>) -> Result<Self, String> {
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
            live: Bits::new(places as usize),
            base: heap.base,
            page_shift: heap.page.trailing_zeros(),
            listed: Vec::new(),
            first_listed: u32::try_from(places).map_err(|_| too_many(places))?,
            apart_at: 0,
            apart: (u64::MAX, 0),
        };
        this.list(heap, is_plain)?;
        let mut first = 0;
        for span in &heap.spans {
            let pages = span.first() as usize..(span.first() + heap.pages_of(span)) as usize;
            this.run_at[pages].fill(this.runs.len() as u32);
            let run = if is_plain(span) { this.add_slab(heap, span, &mut first) } else { this.listed_run(heap, span) };
            this.runs.push(run);
        }
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

    fn add_slab(&mut self, heap: &Heap<'_>, span: &Span, next: &mut u32) -> Run {
        let Span::Slab { first: page, class, own } = span else { return Run::Listed { until: 0 } };
        let (start, size, first) = (heap.address(*page), heap.class(*class).map_or(1, |c| c.object), *next);
        let places = heap.carved(span) as u32;
        let mut i = first;
        heap.for_each_place(span, |_, is_out| {
            if is_out {
                self.live.insert(i);
                self.count += 1;
                self.bytes += size;
            }
            i += 1;
        });
        *next += places;
        Run::Slab { start, first, places, size: size as u32, class: *class, own: *own }
    }

    fn listed_run(&self, heap: &Heap<'_>, span: &Span) -> Run {
        let end = heap.address(span.first() + heap.pages_of(span));
        Run::Listed { until: self.listed[..self.apart_at].partition_point(|object| object.start < end) as u32 }
    }

    /// One more than the highest number.
    pub fn numbers(&self) -> usize {
        self.first_listed as usize + self.listed.len()
    }

    /// The object that holds an address.
    pub fn around(&self, at: u64) -> Option<Numbered> {
        let page = at.wrapping_sub(self.base) >> self.page_shift;
        let Some(run) = usize::try_from(page).ok().and_then(|page| self.run_at.get(page)) else {
            let is_apart = self.apart.0 <= at && at < self.apart.1;
            return is_apart.then(|| self.listed_at(at, self.apart_at, self.listed.len())).flatten();
        };
        match *self.runs.get(*run as usize)? {
            Run::Slab { start, first, places, size, class, own } => {
                let place = (at - start) as u32 / size;
                let number = first + place;
                (place < places && self.live.has(number)).then(|| {
                    let start = start + u64::from(place) * u64::from(size);
                    (number, Object { start, size: size.into(), kind: Kind::Small(class), own })
                })
            }
            Run::Listed { until } => self.listed_at(at, 0, until as usize),
        }
    }

    /// Objects by their starts, with their first words in the processor's cache: it waits for many
    /// at once, where a search along pointers would wait for each.
    pub fn fetch(&self, reader: &Reader<'_>, starts: impl Iterator<Item = u64>, into: &mut Vec<Object>) {
        into.extend(starts.filter_map(|start| self.around(start)).map(|(_, object)| object));
        let first = |object: &Object| match reader.memory.held(object.start) {
            Held::Bytes(bytes) => bytes.first().copied().unwrap_or(0),
            Held::Zeros(_) | Held::Elsewhere => 0,
        };
        std::hint::black_box(into.iter().map(first).fold(0, |all, byte| all ^ byte));
    }

    fn listed_at(&self, at: u64, from: usize, until: usize) -> Option<Numbered> {
        let i = from + self.listed[from..until].partition_point(|o| o.start <= at);
        let i = i.checked_sub(1).filter(|i| *i >= from)?;
        // An object of no bytes is where it begins.
        let object = self.listed[i];
        (at - object.start < object.size.max(1)).then_some((self.first_listed + i as u32, object))
    }

    /// By address, those outside of the heap last.
    pub fn for_each(&self, mut each: impl FnMut(u32, Object)) {
        let mut at = 0;
        for run in &self.runs {
            match *run {
                Run::Slab { start, first, places, size, class, own } => {
                    for place in (0..places).filter(|place| self.live.has(first + place)) {
                        let start = start + u64::from(place) * u64::from(size);
                        let kind = Kind::Small(class);
                        each(first + place, Object { start, size: size.into(), kind, own });
                    }
                }
                Run::Listed { until } => {
                    self.each_listed(at, until as usize, &mut each);
                    at = at.max(until as usize);
                }
            }
        }
        self.each_listed(at, self.listed.len(), &mut each);
    }

    fn each_listed(&self, from: usize, until: usize, each: &mut impl FnMut(u32, Object)) {
        for i in from..until {
            each(self.first_listed + i as u32, self.listed[i]);
        }
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
