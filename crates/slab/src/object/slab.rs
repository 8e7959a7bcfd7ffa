//! One slab: its record, its bits, its free objects.
//!
//! **From.** Bonwick94 §3.2.1. A bit for each object says whether it is out, so that an object that comes back twice is seen, and
//! those that are out can be listed; a link that a write after free has broken is seen when it is followed, and all links are
//! made anew by the bits. In a cache with a constructor a second bit says whether a free object is in its constructed state.
//!
//! **State.**
//! ```text
//! record: slab (8) · first object (8) · next (8) · previous (8) · in use (4) · cut (4) · head (4) · list (4)
//!         bits: out (8 for each 64 objects) · constructed (as many)
//! free object: | … | link: place of the next free object plus 1, or 0 (8 bytes, at the end) |
//! ```
//! With links, `head` is the place of the first free object plus 1, and objects from `cut` on have never been out. Without, no
//! word of the bits before the one at `head` has a free object.
//!
//! **Unsafe.** Follows pointers to records and links in free objects.

use super::layout::{ObjectLayout, RECORD_BYTES, WORD};
use core::ptr::NonNull;

/// What a cache knows of a slab. Its bits follow it.
#[repr(C)]
pub(super) struct Record {
    pub(super) slab: *mut u8,
    pub(super) start: *mut u8,
    next: Option<Slab>,
    prev: Option<Slab>,
    // Words of 32 bits: where halves of one are stored and then loaded as one, processors wait.
    pub(super) used: u32,
    cut: u32,
    head: u32,
    list: u32,
}

const _: () = assert!(size_of::<Record>() == RECORD_BYTES);

/// A slab, by its record. Whoever has one has the right to the record and to the slab's free objects: a cache, under its lock.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(transparent)]
pub(super) struct Slab(pub(super) NonNull<Record>);

/// What is wrong with an object that is to come back, on its slab.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Wrong {
    Between,
    Inside(usize),
}

impl Slab {
    /// Begins a slab at `slab`, whose objects begin `colour` bytes later.
    ///
    /// # Safety
    /// The slab's bytes and the record's, at `record`, are the caller's, and stay so while the slab is used.
    pub(super) unsafe fn begin(layout: &ObjectLayout, slab: *mut u8, record: NonNull<Record>, colour: usize) -> Self {
        let start = slab.wrapping_add(colour);
        // SAFETY: the record and its bits are the caller's.
        unsafe {
            record.write(Record { slab, start, next: None, prev: None, used: 0, cut: 0, head: 0, list: 0 });
            let this = Self(record);
            let (words, all) = (layout.words as usize, layout.capacity as usize);
            for word in 0..words {
                // Bits behind the last object count as out, so that nobody finds them.
                let here = (all - word * 64).min(64);
                this.out(word).write(if here == 64 { 0 } else { !0 << here });
                if layout.constructed {
                    this.built(layout, word).write(0);
                }
            }
            this
        }
    }

    #[inline]
    #[expect(clippy::mut_from_ref, reason = "a slab stands for its record; references do not outlive an expression")]
    fn record(&self) -> &mut Record {
        // SAFETY: who has the slab has its record, and no two threads have it at a time.
        unsafe { &mut *self.0.as_ptr() }
    }

    /// First byte.
    #[inline]
    pub(super) fn address(self) -> *mut u8 {
        self.record().slab
    }

    /// First object.
    pub(super) fn start(self) -> *mut u8 {
        self.record().start
    }

    /// Objects that are out.
    #[inline]
    pub(super) fn used(self) -> u32 {
        self.record().used
    }

    /// Objects that were ever out, where there are links.
    fn cut(self) -> u32 {
        self.record().cut
    }

    fn head(self) -> u32 {
        self.record().head
    }

    /// The list that the slab is on.
    #[inline]
    pub(super) fn list(self) -> u32 {
        self.record().list
    }

    #[inline]
    pub(super) fn set_list(self, list: u32) {
        self.record().list = list;
    }

    /// Whether the slab covers this address.
    #[inline]
    pub(super) fn covers(self, layout: &ObjectLayout, address: usize) -> bool {
        address.wrapping_sub(self.record().slab as usize) < layout.slab_bytes
    }

    #[inline]
    pub(super) fn out(self, word: usize) -> *mut u64 {
        self.0.as_ptr().wrapping_add(1).cast::<u64>().wrapping_add(word)
    }

    #[inline]
    pub(super) fn built(self, layout: &ObjectLayout, word: usize) -> *mut u64 {
        self.out(layout.words as usize + word)
    }

    /// Whether the object at a place is out.
    ///
    /// # Safety
    /// `i` is below the layout's capacity.
    #[inline]
    pub(super) unsafe fn is_out(self, i: usize) -> bool {
        // SAFETY: the record has a bit for each object.
        unsafe { (*self.out(i / 64) >> (i % 64)) & 1 == 1 }
    }

