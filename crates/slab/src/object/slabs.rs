//! A cache's slabs.
//!
//! **From.** Bonwick94 §3.2, §3.3: partial slabs are used first and complete ones last. Of the partial ones the fullest serve
//! first, by eighths, so that those that are nearly empty can become complete; objects come from one slab until it is full.
//!
//! **Cost.** `take` of a small object is about 30 instructions and `give` about 60, half of which find out whether it is an object of
//! the cache that is out; on three lines of the cache's, the record's, an entry of the table's, and the object's last word.
//!
//! **Unsafe.** Hands out raw memory.

use super::layout::ObjectLayout;
use super::slab::{List, Record, Slab, Wrong, record_inside};
use super::supply::PageSupplier;
use super::table::SlabTable;
use super::trusted::Trusted;
use super::working_set::WorkingSet;
use core::ptr::NonNull;

/// Lists: complete slabs, partial ones by eighths, full ones.
pub(super) const LISTS: usize = EIGHTHS as usize + 2;
pub(super) const COMPLETE: u32 = 0;
const EIGHTHS: u32 = 8;
pub(super) const FULL: u32 = EIGHTHS + 1;
/// On no list: the slab that objects come from.
pub(super) const CURRENT: u32 = FULL + 1;

/// An object that was taken.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Taken {
    /// It is in its constructed state, as it was given back.
    Constructed(*mut u8),
    /// It is to be constructed, if the cache has a constructor. What it contains may be anything.
    Raw(*mut u8),
}

impl Taken {
    /// The object.
    pub fn object(self) -> *mut u8 {
        match self {
            Self::Constructed(object) | Self::Raw(object) => object,
        }
    }
}

/// How many objects of each kind were taken at once: see [`ObjectSlabs::take_many`].
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Many {
    /// The first so many are constructed.
    pub constructed: usize,
    /// The next so many are not.
    pub raw: usize,
}

/// What is wrong with an object that should come back. Nothing has changed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum BadObject {
    /// It lies on no slab of this cache.
    Foreign,
    /// It lies on a slab of this cache, but in none of its objects.
    Between,
    /// It is not where an object begins.
    Inside {
        /// Where the object that it lies in begins.
        start: *mut u8,
        /// How far behind that it lies, in bytes.
        offset: usize,
    },
    /// The object there is free.
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

/// Where a pointer lies: see [`ObjectSlabs::place_of`].
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ObjectPlace {
    /// Where the object begins.
    pub start: *mut u8,
    /// How far behind that the pointer is, in bytes.
    pub offset: usize,
    /// The object is out.
    pub out: bool,
    /// Where the first object of its slab begins.
    pub first: *mut u8,
}

/// Counts of one cache (Bonwick94 §3.1).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct ObjectStats {
    /// Bytes of an object, as asked for.
    pub object_bytes: usize,
    /// Bytes from one object to the next.
    pub buffer_bytes: usize,
    /// Objects that are out.
    pub in_use: u64,
    /// Objects that the slabs have room for.
    pub total: u64,
    /// Slabs.
    pub slabs: u32,
    /// Slabs of which some objects are out.
    pub partial: u32,
    /// Slabs of which none is.
    pub complete: u32,
    /// Slabs of which all are.
    pub full: u32,
    /// Bytes that the supplier has given: slabs, records that lie apart, the table.
    pub bytes: usize,
    /// Objects taken since the start.
    pub allocations: u64,
    /// Requests that the supplier refused since the start.
    pub failures: u64,
    /// Slabs made since the start.
    pub slabs_made: u64,
    /// Slabs whose links a write to a free object had broken, and that were made anew, since the start.
    pub mended: u32,
}

