//! A cache of constructed objects (Bonwick94 §3.2, §3.3).
//!
//! **Unsafe.** Hands out raw memory.

use super::colour::Colours;
use super::layout::ObjectLayout;
use super::record::{InRecords, Record, Slab, Wrong, record_inside};
use super::supply::PageSupplier;
use super::table::SlabTable;
use super::trusted::Trusted;
use crate::slab::{SlabStats, Slabs};
use core::ptr::NonNull;

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Taken {
    Constructed(*mut u8),
    Raw(*mut u8),
}

impl Taken {
    pub fn object(self) -> *mut u8 {
        match self {
            Self::Constructed(object) | Self::Raw(object) => object,
        }
    }
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum BadObject {
    /// On no slab of this cache.
    Foreign,
    /// On a slab, but in no object.
    Between,
    /// `offset` bytes behind an object's start.
    Inside { start: *mut u8, offset: usize },
    /// Freed already.
    Free,
}

impl core::fmt::Display for BadObject {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        match self {
            Self::Foreign => write!(f, "it is no object of this cache"),
            Self::Between => write!(f, "it lies on a slab of this cache, but in no object"),
            Self::Inside { start, offset } => {
                write!(f, "it lies {offset} bytes behind the start of the object {start:p}")
            }
            Self::Free => write!(f, "the object is free already"),
        }
    }
}

impl core::error::Error for BadObject {}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ObjectPlace {
    pub start: *mut u8,
    pub offset: usize,
    pub out: bool,
    pub first: *mut u8,
}

#[derive(Debug)]
pub struct ObjectSlabs {
    pub(super) layout: ObjectLayout,
    pub(super) slabs: Slabs<Slab>,
    pub(super) table: SlabTable,
    colours: Colours,
    pub(super) records: Trusted,
    pub(super) detached: u32,
}

// SAFETY: it owns its slabs.
unsafe impl Send for ObjectSlabs {}

impl ObjectSlabs {
    /// Zeros, so that statics lie in `.bss`.
    pub const UNSET: Self = Self::new(ObjectLayout::UNSET);

    pub const fn new(layout: ObjectLayout) -> Self {
        Self {
            layout,
            slabs: Slabs::new(layout.capacity as u16, 0),
            table: SlabTable::EMPTY,
            colours: Colours::FIRST,
            records: Trusted::EMPTY,
            detached: 0,
        }
    }

    pub fn is_unset(&self) -> bool {
        self.layout.capacity == 0
    }

    pub fn layout(&self) -> &ObjectLayout {
        &self.layout
    }

    /// Later slabs get different colours (§4.3).
    pub fn set_colouring(&mut self, on: bool) {
        self.colours.set(on);
    }

    /// `None`: the supplier refused.
    /// # Safety
    /// `supplier` manages the same pages each time.
    #[inline(always)]
    pub unsafe fn alloc(&mut self, supplier: &mut impl PageSupplier) -> Option<Taken> {
        let slab = match self.slabs.lists.fullest() {
            Some(slab) => slab,
            None => self.add_slab(supplier)?,
        };
        let before = slab.used();
        // SAFETY: a slab of this cache, with room.
        let (object, constructed) = unsafe { slab.alloc(&self.layout) };
        if self.slabs.lists.is_last_of_list(before, 1) {
            self.slabs.rise(slab, before, before + 1, &InRecords);
        }
        let stats = &mut self.slabs.stats;
        stats.objects_out += 1;
        stats.objects_refilled += 1;
        Some(if constructed { Taken::Constructed(object) } else { Taken::Raw(object) })
    }

    /// # Safety
    /// As [`ObjectSlabs::alloc`]; the object is given up, constructed if so marked.
    #[inline]
    pub unsafe fn free(&mut self, object: *mut u8, constructed: bool) -> Result<(), BadObject> {
        let Some(slab) = self.table.find(&self.layout, object as usize) else { return Err(BadObject::Foreign) };
        let i = match slab.place_of(&self.layout, object as usize) {
            Ok(i) => i,
            Err(wrong) => return Err(self.bad(slab, wrong, object)),
        };
        let before = slab.used();
        // SAFETY: `i` is a place of this cache's slab.
        if !unsafe { slab.free(&self.layout, i, constructed) } {
            return Err(BadObject::Free);
        }
        self.slabs.stats.objects_out -= 1;
        if self.slabs.lists.is_last_of_list(before, -1) {
            self.slabs.relist(slab, before, before - 1, &InRecords);
        }
        Ok(())
    }

