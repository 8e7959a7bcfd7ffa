//! The thread cache: a list of free objects for each size class.
//!
//! **From.** TEMERAIRE §3 (front end), Bonwick and Adams 2001 (magazines). The lists link through
//! the objects instead of using arrays, so a cache takes 9.7 KiB however much it holds, and 15.9 in
//! a hardened heap ([`stages`]).
//!
//! **State.** A free object in a list:
//! ```text
//! | link to the next (8 bytes) | mark (8 bytes) | … untouched … |
//! ```
//! `pop` checks and wipes the mark ([`crate::mark`]). An empty list begins with
//! [`craton_slab::end`], which has none, and so needs no test.
//!
//! **Invariants.** *T1* `room` = [`room_for`] `max` − length objects, less the pops since the count
//! was last exact. *T2* the lists of marks that are no class (0, `LARGE`, `MORPHED`, `OWNED`) have
//! no room. A free on such a page leaves the fast path, since no place of it is cut (M7). *T5* the
//! list of a class that awaits its sample holds the objects moved to it, less its pops
//! ([`sampling`]).
//!
//! **Threads.** Only its thread uses a cache. The child of a fork resets the other threads' caches.
//! A signal handler that interrupts a pop or a push finds a valid list. It can lose objects or
//! break T1, unless it undoes what it did; an empty list's refill checks it.
//!
//! **Failure.** A head without its mark was written to, or a link that led to it: the refill aborts
//! ([`NotFree`](crate::hooks::Damage::NotFree)). To read the mark at a wild address can end the
//! process by SIGSEGV.
//!
//! **Cost.** 17 instructions to allocate, 28 to free; half a cache line of the cache, one of the
//! object, four bytes of the page map; the table by size, which is the cache's, saves one.
//!
//! **Unsafe.** Links free objects through their memory, which the cache owns.

mod count;
mod lists;
mod loans;
mod sampling;
mod shape;
mod stages;
mod view;

use crate::mark::{Key, Seal, clear_head};
use crate::page_map::{Entry, LIST_BYTES, PLACE, PageMap};
use crate::size_class::{self, CLASSES, MARKS};
use core::ptr::null_mut;
use count::{ONE, POPPED, room_for};
use craton_base::atomic::{AtomicU32, Ordering::Relaxed};
use craton_base::{PAGE_SHIFT, Pages};
use craton_slab::end;
use sampling::Sampling;
pub use sampling::Slow;
use stages::Stages;
pub use stages::{HardenedCache, wait};

/// A size class's free list: half a cache line.
#[repr(C, align(32))]
#[derive(Clone, Copy)]
pub struct List {
    head: *mut u8,
    /// `offset * magic` is the place's index times [`PLACE`] for a multiple of the object size, and
    /// 2^32 at least for other offsets in a slab.
    magic: u64,
    /// A pointer's bits below the slab's alignment.
    mask: u32,
    /// Objects that fit until `max`, in parts ([`count`]); below 0 after a refill larger than
    /// `max`.
    room: i32,
    secret: usize,
}

/// How a list's length adapts to the program.
#[repr(C)]
#[derive(Clone, Copy)]
struct Pace {
    /// Objects to fetch in the next refill.
    fetch: u16,
    /// Overflows minus refills, in batches: how far the program swings beyond the list.
    swing: u8,
    /// Pops at the last walk of a full list, in 256s and modulo 2¹⁶.
    popped: u8,
    /// Freed objects that the list may hold.
    max: i32,
    /// Low 32 bits of the head at the last idle check, or 0.
    seen: u32,
}

/// First refill sizes, in bytes and objects.
const FIRST_FETCH_BYTES: usize = 2 << 10;
const FIRST_FETCH: u32 = 16;
/// Freed objects a new list keeps. Fewer would take the slabs' lock more often.
const FIRST_KEPT: u32 = 32;
/// Objects a list keeps while the program frees for good. Each one pins its slab and hugepage.
const LAST_KEPT: i32 = 16;
/// Large objects would idle in short lists.
const FIRST_KEPT_BYTES: usize = 4 << 10;
const MAX_BYTES: usize = 512 << 10;
const MAX_OBJECTS: i32 = 8192;
/// A longer list must contain a cycle.
const LONGEST: u32 = 8 * MAX_OBJECTS as u32;
/// This many overflows without a refill are a long freeing: the list then shrinks.
const LONG_SWING: u8 = 128;

/// Trim idle lists each time the heap has grown by 1/16, and by 8 pages at least, so that idle
/// objects are reused before it grows again.
const LOOK_PART: u32 = 16;
const LOOK_LEAST: Pages = Pages(8);

