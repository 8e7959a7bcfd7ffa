//! A thread's cache: for each size class a list of free objects.
//!
//! **From.** TEMERAIRE §3 (the front end), Bonwick and Adams 2001 (magazines). Lists linked through the objects rather
//! than arrays: a thread's cache is then 3 KiB however much it holds.
//!
//! **State.** A free object in a list:
//! ```text
//! | link to the next (8 bytes) | mark (8 bytes) | … untouched … |
//! ```
//! The mark is the object's address mixed with a number of this process that no program knows: a free that finds it is a double
//! free. A mark that a program copies along with bytes it never wrote is not that of its new place. It is wiped when
//! the object goes out.
//!
//! **Invariants.** T1 `room` = `max` − length of the list; T2 the lists of marks that are no class (0, `LARGE`, `MORPHED` and `OWNED`) have no room
//! and a magic of 0, with which no offset is a multiple of the size, so that freeing such a page leaves the fast path.
//!
//! **Threads.** Used by its thread alone. At a fork, the child finds other threads' caches stopped between two stores, and begins them
//! anew. A signal handler that pops or pushes between two
//! instructions of a pop or a push finds a valid list, at worst with objects lost and a wrong count; what it leaves to the interrupted one is right if it has undone what it did, else T1 is broken
//! in most cases, which is looked at when the list has run empty.
//!
//! **Cost.** 14 instructions to allocate, 26 to free; half a line of the cache, one of the object, four bytes of the page map.
//!
//! **Unsafe.** Links free objects through their memory, which belongs to the cache.

mod count;
mod shape;
mod view;

use crate::hooks::{Damage, Hooks};
use crate::mark::mark;
pub use crate::page_map::LIST_BYTES;
use crate::page_map::PageMap;
use crate::size_class::{self, CLASSES, MARKS};
use core::ptr::null_mut;
use craton_base::atomic::{AtomicU32, Ordering::Relaxed};
use craton_base::{PAGE_SHIFT, Pages};
use craton_slab::Chain;

/// One class's free objects: half a cache line.
#[repr(C, align(32))]
#[derive(Clone, Copy)]
pub struct List {
    head: *mut u8,
    /// ⌈2^64 / object size⌉: `offset * magic < magic` exactly when `offset` is a multiple of the size.
    magic: u64,
    /// A pointer's bits below the slab's alignment.
    mask: u32,
    /// How many objects more may be pushed; below 0 while more were fetched than the list keeps of what is freed.
    room: i32,
    /// How many freed objects the list may hold.
    max: i32,
    /// The first object as of the last look at what lies idle: the lower half of its address, or 0.
    seen: u32,
}

/// How a list's length follows what the program does.
#[repr(C)]
#[derive(Clone, Copy)]
struct Pace {
    /// How many objects are fetched when the list has run empty.
    fetch: u16,
    /// Overflows that refills have not answered yet: by so many batches the program swings beyond what the list holds.
    swing: u8,
}

/// Bytes fetched before a list has run empty a few times, and the same in objects.
const FIRST_FETCH_BYTES: usize = 2 << 10;
const FIRST_FETCH: u32 = 16;
/// How many freed objects a list keeps that has not shown to need more. Each way to the slabs takes a lock, so they should not be fewer.
const FIRST_KEPT: u32 = 32;
/// How many it keeps in a program that frees what it has. Each keeps its slab, and so its hugepage, from coming free: they should be few.
const LAST_KEPT: i32 = 16;
/// The same in bytes: the larger an object, the more memory waits in vain; what comes and goes gets room soon.
const FIRST_KEPT_BYTES: usize = 4 << 10;
/// Bytes and objects that a list may hold at the most.
const MAX_BYTES: usize = 512 << 10;
const MAX_OBJECTS: i32 = 8192;
/// No list is that long: it runs in a circle.
const LONGEST: u32 = 8 * MAX_OBJECTS as u32;
/// So many overflows without a refill are no swing but a program that frees what it has: the list keeps less and less.
const LONG_SWING: u8 = 128;

/// A cache is looked through for what lies idle when the heap is larger than at the last look by one part in so many, and by so much: what
/// it then gives back serves what would make the heap larger still.
const LOOK_PART: u32 = 16;
const LOOK_LEAST: Pages = Pages(8);

const fn min(a: u32, b: u32) -> u32 {
    if a < b { a } else { b }
}

const _: () = assert!(size_of::<List>() == LIST_BYTES);