/// The slabs of a cache of equal objects.
#[derive(Debug)]
pub struct ObjectSlabs {
    pub(super) layout: ObjectLayout,
    /// The slab that objects come from; it has room.
    pub(super) current: Option<Slab>,
    /// A bit for each list that is not empty.
    pub(super) filled: u32,
    /// log2 of the objects out by which a list differs from the next, at most an eighth of the capacity rounded up.
    eighth: u32,
    allocations: u64,
    frees: u64,
    mended: u32,
    /// The colour of the next slab, as a number.
    colour: u32,
    one_colour: bool,
    pub(super) table: SlabTable,
    pub(super) lists: [List; LISTS],
    pub(super) complete: WorkingSet,
    pub(super) records: Trusted,
    pub(super) slabs: u32,
    /// Slabs on their way back.
    pub(super) detached: u32,
    failures: u64,
    slabs_made: u64,
}

// SAFETY: the slabs are the cache's alone.
unsafe impl Send for ObjectSlabs {}

impl ObjectSlabs {
    /// Slabs of no layout, which are still to be made by [`ObjectSlabs::new`]; all zeros, so that statics take no room in a file.
    pub const UNSET: Self = Self::new(ObjectLayout::UNSET);

    /// Slabs of this layout; none yet.
    pub const fn new(layout: ObjectLayout) -> Self {
        let most = if layout.capacity == 0 { 0 } else { layout.capacity - 1 };
        // The last level below the capacity is to be below the number of eighths.
        let eighth = (u32::BITS - most.leading_zeros()).saturating_sub(EIGHTHS.trailing_zeros());
        Self {
            layout,
            current: None,
            filled: 0,
            eighth,
            allocations: 0,
            frees: 0,
            mended: 0,
            colour: 0,
            one_colour: false,
            table: SlabTable::EMPTY,
            lists: [List::EMPTY; LISTS],
            complete: WorkingSet::EMPTY,
            records: Trusted::EMPTY,
            slabs: 0,
            detached: 0,
            failures: 0,
            slabs_made: 0,
        }
    }

    /// Whether this is [`ObjectSlabs::UNSET`].
    pub fn is_unset(&self) -> bool {
        self.layout.capacity == 0
    }

    /// Sizes of the slabs and what lies where.
    pub fn layout(&self) -> &ObjectLayout {
        &self.layout
    }

    /// Slabs that are made from now on begin their objects at different offsets (§4.3), or all at the same.
    pub fn set_colouring(&mut self, on: bool) {
        self.one_colour = !on;
    }

    /// Takes an object. `None`: a slab was needed, and the supplier refused.
    ///
    /// # Safety
    /// The supplier is the same each time, or one that gives and takes the same pages.
    #[inline]
    pub unsafe fn take(&mut self, supplier: &mut impl PageSupplier) -> Option<Taken> {
        let slab = match self.current {
            Some(slab) => slab,
            None => self.next_slab(supplier)?,
        };
        // SAFETY: the current slab is ours and has room.
        let (object, constructed) = unsafe { slab.take(&self.layout, &mut self.mended) };
        if slab.used() == self.layout.capacity {
            self.filled_up(slab);
        }
        self.allocations += 1;
        Some(if constructed { Taken::Constructed(object) } else { Taken::Raw(object) })
    }

    /// Takes as many objects as `into` has room for, or as many as there are when the supplier refuses: first those that are
    /// constructed, behind them those that are not.
    ///
    /// # Safety
    /// As [`ObjectSlabs::take`].
    pub unsafe fn take_many(&mut self, into: &mut [*mut u8], supplier: &mut impl PageSupplier) -> Many {
        let (mut constructed, mut end) = (0, into.len());
        while constructed < end {
            // SAFETY: as the caller says.
            match unsafe { self.take(supplier) } {
                Some(Taken::Constructed(object)) => {
                    into[constructed] = object;
                    constructed += 1;
                }
                Some(Taken::Raw(object)) => {
                    end -= 1;
                    into[end] = object;
                }
                None => break,
            }
        }
        // They were put at the end one before the other: in the order in which they came they are in that of their addresses.
        let raw = into.len() - end;
        into.copy_within(end.., constructed);
        into[constructed..constructed + raw].reverse();
        Many { constructed, raw }
    }