const fn min(a: u32, b: u32) -> u32 {
    if a < b { a } else { b }
}

const _: () = assert!(size_of::<List>() == LIST_BYTES && MARKS * LIST_BYTES <= u16::MAX as usize);

/// Largest size whose class one load finds.
pub const MAX_QUICK: usize = 1024;

/// By size: offset of the class's list in a cache.
type Offsets = [u16; MAX_QUICK + 1];

static OFFSETS: Offsets = {
    let mut offsets = [0; MAX_QUICK + 1];
    let mut size = 0;
    while size <= MAX_QUICK {
        offsets[size] = (size_class::class_of_tabled(size) * LIST_BYTES) as u16;
        size += 1;
    }
    offsets
};

impl List {
    const NONE: Self = Self { head: end(), magic: 0, mask: 0, room: 0, secret: 0 };

    const fn of_class(class: usize) -> Self {
        let size = size_class::size_of_class(class);
        let g = size_class::geometry(class);
        // A single object must begin where its first page does.
        let (unit, mask) = if g.is_single() {
            (craton_base::PAGE_SIZE, craton_base::PAGE_SIZE - 1)
        } else {
            (size, g.align().bytes().0 - 1)
        };
        let magic = magic_of(unit as u64);
        // Its head is set where it lies: a table of addresses would have to be relocated.
        Self { head: null_mut(), magic, mask: mask as u32, room: room_for(first_max(class)), secret: 0 }
    }
}

impl List {
    /// Whether an object begins at a pointer into a page whose entry leads to the list: neither in
    /// a slab's tail nor behind its last cut.
    ///
    /// # Safety
    /// `this` is a list.
    #[inline(always)]
    pub unsafe fn starts(this: *const Self, entry: Entry, object: *mut u8) -> bool {
        // SAFETY: by the contract.
        unsafe { Self::place(this, object) < entry.cut() }
    }

    /// The index of an object's place times [`PLACE`]; 2^32 at least where no place begins.
    ///
    /// # Safety
    /// `this` is a list.
    #[inline(always)]
    pub(crate) unsafe fn place(this: *const Self, object: *mut u8) -> u64 {
        // SAFETY: by the contract.
        unsafe { u64::from(object as u32 & (*this).mask).wrapping_mul((*this).magic) }
    }
}

/// [`List::magic`] of a size s·2^t with an odd s. Its product with the size is m·2^64 + [`PLACE`].
/// m is odd, and shares no factor with s, which would have to divide [`PLACE`] too. So an offset
/// that is r behind a multiple of the size has the product i·2^64/size + at most 2^34, where i =
/// r·m modulo the size is not 0.
const fn magic_of(size: u64) -> u64 {
    let zeros = size.trailing_zeros();
    let odd = size >> zeros;
    // The inverse by Newton's iteration; each step doubles the 3 right bits.
    let (mut inverse, mut bits) = (odd, 3);
    while bits < u64::BITS {
        inverse = inverse.wrapping_mul(2u64.wrapping_sub(odd.wrapping_mul(inverse)));
        bits *= 2;
    }
    let magic = inverse.wrapping_mul(PLACE >> zeros) & (u64::MAX >> zeros);
    let m = (size as u128 * magic as u128) >> u64::BITS;
    // Adds s to m.
    if m.is_multiple_of(2) { magic + (1 << (u64::BITS - zeros)) } else { magic }
}

impl Pace {
    const NONE: Self = Self { fetch: 0, swing: 0, popped: 0, max: 0, seen: 0 };

    const fn of_class(class: usize) -> Self {
        let few = (FIRST_FETCH_BYTES / size_class::size_of_class(class)) as u32 + 1;
        Self { fetch: min(FIRST_FETCH, few) as u16, swing: 0, popped: 0, max: first_max(class), seen: 0 }
    }
}

const fn first_max(class: usize) -> i32 {
    min(FIRST_KEPT, (FIRST_KEPT_BYTES / size_class::size_of_class(class)) as u32) as i32
}