/// Largest size of which the class is found by a single load.
pub const MAX_QUICK: usize = 1024;

/// By size, up to [`MAX_QUICK`], how far from a cache's start the list of its class lies.
static OFFSETS: [u16; MAX_QUICK + 1] = {
    let mut offsets = [0; MAX_QUICK + 1];
    let mut size = 0;
    while size <= MAX_QUICK {
        offsets[size] = (size_class::class_of_tabled(size) * LIST_BYTES) as u16;
        size += 1;
    }
    offsets
};

impl List {
    const NONE: Self = Self { head: null_mut(), magic: 0, mask: 0, room: 0, max: 0, seen: 0 };

    const fn of_class(class: usize) -> Self {
        let size = size_class::size_of_class(class);
        let g = size_class::geometry(class);
        // A single object must begin where its first page does.
        let (unit, mask) = if g.is_single() {
            (craton_base::PAGE_SIZE, craton_base::PAGE_SIZE - 1)
        } else {
            (size, g.align().bytes().0 - 1)
        };
        let magic = if g.is_single() { 1 } else { (u64::MAX / unit as u64) + 1 };
        let max = first_max(class);
        Self { head: null_mut(), magic, mask: mask as u32, room: max, max, seen: 0 }
    }
}

impl List {
    /// Whether a pointer into a slab of the list's class is the start of an object, or of where one would be.
    ///
    /// # Safety
    /// `this` is a list.
    #[inline(always)]
    pub unsafe fn starts(this: *const Self, object: *mut u8) -> bool {
        // SAFETY: by the contract.
        unsafe { u64::from(object as u32 & (*this).mask).wrapping_mul((*this).magic) < (*this).magic }
    }
}

impl Pace {
    const NONE: Self = Self { fetch: 0, swing: 0 };

    const fn of_class(class: usize) -> Self {
        let few = (FIRST_FETCH_BYTES / size_class::size_of_class(class)) as u32 + 1;
        Self { fetch: min(FIRST_FETCH, few) as u16, swing: 0 }
    }
}

/// How many freed objects a class's list holds at first.
const fn first_max(class: usize) -> i32 {
    min(FIRST_KEPT, (FIRST_KEPT_BYTES / size_class::size_of_class(class)) as u32) as i32
}

/// A thread's free objects, and what its fast paths need to know of the heap.
#[repr(C, align(64))]
pub struct ThreadCache {
    lists: [List; MARKS],
    paces: [Pace; MARKS],
    base: usize,
    /// Pages granted when this was last looked up; 0 in a cache that is not in use, and in one whose thread is to come by: others write
    /// that, also another process ([`crate::mailbox`]), and its next free then leaves the fast path.
    pages: usize,
    map: PageMap,
    key: usize,
    /// Bytes by which lists may still grow.
    budget: usize,
    /// Pages in use from which on the cache is looked through for what lies idle.
    look_at: u32,
    /// The shard from which lists are filled.
    home: usize,
    /// Next in the registry of all caches.
    pub next: *mut ThreadCache,
    /// How many caches were made before it.
    pub number: usize,
    /// Whether a thread uses it.
    pub taken: bool,
    /// Which of the calls to give up what caches hold the thread has followed last ([`crate::limits`]).
    pub generation: u32,
}

/// What a heap tells its caches.
#[derive(Clone, Copy)]
pub struct HeapView {
    /// Address of page 0.
    pub base: usize,
    /// Pages granted.
    pub pages: usize,
    /// The page map.
    pub map: PageMap,
    /// What marks free objects.
    pub key: usize,
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

/// The lists of a cache that holds nothing.
pub static FRESH_LISTS: [List; MARKS] = {
    let mut lists = [List::NONE; MARKS];
    let mut c = 1;
    while c <= CLASSES {
        lists[c] = List::of_class(c);
        c += 1;
    }
    lists
};

// SAFETY: the table holds no pointers but null.
unsafe impl Sync for List {}

/// Caches that nobody uses, behind the thread pointers of threads that have none: every operation on them leaves the fast path. Since all
/// of them are zeros they may overlap, and a program's memory holds little more than one.
#[repr(C, align(64))]
pub struct NoCaches {
    first: [u8; size_of::<ThreadCache>()],
    rest: [[u8; align_of::<ThreadCache>()]; NO_CACHES - 1],
}

/// How many there are.
pub const NO_CACHES: usize = 4;

impl NoCaches {
    /// The constant.
    pub const fn new() -> Self {
        Self { first: [0; _], rest: [[0; _]; _] }
    }