    /// Whether the object at a place, which is free, is constructed.
    ///
    /// # Safety
    /// As [`Slab::is_out`].
    #[inline]
    pub(super) unsafe fn is_built(self, layout: &ObjectLayout, i: usize) -> bool {
        // SAFETY: as above, in a cache with a constructor.
        layout.constructed && unsafe { (*self.built(layout, i / 64) >> (i % 64)) & 1 == 1 }
    }

    /// The object at a place.
    #[inline]
    pub(super) fn object(self, layout: &ObjectLayout, i: usize) -> *mut u8 {
        self.record().start.wrapping_add(i * layout.stride as usize)
    }

    /// Which object begins at this address, which the slab covers.
    #[inline]
    pub(super) fn place_of(self, layout: &ObjectLayout, address: usize) -> Result<usize, Wrong> {
        let offset = address.wrapping_sub(self.record().start as usize);
        if offset >= layout.extent {
            return Err(Wrong::Between);
        }
        let i = layout.index_of(offset);
        if i * layout.stride as usize == offset { Ok(i) } else { Err(Wrong::Inside(i)) }
    }

    #[inline]
    fn link(self, layout: &ObjectLayout, object: *mut u8) -> *mut u64 {
        object.wrapping_add(layout.link_end as usize).wrapping_sub(WORD).cast()
    }

    /// Takes an object; the slab has one that is free. Says whether it is constructed, and adds to `mended` when links were broken.
    ///
    /// # Safety
    /// The slab and its record are the caller's, and of this layout.
    #[inline(always)]
    pub(super) unsafe fn take(self, layout: &ObjectLayout, mended: &mut u32) -> (*mut u8, bool) {
        // SAFETY: by the contract.
        let i = unsafe { if layout.link_end != 0 { self.pop(layout, mended) } else { self.find(layout) } };
        self.record().used += 1;
        // SAFETY: `i` is a place.
        (self.object(layout, i), unsafe { self.is_built(layout, i) })
    }

    /// # Safety
    /// As [`Slab::take`].
    #[inline]
    unsafe fn pop(self, layout: &ObjectLayout, mended: &mut u32) -> usize {
        loop {
            let record = self.record();
            let head = record.head;
            if head != 0 {
                let i = head as usize - 1;
                // SAFETY: the place was cut, and its object is free, or, behind a broken link, is at least on the slab.
                unsafe {
                    let next = *self.link(layout, self.object(layout, i));
                    if next <= u64::from(record.cut) && self.mark(i) {
                        self.record().head = next as u32;
                        return i;
                    }
                }
            } else if record.cut < layout.capacity {
                let i = record.cut as usize;
                record.cut += 1;
                // SAFETY: it is a place, and was never out.
                let was_free = unsafe { self.mark(i) };
                debug_assert!(was_free, "a place that was never cut is out");
                return i;
            }
            // SAFETY: by the contract.
            unsafe { self.mend(layout) };
            *mended += 1;
        }
    }

    /// Notes that an object is out; says whether it was free.
    ///
    /// # Safety
    /// As [`Slab::is_out`].
    #[inline]
    unsafe fn mark(self, i: usize) -> bool {
        let (word, bit) = (self.out(i / 64), 1 << (i % 64));
        // SAFETY: the record has a bit for each object.
        unsafe {
            let free = *word & bit == 0;
            *word |= bit;
            free
        }
    }

    /// Makes the links anew, by the bits, in the order of the places.
    ///
    /// # Safety
    /// As [`Slab::take`].
    #[cold]
    #[inline(never)]
    unsafe fn mend(self, layout: &ObjectLayout) {
        let mut head = 0;
        for i in (0..self.cut() as usize).rev() {
            // SAFETY: places that were cut are on the slab, and the free ones are the cache's.
            unsafe {
                if !self.is_out(i) {
                    *self.link(layout, self.object(layout, i)) = head;
                    head = i as u64 + 1;
                }
            }
        }
        self.record().head = head as u32;
    }

    /// The first free object, by the bits.
    ///
    /// # Safety
    /// As [`Slab::take`].
    #[inline]
    unsafe fn find(self, layout: &ObjectLayout) -> usize {
        let mut at = self.record().head as usize;
        // SAFETY: one of the words has a clear bit, since an object is free, and none before the hint.
        unsafe {
            while *self.out(at) == !0 {
                at += 1;
                debug_assert!(at < layout.words as usize, "an object is free");
            }
            let bit = (*self.out(at)).trailing_ones();
            *self.out(at) |= 1 << bit;
            self.record().head = at as u32;
            at * 64 + bit as usize
        }
    }