/// A thread's free lists, and the fields of the heap that its fast paths read.
#[repr(C, align(64))]
pub struct ThreadCache {
    lists: [List; MARKS],
    paces: [Pace; MARKS],
    base: usize,
    /// Granted pages as last read; 0 in an unused cache. Other threads and processes store 0 so
    /// that the thread's next free takes the slow path ([`view`]).
    pages: usize,
    map: PageMap,
    factor: usize,
    /// Bytes by which the lists may still grow.
    budget: usize,
    /// Pages in use at which the next idle check is due.
    look_at: u32,
    home: u32,
    /// The rest of a hardened cache, or null.
    stages: *mut Stages,
    pub next: *mut ThreadCache,
    /// Caches made before this one.
    pub number: usize,
    pub taken: bool,
    /// The last flush request that the thread has followed.
    pub generation: u32,
    /// By size, as [`OFFSETS`], whose address would cost each request an instruction: the list for
    /// requests, which in a hardened cache is another than that of frees.
    offsets: Offsets,
    /// The same by class.
    sources: [u16; MARKS],
    sampling: Sampling,
}

/// The heap's fields that caches copy.
#[derive(Clone, Copy)]
pub struct HeapView<'a> {
    /// The address of page 0.
    pub base: usize,
    pub pages: usize,
    pub map: PageMap,
    /// Secrets of marks, which never change.
    pub key: &'a Key,
    /// Whether freed objects wait.
    pub hardened: bool,
}

static FRESH_PACES: [Pace; MARKS] = {
    let mut paces = [Pace::NONE; MARKS];
    let mut c = 1;
    while c <= CLASSES {
        paces[c] = Pace::of_class(c);
        c += 1;
    }
    paces
};

pub static FRESH_LISTS: [List; MARKS] = {
    let mut lists = [List::NONE; MARKS];
    let mut c = 1;
    while c <= CLASSES {
        lists[c] = List::of_class(c);
        c += 1;
    }
    lists
};

// SAFETY: constants point at nothing or at the end of lists, which is never written.
unsafe impl Sync for List {}

/// Caches of threads without one: each operation fails. Empty lists and zeros, so that they may
/// overlap at distances of whole lists.
#[repr(C, align(64))]
pub struct NoCaches {
    lists: [List; NO_LISTS],
    rest: [u8; size_of::<ThreadCache>() + (NO_CACHES - 1) * align_of::<ThreadCache>() - NO_LISTS * LIST_BYTES],
}

/// Lists of all these caches together; the fields behind the paces stay zeros.
const NO_LISTS: usize = MARKS + (NO_CACHES - 1) * align_of::<ThreadCache>() / LIST_BYTES;
const _: () = assert!(NO_LISTS * LIST_BYTES <= core::mem::offset_of!(ThreadCache, base));

/// They overlap.
pub const NO_CACHES: usize = 4;

impl NoCaches {
    pub const fn new() -> Self {
        Self { lists: [List::NONE; _], rest: [0; _] }
    }

    /// Must not be written.
    pub fn get(&'static self, n: usize) -> *mut ThreadCache {
        debug_assert!(n < NO_CACHES);
        (&raw const *self).cast_mut().cast::<u8>().wrapping_add(n * align_of::<ThreadCache>()).cast()
    }
}

impl ThreadCache {
    /// Initialises the cache at `at` for a thread.
    ///
    /// # Safety
    /// `at` is writable, unshared memory for one cache ([`HardenedCache`] in a hardened heap);
    /// `view` is of the heap that it will serve.
    pub unsafe fn begin(at: *mut ThreadCache, view: HeapView<'_>, asked: &AtomicU32, home: usize, budget: usize) {
        // SAFETY: by the contract. Field by field: a cache is too large for a small thread's stack.
        unsafe {
            (*at).lists = FRESH_LISTS;
            let lists = &mut (*at).lists;
            for (list, secret) in lists.iter_mut().zip(&view.key.secrets) {
                (list.head, list.secret) = (end(), *secret);
            }
            (*at).factor = view.key.factor;
            (*at).offsets = OFFSETS;
            (*at).sources = core::array::from_fn(|class| (class * LIST_BYTES) as u16);
            (*at).sampling = Sampling::NEW;
            (*at).stages = Stages::NONE;
            (*at).paces = FRESH_PACES;
            (*at).budget = budget;
            (*at).home = home as u32;
            if view.hardened {
                Self::begin_stages(at, view.key);
            }
            (*at).look_at = 0;
            (*at).taken = true;
            (*at).generation = asked.load(Relaxed);
            (*at).look_again(view, asked);
        }
    }

    pub fn home(&self) -> usize {
        self.home as usize
    }

    /// Pops an object for `size` ≤ [`MAX_QUICK`]; null if the list is empty or damaged.
    ///
    /// # Safety
    /// As [`ThreadCache::pop`].
    #[inline(always)]
    pub unsafe fn pop_quick(this: *mut Self, size: usize) -> *mut u8 {
        // SAFETY: by the contract the table has an entry for the size; it holds lists' offsets, or
        // zeros, the offset of an empty list.
        unsafe { Self::pop_at(this, *(&raw const (*this).offsets).cast::<u16>().add(size) as usize) }
    }