    /// One of them. It must not be written.
    pub fn get(&'static self, n: usize) -> *mut ThreadCache {
        debug_assert!(n < NO_CACHES);
        (&raw const *self).cast_mut().cast::<u8>().wrapping_add(n * align_of::<ThreadCache>()).cast()
    }
}

impl Default for NoCaches {
    fn default() -> Self {
        Self::new()
    }
}

impl ThreadCache {
    /// Makes the cache at `at` ready for a thread.
    ///
    /// # Safety
    /// `at` is writable memory for one cache, used by nobody else; the view is that of the heap that it will serve.
    pub unsafe fn begin(at: *mut ThreadCache, view: HeapView, asked: &AtomicU32, home: usize, budget: usize) {
        // SAFETY: by the contract; field by field, since a cache is too large for the stack of a small thread.
        unsafe {
            (*at).lists = FRESH_LISTS;
            (*at).paces = FRESH_PACES;
            (*at).budget = budget;
            (*at).home = home;
            (*at).look_at = 0;
            (*at).taken = true;
            (*at).generation = asked.load(Relaxed);
            (*at).look_again(view, asked);
        }
    }

    /// The shard from which its lists are filled.
    pub fn home(&self) -> usize {
        self.home
    }

    /// Takes an object of a size, up to [`MAX_QUICK`], if the cache holds one.
    ///
    /// # Safety
    /// As [`ThreadCache::pop`].
    #[inline(always)]
    pub unsafe fn pop_quick(this: *mut Self, size: usize) -> *mut u8 {
        // SAFETY: the table has an entry for the size, by the contract, and its offsets are those of lists of classes.
        unsafe { Self::pop_at(this, *OFFSETS.get_unchecked(size) as usize) }
    }

    /// Takes an object of a class if the cache holds one.
    ///
    /// # Safety
    /// `this` is the calling thread's cache, or the one that nobody uses. `class` is one of the size classes.
    #[inline(always)]
    pub unsafe fn pop(this: *mut Self, class: usize) -> *mut u8 {
        // SAFETY: by the contract.
        unsafe { Self::pop_at(this, class * LIST_BYTES) }
    }

    /// # Safety
    /// As [`ThreadCache::pop`]; `offset` is that of a class's list.
    #[inline(always)]
    unsafe fn pop_at(this: *mut Self, offset: usize) -> *mut u8 {
        // SAFETY: the cache is this thread's, its lists hold free objects of at least 16 bytes.
        unsafe {
            let list = this.byte_add(offset).cast::<List>();
            let object = (*list).head;
            if !object.is_null() {
                (*list).head = object.cast::<*mut u8>().read();
                (*list).room += 1;
                object.cast::<usize>().add(1).write(0);
            }
            object
        }
    }

    /// Puts an object back if it is one of ours, its class's list has room, and nothing is wrong with it; says whether it did.
    ///
    /// # Safety
    /// `this` as in [`ThreadCache::pop`]. Any pointer may be given; if it is an object, the caller gives it up.
    #[inline(always)]
    pub unsafe fn push(this: *mut Self, object: *mut u8) -> bool {
        // SAFETY: by the contract.
        unsafe { Self::push_if(this, object, |_| true) }
    }

    /// As [`ThreadCache::push`], of an object that must be of the class of a size, up to [`MAX_CLASSED`].
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

    /// As [`ThreadCache::push`], of an object whose list, by its distance from the cache's start, is as it should be.
    ///
    /// # Safety
    /// As [`ThreadCache::push`].
    #[inline(always)]
    unsafe fn push_if(this: *mut Self, object: *mut u8, is_right: impl Fn(usize) -> bool) -> bool {
        // SAFETY: no memory behind the pointer is touched before the page map has named its class and the offset has shown
        // that it starts an object. The map holds offsets of lists.
        unsafe {
            let page = (object as usize).wrapping_sub((*this).base) >> PAGE_SHIFT;
            if page >= (*this).pages {
                return false;
            }
            let offset = (*this).map.list(page);
            if !is_right(offset) {
                return false;
            }
            let list = this.byte_add(offset).cast::<List>();
            // A size that is a power of two could do without the multiplication, but sizes come in any order, and each wrong guess
            // of which kind the next one is costs more than that saves.
            if !List::starts(list, object) {
                return false;
            }
            let mark = mark((*this).key, object);
            let words = object.cast::<usize>();
            if words.add(1).read() == mark {
                return false;
            }
            (*list).room -= 1;
            if (*list).room < 0 {
                return Self::no_room(this, offset);
            }
            words.write((*list).head as usize);
            words.add(1).write(mark);
            (*list).head = object;
            true
        }
    }