    #[cold]
    fn bad(&self, slab: Slab, wrong: Wrong, at: *mut u8) -> BadObject {
        match wrong {
            Wrong::Between => BadObject::Between,
            Wrong::Inside(i) => {
                let start = slab.object(&self.layout, i);
                BadObject::Inside { start, offset: at as usize - start as usize }
            }
        }
    }

    #[cold]
    fn add_slab(&mut self, supplier: &mut impl PageSupplier) -> Option<Slab> {
        let layout = self.layout;
        if layout.capacity == 0 || !self.table.reserve(&layout, supplier) {
            return None;
        }
        let pages = supplier.get(layout.bytes(), layout.slab_align())?;
        let record = match record_inside(&layout, pages) {
            Some(record) => record,
            // SAFETY: all records have one layout.
            None => match unsafe { self.records.alloc(records_of(&layout), supplier) }.and_then(NonNull::new) {
                Some(record) => record.cast::<Record>(),
                None => {
                    // SAFETY: `supplier` has just returned them.
                    unsafe { supplier.put(pages, layout.bytes()) };
                    return None;
                }
            },
        };
        // SAFETY: pages and record are the slab's.
        let slab = unsafe { Slab::begin(&layout, pages, record, self.colours.next(&layout)) };
        self.table.insert(&layout, slab);
        self.slabs.begin(slab, 0, &InRecords);
        Some(slab)
    }

    pub fn place_of(&self, at: *const u8) -> Option<ObjectPlace> {
        let slab = self.table.find(&self.layout, at as usize)?;
        let i = match slab.place_of(&self.layout, at as usize) {
            Ok(i) | Err(Wrong::Inside(i)) => i,
            Err(Wrong::Between) => return None,
        };
        let start = slab.object(&self.layout, i);
        // SAFETY: `i` is a place of the slab.
        let out = unsafe { slab.is_out(i) };
        Some(ObjectPlace { start, offset: at as usize - start as usize, out, first: slab.object(&self.layout, 0) })
    }

    pub fn for_each_out(&self, mut f: impl FnMut(*mut u8)) {
        for slab in self.table.iter() {
            // SAFETY: this cache's slab; the borrow keeps `f` from changing it.
            unsafe { slab.for_each(&self.layout, true, &mut f) };
        }
    }

    pub fn stats(&self) -> SlabStats {
        self.slabs.stats
    }

    pub fn in_use(&self) -> u64 {
        self.slabs.stats.objects_out
    }

    pub fn total(&self) -> u64 {
        u64::from(self.slabs.stats.slabs) * u64::from(self.layout.capacity)
    }

    pub fn complete(&self) -> u32 {
        self.slabs.kept.count()
    }

    /// Walks the slabs with room.
    pub fn partial(&self) -> u32 {
        self.slabs.partial(&InRecords)
    }

    pub fn bytes(&self) -> usize {
        let slabs = self.slabs.stats.slabs + self.detached;
        slabs as usize * self.layout.bytes() + self.records.bytes() + self.table.bytes()
    }
}

static RECORDS: [ObjectLayout; PAGE_SIZES] = {
    let mut layouts = [ObjectLayout::UNSET; PAGE_SIZES];
    let mut size = 0;
    while size < PAGE_SIZES {
        let bytes = super::layout::record_bytes(64, true);
        layouts[size] = match ObjectLayout::of_pages(bytes, 0, false, ObjectLayout::MIN_PAGE << size) {
            Ok(layout) => layout,
            Err(_) => panic!("records are small"),
        };
        size += 1;
    }
    layouts
};
const PAGE_SIZES: usize = (ObjectLayout::MAX_PAGE / ObjectLayout::MIN_PAGE).ilog2() as usize + 1;

pub(super) fn records_of(layout: &ObjectLayout) -> &'static ObjectLayout {
    &RECORDS[(layout.page_bytes() / ObjectLayout::MIN_PAGE).ilog2() as usize]
}