    /// Null if the list is empty or damaged.
    ///
    /// # Safety
    /// `this` is the calling thread's cache, or one of [`NoCaches`]. `class` is a size class.
    #[inline(always)]
    pub unsafe fn pop(this: *mut Self, class: usize) -> *mut u8 {
        // SAFETY: by the contract.
        unsafe { Self::pop_at(this, *(&raw const (*this).sources).cast::<u16>().add(class) as usize) }
    }

    /// As [`ThreadCache::pop`], past the list of a class that awaits its sample ([`sampling`]).
    ///
    /// # Safety
    /// The calling thread uses `this`. `class` is a size class.
    #[inline]
    pub unsafe fn pop_own(this: *mut Self, class: usize) -> *mut u8 {
        // SAFETY: by the contract.
        unsafe { Self::pop_at(this, (*this).source_at(class).into()) }
    }

    /// # Safety
    /// As [`ThreadCache::pop`]; `offset` is that of a class's list.
    #[inline(always)]
    unsafe fn pop_at(this: *mut Self, offset: usize) -> *mut u8 {
        // SAFETY: the cache is this thread's; its lists hold free objects of at least 16 bytes, and
        // then the end, which has a second word. Where a program overwrote a link, the mark shows
        // whether this is a free object.
        unsafe {
            let list = this.byte_add(offset).cast::<List>();
            let object = (*list).head;
            if !(Seal { factor: (*this).factor, secret: (*list).secret }).is_on(object) {
                return null_mut();
            }
            (*list).head = object.cast::<*mut u8>().read_unaligned();
            (*list).room += POPPED;
            clear_head(object);
            object
        }
    }

    /// Pushes `object` if it is ours, valid, and its list has room; returns whether it did.
    ///
    /// # Safety
    /// `this` as in [`ThreadCache::pop`]. Any pointer is allowed; an object must be given up.
    #[inline(always)]
    pub unsafe fn push(this: *mut Self, object: *mut u8) -> bool {
        // SAFETY: by the contract.
        unsafe { Self::push_if(this, object, |_| true) }
    }

    /// [`ThreadCache::push`] if the object is of the class of `size` ≤
    /// [`MAX_CLASSED`](crate::size_class::MAX_CLASSED).
    ///
    /// # Safety
    /// As [`ThreadCache::push`].
    #[inline(always)]
    pub unsafe fn push_sized(this: *mut Self, object: *mut u8, size: usize) -> bool {
        let expected = match OFFSETS.get(size) {
            Some(offset) => *offset as usize,
            None => size_class::class_of(size) * LIST_BYTES,
        };
        // SAFETY: by the contract.
        unsafe { Self::push_if(this, object, |offset| offset == expected) }
    }

    /// [`ThreadCache::push`] if `is_right` accepts the offset of the object's list.
    ///
    /// # Safety
    /// As [`ThreadCache::push`].
    #[inline(always)]
    unsafe fn push_if(this: *mut Self, object: *mut u8, is_right: impl Fn(usize) -> bool) -> bool {
        // SAFETY: reads the object only after the page map has named its class and the offset has
        // shown that it starts an object. The map holds offsets of lists.
        unsafe {
            let page = (object as usize).wrapping_sub((*this).base) >> PAGE_SHIFT;
            if page >= (*this).pages {
                return false;
            }
            let entry = (*this).map.entry(page);
            let offset = entry.list();
            if !is_right(offset) {
                return false;
            }
            let list = this.byte_add(offset).cast::<List>();
            // A shift for sizes that are powers of two costs more in branch misses than it saves.
            if !List::starts(list, entry, object) {
                return false;
            }
            let mark = Seal { factor: (*this).factor, secret: (*list).secret }.of(object);
            let words = object.cast::<usize>();
            if Seal::may_be_free(object, mark) {
                return false;
            }
            (*list).room -= ONE;
            if (*list).room < 0 {
                return Self::no_room(this, offset);
            }
            words.write((*list).head as usize);
            words.add(1).write(mark);
            (*list).head = object;
            true
        }
    }