    /// Takes an object back, in its constructed state or not.
    ///
    /// # Safety
    /// As [`ObjectSlabs::take`]; the object, if it is one of this cache that is out, is given up, and is constructed if so said.
    #[inline]
    pub unsafe fn give(&mut self, object: *mut u8, constructed: bool) -> Result<(), BadObject> {
        let Some(slab) = self.table.find(&self.layout, object as usize) else { return Err(BadObject::Foreign) };
        let i = match slab.place_of(&self.layout, object as usize) {
            Ok(i) => i,
            Err(wrong) => return Err(self.bad(slab, wrong, object)),
        };
        // SAFETY: the slab is ours, and `i` one of its places.
        if !unsafe { slab.give(&self.layout, i, constructed) } {
            return Err(BadObject::Free);
        }
        self.frees += 1;
        let list = slab.list();
        if list != CURRENT {
            let now = self.list_of(slab.used());
            if now != list {
                self.move_slab(slab, list, now);
            }
        } else if slab.used() == 0 {
            self.current_is_complete(slab);
        }
        Ok(())
    }

    /// Takes several objects back. An error names the first that is wrong; those before it have been taken.
    ///
    /// # Safety
    /// As [`ObjectSlabs::give`], for each.
    pub unsafe fn give_many(&mut self, objects: &[*mut u8], constructed: bool) -> Result<(), (usize, BadObject)> {
        for (i, object) in objects.iter().enumerate() {
            // SAFETY: as the caller says.
            unsafe { self.give(*object, constructed) }.map_err(|e| (i, e))?;
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

    /// The list of a slab with so many objects out.
    #[inline]
    pub(super) fn list_of(&self, used: u32) -> u32 {
        match used {
            0 => COMPLETE,
            n if n == self.layout.capacity => FULL,
            n => 1 + (n >> self.eighth),
        }
    }

    pub(super) fn put_on(&mut self, slab: Slab, list: u32) {
        self.lists[list as usize].push(slab);
        slab.set_list(list);
        self.filled |= 1 << list;
        if list == COMPLETE {
            self.complete.add();
        }
    }

    pub(super) fn take_off(&mut self, slab: Slab, list: u32) {
        let of = &mut self.lists[list as usize];
        of.unlink(slab);
        if of.first().is_none() {
            self.filled &= !(1 << list);
        }
    }

    #[cold]
    #[inline(never)]
    fn move_slab(&mut self, slab: Slab, from: u32, to: u32) {
        self.take_off(slab, from);
        self.put_on(slab, to);
    }

    #[cold]
    #[inline(never)]
    fn filled_up(&mut self, slab: Slab) {
        self.current = None;
        self.put_on(slab, FULL);
    }

    /// All objects of the current slab are back: partial slabs come before it now, if there are any.
    #[cold]
    fn current_is_complete(&mut self, slab: Slab) {
        if self.fullest().is_some_and(|list| list != COMPLETE) {
            self.current = None;
            self.put_on(slab, COMPLETE);
        }
    }

    /// The highest list of slabs with room.
    fn fullest(&self) -> Option<u32> {
        (self.filled & !(1 << FULL)).checked_ilog2()
    }

    /// Makes a slab with room the current one.
    #[cold]
    #[inline(never)]
    fn next_slab(&mut self, supplier: &mut impl PageSupplier) -> Option<Slab> {
        let slab = match self.fullest().and_then(|list| Some((list, self.lists[list as usize].first()?))) {
            Some((list, slab)) => {
                self.take_off(slab, list);
                if list == COMPLETE {
                    self.complete.remove();
                }
                slab
            }
            None => match self.add_slab(supplier) {
                Some(slab) => slab,
                None => {
                    self.failures += 1;
                    return None;
                }
            },
        };
        slab.set_list(CURRENT);
        self.current = Some(slab);
        Some(slab)
    }

    fn add_slab(&mut self, supplier: &mut impl PageSupplier) -> Option<Slab> {
        let layout = self.layout;
        if layout.capacity == 0 || !self.table.reserve(&layout, supplier) {
            return None;
        }
        let pages = supplier.get(layout.bytes(), layout.slab_align())?;
        let record = match record_inside(&layout, pages) {
            Some(record) => record,
            // SAFETY: all records are of one layout.
            None => match unsafe { self.records.take(records_of(&layout), supplier) }.and_then(NonNull::new) {
                Some(record) => record.cast::<Record>(),
                None => {
                    // SAFETY: they came just now.
                    unsafe { supplier.put(pages, layout.bytes()) };
                    return None;
                }
            },
        };
        let colour = self.next_colour();
        // SAFETY: the pages are ours now, and so is the record.
        let slab = unsafe { Slab::begin(&layout, pages, record, colour) };
        self.table.insert(&layout, slab);
        self.slabs += 1;
        self.slabs_made += 1;
        Some(slab)
    }

    /// Where the next slab's objects begin, in bytes from its start.
    fn next_colour(&mut self) -> usize {
        if self.one_colour {
            return 0;
        }
        let colour = self.colour;
        self.colour = if colour + 1 < self.layout.colours { colour + 1 } else { 0 };
        (colour * self.layout.colour_step) as usize
    }

    /// Whether a pointer lies on a slab of this cache.
    pub fn contains(&self, at: *const u8) -> bool {
        self.table.find(&self.layout, at as usize).is_some()
    }

    /// Which object a pointer lies in; `None` where it lies in none of this cache's.
    pub fn place_of(&self, at: *const u8) -> Option<ObjectPlace> {
        let slab = self.table.find(&self.layout, at as usize)?;
        let i = match slab.place_of(&self.layout, at as usize) {
            Ok(i) | Err(Wrong::Inside(i)) => i,
            Err(Wrong::Between) => return None,
        };
        let start = slab.object(&self.layout, i);
        // SAFETY: `i` is one of the slab's places.
        let out = unsafe { slab.is_out(i) };
        Some(ObjectPlace { start, offset: at as usize - start as usize, out, first: slab.object(&self.layout, 0) })
    }

    /// Calls `f` with each object that is out, slab by slab.
    pub fn for_each_out(&self, mut f: impl FnMut(*mut u8)) {
        for slab in self.all() {
            // SAFETY: the slab is ours, and `f` has no way to change it: we are borrowed.
            unsafe { slab.for_each(&self.layout, true, &mut f) };
        }
    }

    pub(super) fn all(&self) -> impl Iterator<Item = Slab> + '_ {
        self.current.into_iter().chain(self.lists.iter().flat_map(List::iter))
    }

    /// Bytes that the supplier has given.
    pub fn bytes(&self) -> usize {
        (self.slabs + self.detached) as usize * self.layout.bytes() + self.records.bytes() + self.table.bytes()
    }

    /// Objects that are out.
    pub fn in_use(&self) -> u64 {
        self.allocations - self.frees
    }

    /// Counts.
    pub fn stats(&self) -> ObjectStats {
        let full = self.lists[FULL as usize].iter().count() as u32;
        let complete = self.complete();
        ObjectStats {
            object_bytes: self.layout.size(),
            buffer_bytes: self.layout.stride(),
            in_use: self.in_use(),
            total: u64::from(self.slabs) * u64::from(self.layout.capacity),
            slabs: self.slabs,
            partial: self.slabs - full - complete,
            complete,
            full,
            bytes: self.bytes(),
            allocations: self.allocations,
            failures: self.failures,
            slabs_made: self.slabs_made,
            mended: self.mended,
        }
    }
}

/// The layout of records that lie apart, for pages of 1, 2, 4 and 8 KiB: those have one word of bits, or two.
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

/// The layout of the records of such slabs.
pub(super) fn records_of(layout: &ObjectLayout) -> &'static ObjectLayout {
    &RECORDS[(layout.page_bytes() / ObjectLayout::MIN_PAGE).ilog2() as usize]
}