    /// Takes the object at a place back, constructed or not. Says whether it was out; nothing has changed if not.
    ///
    /// # Safety
    /// As [`Slab::take`]; `i` is below the capacity, and the object, if it is out, is given up.
    #[inline(always)]
    pub(super) unsafe fn give(self, layout: &ObjectLayout, i: usize, constructed: bool) -> bool {
        let (word, bit) = (self.out(i / 64), 1 << (i % 64));
        // SAFETY: the record has a bit for each object, and the object's memory is the slab's again.
        unsafe {
            if *word & bit == 0 {
                return false;
            }
            *word &= !bit;
            if layout.constructed {
                let built = self.built(layout, i / 64);
                *built = if constructed { *built | bit } else { *built & !bit };
            }
            let record = self.record();
            record.used -= 1;
            if layout.link_end != 0 {
                let head = record.head;
                record.head = i as u32 + 1;
                *self.link(layout, self.object(layout, i)) = head.into();
            } else {
                record.head = record.head.min((i / 64) as u32);
            }
        }
        true
    }

    /// Calls `f` with each object of the slab that is out, or that is free and constructed.
    ///
    /// # Safety
    /// As [`Slab::take`]; `f` does not change the slab.
    pub(super) unsafe fn for_each(self, layout: &ObjectLayout, out: bool, mut f: impl FnMut(*mut u8)) {
        for i in 0..layout.capacity as usize {
            // SAFETY: `i` is a place.
            let is_one = unsafe {
                let is_out = self.is_out(i);
                if out { is_out } else { !is_out && self.is_built(layout, i) }
            };
            if is_one {
                f(self.object(layout, i));
            }
        }
    }

    /// Walks O1 and O2; says which does not hold.
    ///
    /// # Safety
    /// As [`Slab::take`].
    pub(super) unsafe fn check(self, layout: &ObjectLayout) -> Result<(), &'static str> {
        let (all, mut out) = (layout.capacity as usize, 0);
        for i in 0..layout.words as usize * 64 {
            // SAFETY: there is a bit for each.
            let is_out = unsafe { (*self.out(i / 64) >> (i % 64)) & 1 == 1 };
            if i >= all && !is_out {
                return Err("O1");
            }
            out += usize::from(is_out && i < all);
            if layout.link_end == 0 && !is_out && i / 64 < self.head() as usize {
                return Err("O2");
            }
            if layout.link_end != 0 && is_out && i < all && i >= self.cut() as usize {
                return Err("O2");
            }
        }
        if out != self.used() as usize {
            return Err("O1");
        }
        if layout.link_end == 0 {
            return Ok(());
        }
        let (mut free, mut head) = (0, u64::from(self.head()));
        while head != 0 {
            // SAFETY: the place is one that was cut, by the test before.
            let sound = head <= self.cut().into() && unsafe { !self.is_out(head as usize - 1) };
            if !sound || free > all {
                return Err("O2");
            }
            free += 1;
            // SAFETY: the object is free.
            head = unsafe { *self.link(layout, self.object(layout, head as usize - 1)) };
        }
        if free == self.cut() as usize - out { Ok(()) } else { Err("O2") }
    }
}

/// A record's place at the end of a slab of this layout, or `None` where it lies apart.
pub(super) fn record_inside(layout: &ObjectLayout, slab: *mut u8) -> Option<NonNull<Record>> {
    match layout.record_at {
        0 => None,
        at => NonNull::new(slab.wrapping_add(at as usize).cast()),
    }
}

/// A doubly linked list of slabs.
#[derive(Clone, Copy, Debug)]
pub(super) struct List {
    first: Option<Slab>,
    last: Option<Slab>,
}

impl List {
    pub(super) const EMPTY: Self = Self { first: None, last: None };

    pub(super) fn first(&self) -> Option<Slab> {
        self.first
    }

    pub(super) fn last(&self) -> Option<Slab> {
        self.last
    }

    pub(super) fn push(&mut self, slab: Slab) {
        let record = slab.record();
        (record.prev, record.next) = (None, self.first);
        match self.first {
            Some(first) => first.record().prev = Some(slab),
            None => self.last = Some(slab),
        }
        self.first = Some(slab);
    }

    pub(super) fn unlink(&mut self, slab: Slab) {
        let (next, prev) = (slab.record().next, slab.record().prev);
        match prev {
            Some(prev) => prev.record().next = next,
            None => self.first = next,
        }
        match next {
            Some(next) => next.record().prev = prev,
            None => self.last = prev,
        }
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = Slab> + use<> {
        core::iter::successors(self.first, |slab| slab.record().next)
    }
}

/// The address of the page that something lies on.
pub(super) fn page_of(layout: &ObjectLayout, at: *mut u8) -> *mut u8 {
    at.wrapping_sub(at as usize % layout.page_bytes())
}