    /// Pushes an object of a size ≤ [`MAX_QUICK`] if its list has room. Checks nothing, so a double
    /// free is seen only when the object goes out twice.
    ///
    /// # Safety
    /// `this` as in [`ThreadCache::pop`]. The object is live, was allocated with a size of this
    /// class and no alignment, and is given up.
    #[inline(always)]
    pub unsafe fn push_trusted(this: *mut Self, object: *mut u8, size: usize) -> bool {
        // SAFETY: the list is the object's by the contract. `NoCaches` are full, so never written.
        unsafe {
            let list = this.byte_add(*OFFSETS.get_unchecked(size) as usize).cast::<List>();
            if (*list).room < ONE {
                return false;
            }
            (*list).room -= ONE;
            Seal { factor: (*this).factor, secret: (*list).secret }.set(object);
            object.cast::<usize>().write((*list).head as usize);
            (*list).head = object;
            true
        }
    }

    /// Granted pages, by which the cache knows the heap's pointers; 0 if it must read them again.
    ///
    /// # Safety
    /// `this` as in [`ThreadCache::pop`].
    #[inline(always)]
    pub unsafe fn pages(this: *mut Self) -> usize {
        // SAFETY: by the contract.
        unsafe { (*this).pages }
    }

    /// Pushes a checked object if its list has room; returns whether it did.
    ///
    /// # Safety
    /// `this` as in [`ThreadCache::pop`]. The object is a live one of `class`, and given up.
    pub unsafe fn push_checked(this: *mut Self, class: usize, object: *mut u8) -> bool {
        // SAFETY: by the contract.
        unsafe {
            let mark = Seal { factor: (*this).factor, secret: (*this).lists[class].secret }.of(object);
            Self::push_marked(this, class, object, mark)
        }
    }

    /// [`ThreadCache::push_checked`] with the object's mark.
    ///
    /// # Safety
    /// As there.
    #[inline(always)]
    pub unsafe fn push_marked(this: *mut Self, class: usize, object: *mut u8, mark: usize) -> bool {
        let words = object.cast::<usize>();
        // SAFETY: by the contract. `NoCaches` are full, so never written. An object has at least
        // 16 bytes, and the cache owns it now.
        unsafe {
            let list = this.byte_add(class * LIST_BYTES).cast::<List>();
            if (*list).room < ONE {
                return false;
            }
            words.write((*list).head as usize);
            words.add(1).write(mark);
            (*list).head = object;
            (*list).room -= ONE;
        }
        true
    }

    /// Restores `room` when a list is full. In assembly, because the compiler would keep the old
    /// count live, at two instructions in each free; a call would cost a frame.
    ///
    /// # Safety
    /// The calling thread uses `this`; `offset` is a list's.
    #[inline(always)]
    unsafe fn no_room(this: *mut Self, offset: usize) -> bool {
        // SAFETY: by the contract; changes only the list's count.
        unsafe {
            #[cfg(target_arch = "x86_64")]
            core::arch::asm!(
                "add dword ptr [{this} + {offset} + {room}], {one}",
                this = in(reg) this, offset = in(reg) offset, room = const core::mem::offset_of!(List, room),
                one = const ONE,
                options(nostack),
            );
            #[cfg(not(target_arch = "x86_64"))]
            {
                (*this.byte_add(offset).cast::<List>()).room += ONE;
            }
        }
        false
    }

    /// The class of a live object, and its mark if it were free; `None` if not recognised.
    ///
    /// # Safety
    /// `this` as in [`ThreadCache::pop`]. Any pointer is allowed.
    #[inline(always)]
    pub unsafe fn recognise(this: *mut Self, object: *mut u8) -> Option<(usize, usize)> {
        // SAFETY: reads an object only once the page map and its offset have shown its class.
        unsafe {
            let page = (object as usize).wrapping_sub((*this).base) >> PAGE_SHIFT;
            if page >= (*this).pages {
                return None;
            }
            let entry = (*this).map.entry(page);
            let list = this.byte_add(entry.list()).cast::<List>();
            if !List::starts(list, entry, object) {
                return None;
            }
            let mark = Seal { factor: (*this).factor, secret: (*list).secret }.of(object);
            (!Seal::may_be_free(object, mark)).then_some((entry.mark().into(), mark))
        }
    }

    /// Objects to refill an empty list with. After an overflow the list may also hold more.
    pub fn want(&mut self, class: usize) -> u32 {
        let batch = size_class::batch(class);
        if self.paces[class].swing > 0 {
            self.paces[class].swing -= 1;
            self.grow(class, batch as i32);
        }
        let pace = &mut self.paces[class];
        let fetch = u32::from(pace.fetch);
        pace.fetch = (2 * fetch).min(batch) as u16;
        fetch
    }

    fn seal(&self, class: usize) -> Seal {
        Seal { factor: self.factor, secret: self.lists[class].secret }
    }
}

#[cfg(all(test, not(loom)))]
mod tests;
