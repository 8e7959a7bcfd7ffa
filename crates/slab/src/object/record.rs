//! One slab of constructed objects: its record, and a bit for each object.
//!
//! Bonwick94 §3.2.1 has links instead: bits keep a free object's whole state, detect double frees
//! and list live objects, and no write after free damages them.
//! ```text
//! record: slab (8) · first object (8) · next (8) · previous (8) · in use (4) · hint (4)
//!         bits: out (8 for each 64 objects) · constructed (as many)
//! ```
//! **Unsafe.** Follows pointers to records.

use super::layout::{ObjectLayout, RECORD_BYTES};
use crate::lists::Links;
use core::ptr::NonNull;

#[repr(C)]
pub(super) struct Record {
    pub(super) slab: *mut u8,
    pub(super) start: *mut u8,
    next: Option<Slab>,
    prev: Option<Slab>,
    // 32-bit words: loading two stored halves as one word stalls the CPU.
    pub(super) used: u32,
    hint: u32,
}

const _: () = assert!(size_of::<Record>() == RECORD_BYTES);

/// A locked cache may use record and free objects.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(transparent)]
pub(super) struct Slab(pub(super) NonNull<Record>);

pub(super) struct InRecords;

impl Links for InRecords {
    type Slab = Slab;

    #[inline]
    fn next(&self, slab: Slab) -> Option<Slab> {
        slab.record().next
    }

    #[inline]
    fn prev(&self, slab: Slab) -> Option<Slab> {
        slab.record().prev
    }

    #[inline]
    fn set_next(&self, slab: Slab, to: Option<Slab>) {
        slab.record().next = to;
    }

    #[inline]
    fn set_prev(&self, slab: Slab, to: Option<Slab>) {
        slab.record().prev = to;
    }
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Wrong {
    Between,
    Inside(usize),
}

impl Slab {
    /// # Safety
    /// The bytes of slab and record are the caller's while it is used.
    pub(super) unsafe fn begin(layout: &ObjectLayout, slab: *mut u8, record: NonNull<Record>, colour: usize) -> Self {
        // SAFETY: record and bits are the caller's.
        unsafe {
            record.write(Record { slab, start: slab.wrapping_add(colour), next: None, prev: None, used: 0, hint: 0 });
            let this = Self(record);
            let (words, all) = (layout.words as usize, layout.capacity as usize);
            for word in 0..words {
                // No search finds bits past the last object.
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
        // SAFETY: one thread at a time owns the slab.
        unsafe { &mut *self.0.as_ptr() }
    }

    #[inline]
    pub(super) fn address(self) -> *mut u8 {
        self.record().slab
    }

    pub(super) fn start(self) -> *mut u8 {
        self.record().start
    }

    #[inline]
    pub(super) fn used(self) -> u16 {
        self.record().used as u16
    }

    #[inline]
    pub(super) fn covers(self, layout: &ObjectLayout, address: usize) -> bool {
        address.wrapping_sub(self.record().slab as usize) < layout.slab_bytes
    }

    #[inline]
    fn out(self, word: usize) -> *mut u64 {
        self.0.as_ptr().wrapping_add(1).cast::<u64>().wrapping_add(word)
    }

    #[inline]
    fn built(self, layout: &ObjectLayout, word: usize) -> *mut u64 {
        self.out(layout.words as usize + word)
    }

    /// # Safety
    /// `i` is below the capacity.
    #[inline]
    pub(super) unsafe fn is_out(self, i: usize) -> bool {
        // SAFETY: a bit for each object.
        unsafe { (*self.out(i / 64) >> (i % 64)) & 1 == 1 }
    }

    /// # Safety
    /// As [`Slab::is_out`].
    #[inline]
    unsafe fn is_built(self, layout: &ObjectLayout, i: usize) -> bool {
        // SAFETY: as above, in a cache with a constructor.
        layout.constructed && unsafe { (*self.built(layout, i / 64) >> (i % 64)) & 1 == 1 }
    }

    #[inline]
    pub(super) fn object(self, layout: &ObjectLayout, i: usize) -> *mut u8 {
        self.record().start.wrapping_add(i * layout.stride as usize)
    }

    #[inline]
    pub(super) fn place_of(self, layout: &ObjectLayout, address: usize) -> Result<usize, Wrong> {
        let offset = address.wrapping_sub(self.record().start as usize);
        if offset >= layout.extent {
            return Err(Wrong::Between);
        }
        let i = layout.index_of(offset);
        if i * layout.stride as usize == offset { Ok(i) } else { Err(Wrong::Inside(i)) }
    }

    /// An object must be free. Also returns whether it is constructed.
    /// # Safety
    /// The slab and its record are the caller's, of this layout.
    #[inline(always)]
    pub(super) unsafe fn alloc(self, layout: &ObjectLayout) -> (*mut u8, bool) {
        let mut at = self.record().hint as usize;
        // SAFETY: some word, none before the hint, has a clear bit.
        unsafe {
            while *self.out(at) == !0 {
                at += 1;
                debug_assert!(at < layout.words as usize, "an object is free");
            }
            let bit = (*self.out(at)).trailing_ones();
            *self.out(at) |= 1 << bit;
            let record = self.record();
            (record.hint, record.used) = (at as u32, record.used + 1);
            let i = at * 64 + bit as usize;
            (self.object(layout, i), self.is_built(layout, i))
        }
    }

    /// `false`: was not out.
    /// # Safety
    /// As [`Slab::alloc`]; `i` is below the capacity; a live object is given up.
    #[inline(always)]
    pub(super) unsafe fn free(self, layout: &ObjectLayout, i: usize, constructed: bool) -> bool {
        let (word, bit) = (self.out(i / 64), 1 << (i % 64));
        // SAFETY: a bit for each object.
        unsafe {
            if *word & bit == 0 {
                return false;
            }
            *word &= !bit;
            if layout.constructed {
                let built = self.built(layout, i / 64);
                *built = if constructed { *built | bit } else { *built & !bit };
            }
        }
        let record = self.record();
        record.used -= 1;
        record.hint = record.hint.min((i / 64) as u32);
        true
    }

    /// Visits objects out, or free and constructed.
    /// # Safety
    /// As [`Slab::alloc`]; `f` does not change the slab.
    pub(super) unsafe fn for_each(self, layout: &ObjectLayout, out: bool, mut f: impl FnMut(*mut u8)) {
        for i in 0..layout.capacity as usize {
            // SAFETY: `i` is below the capacity.
            let is_one = unsafe {
                let is_out = self.is_out(i);
                if out { is_out } else { !is_out && self.is_built(layout, i) }
            };
            if is_one {
                f(self.object(layout, i));
            }
        }
    }

    /// O1.
    /// # Safety
    /// As [`Slab::alloc`].
    pub(super) unsafe fn is_sound(self, layout: &ObjectLayout) -> bool {
        let (all, mut out) = (layout.capacity as usize, 0);
        for i in 0..layout.words as usize * 64 {
            // SAFETY: a bit for each.
            let is_out = unsafe { self.is_out(i) };
            if !is_out && (i >= all || i / 64 < self.record().hint as usize) {
                return false;
            }
            out += u32::from(is_out && i < all);
        }
        out == self.record().used
    }
}

pub(super) fn record_inside(layout: &ObjectLayout, slab: *mut u8) -> Option<NonNull<Record>> {
    match layout.record_at {
        0 => None,
        at => NonNull::new(slab.wrapping_add(at as usize).cast()),
    }
}