    /// Puts an object of a size, up to [`MAX_QUICK`], back if its class's list has room, without a look at anything else; says whether it
    /// did. The object gets no mark: that it is freed twice is not seen.
    ///
    /// # Safety
    /// `this` as in [`ThreadCache::pop`]. The object was asked for with a size of the same class and no alignment, is out, and the caller
    /// gives it up.
    #[inline(always)]
    pub unsafe fn push_trusted(this: *mut Self, object: *mut u8, size: usize) -> bool {
        // SAFETY: by the contract the list is that of the object's class. The cache that nobody uses has no room, and is not written.
        unsafe {
            let list = this.byte_add(*OFFSETS.get_unchecked(size) as usize).cast::<List>();
            if (*list).room <= 0 {
                return false;
            }
            (*list).room -= 1;
            object.cast::<usize>().write((*list).head as usize);
            (*list).head = object;
            true
        }
    }

    /// Puts an object back that has been checked, if its class's list has room; says whether it did.
    ///
    /// # Safety
    /// The object is one of `class` that is out, and the caller gives it up.
    pub unsafe fn push_checked(&mut self, class: usize, object: *mut u8) -> bool {
        let list = &mut self.lists[class];
        if list.room <= 0 {
            return false;
        }
        let words = object.cast::<usize>();
        // SAFETY: an object has at least 16 bytes, and it is ours now.
        unsafe {
            words.write(list.head as usize);
            words.add(1).write(mark(self.key, object));
        }
        list.head = object;
        list.room -= 1;
        true
    }

    /// Undoes the count of an object that a list has no room for. Hidden from the compiler, which would keep the old count at hand for
    /// this, at the cost of two instructions in every free; a call would cost a frame.
    ///
    /// # Safety
    /// `this` is a cache that the calling thread uses, and `offset` that of a list.
    #[inline(always)]
    unsafe fn no_room(this: *mut Self, offset: usize) -> bool {
        // SAFETY: by the contract; changes the list's count alone.
        unsafe {
            #[cfg(target_arch = "x86_64")]
            core::arch::asm!(
                "inc dword ptr [{this} + {offset} + {room}]",
                this = in(reg) this, offset = in(reg) offset, room = const core::mem::offset_of!(List, room),
                options(nostack),
            );
            #[cfg(not(target_arch = "x86_64"))]
            {
                (*this.byte_add(offset).cast::<List>()).room += 1;
            }
        }
        false
    }

    /// The class of an object that is out, and the mark that it would have if it were free; `None` when the pointer is no such
    /// object, or none that this cache knows.
    ///
    /// # Safety
    /// `this` as in [`ThreadCache::pop`]. Any pointer may be given.
    #[inline(always)]
    pub unsafe fn recognise(this: *mut Self, object: *mut u8) -> Option<(usize, usize)> {
        // SAFETY: no memory behind the pointer is touched before the page map has named its class and the offset has
        // shown that it starts an object.
        unsafe {
            let page = (object as usize).wrapping_sub((*this).base) >> PAGE_SHIFT;
            if page >= (*this).pages {
                return None;
            }
            let offset = (*this).map.list(page);
            if !List::starts(this.byte_add(offset).cast::<List>(), object) {
                return None;
            }
            let mark = mark((*this).key, object);
            (object.cast::<usize>().add(1).read() != mark).then_some((offset / LIST_BYTES, mark))
        }
    }

    /// How many objects to ask the slabs for, now that a class's list has run empty. After an overflow it may hold more.
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

    /// Lets a list hold more, as far as the budget and the bounds for a class go.
    fn grow(&mut self, class: usize, more: i32) {
        let size = size_class::size_of_class(class);
        let list = &mut self.lists[class];
        let (bytes, max) = (more as usize * size, list.max + more);
        if bytes <= self.budget && max as usize * size <= MAX_BYTES && max <= MAX_OBJECTS {
            self.budget -= bytes;
            list.max += more;
            list.room += more;
        }
    }

