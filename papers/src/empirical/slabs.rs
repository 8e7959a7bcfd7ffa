//! Objects on slabs of a simulated page heap: decides as craton-slab, in numbers (Bonwick94 §3.2).
//!
//! An object is named by its slab's first page. It uses a place carved before, else the next one,
//! whose pages are touched. While a forked child runs, a random place carved before is written too.

use craton_base::{
    Bytes, Density, Geometry, Huge2M, PAGE_SIZE, PageBits, PageId, PageRange, Pages, SpanError, SpanSource,
};
use craton_sim::{Rng, SimFloor};
use craton_slab::size_class::{CLASSES, MAX_CLASSED, class_of, geometry};

#[derive(Clone, Copy, Default)]
struct Slab {
    used: u16,
    carved: u16,
    /// Partial slabs' first pages plus 1; 0 at the ends.
    next: u32,
    prev: u32,
}

pub(crate) struct Slabs {
    slabs: Vec<Slab>,
    /// By class, plus 1.
    heads: [u32; CLASSES + 1],
    floor: SimFloor,
    used: Vec<PageBits>,
    pub forked: bool,
    rng: Rng,
}

fn pages_of(size: u64) -> Result<Pages, SpanError> {
    Bytes(size as usize).pages_up().ok_or(SpanError::NoMemory)
}

impl Slabs {
    pub fn new(floor: SimFloor) -> Self {
        let (slabs, used, rng) = (Vec::new(), Vec::new(), Rng::new(1));
        Self { slabs, heads: [0; CLASSES + 1], floor, used, forked: false, rng }
    }

    pub fn used(&self, first: PageId) -> u16 {
        self.slabs.get(first.0 as usize).map_or(0, |slab| slab.used)
    }

    pub fn backed_beyond(&self) -> Pages {
        self.floor.backed_beyond(&self.used)
    }

    fn alloc_span(
        &mut self,
        pages: &mut impl SpanSource,
        len: Pages,
        align: Pages,
        density: Density,
    ) -> Result<PageRange, SpanError> {
        let range = pages.alloc(len, align, density)?.range;
        for (id, first, len) in Huge2M::parts(range) {
            let needed = self.used.len().max(id.0 as usize + 1);
            self.used.resize(needed, PageBits::EMPTY);
            self.used[id.0 as usize].insert(first, len);
        }
        Ok(range)
    }

    fn free_span(&mut self, pages: &mut impl SpanSource, span: PageRange, density: Density) {
        Huge2M::parts(span).for_each(|(id, first, len)| self.used[id.0 as usize].remove(first, len));
        pages.free(span, density).expect("the span was allocated");
    }

    fn write(&self, first: u32, place: u16, object: usize) {
        let start = usize::from(place) * object;
        let (from, to) = ((start / PAGE_SIZE) as u32, (start + object).div_ceil(PAGE_SIZE) as u32);
        self.floor.touch(PageRange::new(PageId(first + from), Pages(to - from)));
    }

    /// The first page of its slab or span.
    pub fn alloc(&mut self, size: u64, pages: &mut impl SpanSource) -> Result<PageId, SpanError> {
        if size > MAX_CLASSED as u64 {
            let range = self.alloc_span(pages, pages_of(size)?, Pages(1), Density::Sparse)?;
            self.floor.touch(range);
            return Ok(range.first);
        }
        let class = class_of(size as usize);
        let geometry = geometry(class);
        let first = match self.heads[class].checked_sub(1) {
            Some(first) => first,
            None => {
                let first = self.alloc_span(pages, geometry.pages, geometry.align(), geometry.density())?.first.0;
                let len = self.slabs.len().max(first as usize + 1);
                self.slabs.resize(len, Slab::default());
                self.slabs[first as usize] = Slab::default();
                self.push_front(class, first);
                first
            }
        };
        let Slab { used, carved, .. } = self.slabs[first as usize];
        if used == carved {
            self.write(first, carved, geometry.object as usize);
            self.slabs[first as usize].carved += 1;
        } else if self.forked {
            let place = self.rng.below(carved.into()) as u16;
            self.write(first, place, geometry.object as usize);
        }
        let slab = &mut self.slabs[first as usize];
        slab.used += 1;
        if slab.used == geometry.capacity {
            self.unlink(class, first);
        }
        Ok(PageId(first))
    }

    pub fn free(&mut self, first: PageId, size: u64, pages: &mut impl SpanSource) {
        if size > MAX_CLASSED as u64 {
            let len = pages_of(size).expect("the span was allocated");
            self.free_span(pages, PageRange::new(first, len), Density::Sparse);
            return;
        }
        let class = class_of(size as usize);
        let geometry = geometry(class);
        if self.slabs[first.0 as usize].used == geometry.capacity {
            self.push_front(class, first.0);
        }
        let slab = &mut self.slabs[first.0 as usize];
        slab.used -= 1;
        if slab.used == 0 {
            self.unlink(class, first.0);
            self.free_span(pages, PageRange::new(first, geometry.pages), geometry.density());
        }
    }

    fn push_front(&mut self, class: usize, first: u32) {
        let head = std::mem::replace(&mut self.heads[class], first + 1);
        let slab = &mut self.slabs[first as usize];
        (slab.next, slab.prev) = (head, 0);
        if let Some(head) = head.checked_sub(1) {
            self.slabs[head as usize].prev = first + 1;
        }
    }

    fn unlink(&mut self, class: usize, first: u32) {
        let Slab { next, prev, .. } = self.slabs[first as usize];
        match prev.checked_sub(1) {
            Some(prev) => self.slabs[prev as usize].next = next,
            None => self.heads[class] = next,
        }
        if let Some(next) = next.checked_sub(1) {
            self.slabs[next as usize].prev = prev;
        }
    }
}

#[cfg(test)]
mod tests;