    /// Puts a chain into a list that has run empty.
    pub fn fill(&mut self, class: usize, chain: Chain) {
        let list = &mut self.lists[class];
        let (head, len) = chain.into_raw();
        if head.is_null() {
            return;
        }
        if !list.head.is_null() {
            // A signal handler has freed something while the chain was fetched.
            // SAFETY: the chain's objects are linked to each other, and the last one's link is free for use.
            unsafe { (1..len).fold(head, |at, _| at.cast::<*mut u8>().read()).cast::<*mut u8>().write(list.head) };
        }
        list.head = head;
        list.room -= len as i32;
    }

    /// Leaves an empty list without room, so that what is freed does not stay in it.
    pub fn close(&mut self, class: usize) {
        let list = &mut self.lists[class];
        debug_assert!(list.head.is_null());
        (list.max, list.room) = (0, 0);
    }

    /// Whether a class's list has no room.
    pub fn is_full(&self, class: usize) -> bool {
        self.lists[class].room <= 0
    }

    /// How many objects are to leave a full list: a batch, and more when the list is to hold less from now on; never more than
    /// it has.
    pub fn overflow(&mut self, class: usize) -> u32 {
        let (list, pace) = (&mut self.lists[class], &mut self.paces[class]);
        let mut less = 0;
        if pace.swing < LONG_SWING {
            pace.swing += 1;
        } else {
            // A list that is closed stays so.
            less = ((list.max - first_max(class).min(LAST_KEPT) + 1) / 2).max(0);
            list.max -= less;
            list.room -= less;
            self.budget += less as usize * size_class::size_of_class(class);
        }
        (size_class::batch(class) + less as u32).min((list.max - list.room) as u32)
    }

    /// Whether the heap has grown so much that the cache should be looked through, with so many pages in use.
    pub fn is_look_due(&self, in_use: Pages) -> bool {
        in_use.0 >= self.look_at
    }

    /// Begins such a look, and says when the next one is due: when the heap is larger than ever by a part.
    pub fn begin_look(&mut self, in_use: Pages) {
        self.look_at = in_use.0 + (in_use.0 / LOOK_PART).max(LOOK_LEAST.0);
    }

    /// How many objects of a class lie idle: nearly all, if the list begins as it did at the last look. Such a list holds no more from
    /// now on than one that is new.
    pub fn idle(&mut self, class: usize) -> u32 {
        let list = &mut self.lists[class];
        let (held, kept) = (list.max - list.room, first_max(class).min(LAST_KEPT));
        let first = list.head as u32;
        if core::mem::replace(&mut list.seen, first) != first || held <= kept {
            return 0;
        }
        let less = list.max - first_max(class);
        if less > 0 {
            list.max -= less;
            list.room -= less;
            self.budget += less as usize * size_class::size_of_class(class);
            self.paces[class] = FRESH_PACES[class];
        }
        (held - kept) as u32
    }

    /// Takes the first `n` objects off a list, by what `rest_of` makes of it: it takes them and returns the rest.
    pub fn shorten(&mut self, class: usize, n: u32, rest_of: impl FnOnce(*mut u8) -> *mut u8) {
        let list = &mut self.lists[class];
        let first = core::mem::replace(&mut list.head, null_mut());
        list.head = rest_of(first);
        list.room += n as i32;
    }

    /// Takes up to `most` objects off a list.
    pub fn drain<H: Hooks>(&mut self, class: usize, most: u32) -> Chain {
        let list = &mut self.lists[class];
        let first = list.head;
        let (mut last, mut at, mut n) = (null_mut::<u8>(), first, 0);
        while !at.is_null() && n < most {
            if n > LONGEST {
                H::corrupt(Damage::GivenTwice { class, objects: 1 });
            }
            last = at;
            // SAFETY: `at` is a free object of the list, linked to the next.
            at = unsafe { at.cast::<*mut u8>().read() };
            n += 1;
        }
        if n == 0 {
            return Chain::EMPTY;
        }
        // SAFETY: `last` is a free object of the list, which ends the chain from here on.
        unsafe { last.cast::<*mut u8>().write(null_mut()) };
        list.head = at;
        // A handler can have left the count behind the list.
        list.room = (list.room + n as i32).min(list.max);
        // SAFETY: `n` objects hang from `first`, and are off the list.
        unsafe { Chain::from_raw(first, last, n) }
    }
}

#[cfg(all(test, not(loom)))]
mod tests;
