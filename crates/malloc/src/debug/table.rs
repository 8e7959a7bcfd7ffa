//! The records of buffers, by address.
//!
//! **State.** Sixteen parts, each a table of open addressing in a mapping of its own that doubles when it is two thirds full; an entry that
//! goes is closed up by those behind it, so that there are no graves.
//!
//! **Cost.** An entry is a cache line at a place that nobody can foresee: in memory, mostly, and on a page that the processor has not met. That is
//! what costs, a quarter of a microsecond; so parts lie on hugepages from 2 MiB on, and who will soon need an entry says so ([`expect`]).
//!
//! **Failure.** Without memory for a larger table a record is refused.
//!
//! **Unsafe.** Keeps the entries in mappings, in which zeros are none.

use core::mem::offset_of;
use core::sync::atomic::{AtomicBool, AtomicUsize, Ordering::Relaxed};
use craton_base::HUGEPAGE_SIZE;
use craton_os::{Mutex, Rank, mapping};

/// What is known of one buffer. All zeros are none.
#[derive(Clone, Copy, Debug, Default)]
#[repr(C)]
pub(crate) struct Buffer {
    /// The program's pointer.
    pub(crate) address: usize,
    /// Bytes asked for.
    pub(crate) size: usize,
    /// Start of what lies under it: an object of the heap, or pages.
    pub(crate) under: usize,
    /// The checks that it was made with.
    pub(crate) checks: u8,
    pub(crate) state: State,
    pub(crate) kind: Kind,
    /// log2 of its alignment.
    pub(crate) align: u8,
    /// Whom it belongs to: [`super::MALLOC`], or a cache.
    pub(crate) target: u32,
    pub(crate) taken: Event,
    pub(crate) given: Event,
}

const _: () = assert!(size_of::<Buffer>() == 64);

/// Who did it, when, and from where.
#[derive(Clone, Copy, Debug, Default)]
#[repr(C)]
pub(crate) struct Event {
    pub(crate) time_ns: u64,
    /// Number of the stack; 0 for none.
    pub(crate) stack: u32,
    /// The thread's number; 0 if nobody noted.
    pub(crate) thread: u32,
}

/// Whether a buffer is out.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
#[repr(u8)]
pub(crate) enum State {
    #[default]
    Live,
    /// Somebody is just taking it back.
    Freeing,
    Freed,
    /// Freed, and its pages cannot be touched.
    Closed,
}

/// What lies under a buffer.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
#[repr(u8)]
pub(crate) enum Kind {
    /// An object of the heap.
    #[default]
    Heap,
    /// A page of the arena.
    Slot,
    /// Pages mapped for it.
    Mapped,
}

/// What becomes of an entry that somebody has looked at.
pub(crate) enum Then {
    Keep,
    Remove,
}

const PARTS: usize = 16;
const FIRST: usize = 1024;

/// Where each part's entries lie, and the last one's number: for [`expect`].
static HINTS: [[AtomicUsize; 2]; PARTS] = [const { [const { AtomicUsize::new(0) }; 2] }; PARTS];

/// Whether hugepages are asked for.
static HUGE: AtomicBool = AtomicBool::new(false);

struct Part {
    at: *mut Buffer,
    /// Entries that there are places for; a power of two, or 0.
    places: usize,
    used: usize,
}

// SAFETY: the entries are the part's own.
unsafe impl Send for Part {}

static TABLE: [Mutex<Part>; PARTS] =
    [const { Mutex::ranked(Rank::KitTable, Part { at: core::ptr::null_mut(), places: 0, used: 0 }) }; PARTS];

/// Where the parts are, for those who read the memory of another process.
pub(super) const WHERE: *const u8 = (&raw const TABLE).cast();
/// And what lies where in them.
pub(super) const SHAPE: [(&str, usize); 5] = [
    ("kit.table.parts", PARTS),
    ("kit.part.bytes", size_of::<Mutex<Part>>()),
    ("kit.part.lock", Mutex::<Part>::SHAPE[0]),
    ("kit.part.at", Mutex::<Part>::SHAPE[1] + offset_of!(Part, at)),
    ("kit.part.places", Mutex::<Part>::SHAPE[1] + offset_of!(Part, places)),
];

/// Buffers are at least 16 bytes apart.
fn hash(address: usize) -> u64 {
    (address as u64 >> 4).wrapping_mul(0x9e37_79b9_7f4a_7c15)
}

fn part_of(address: usize) -> usize {
    (hash(address) >> 60) as usize % PARTS
}

fn part(address: usize) -> &'static Mutex<Part> {
    &TABLE[part_of(address)]
}

/// Where an address belongs in a table of which the last place is `mask`.
fn home(address: usize, mask: usize) -> usize {
    (hash(address) >> 20) as usize & mask
}

impl Part {
    fn home(&self, address: usize) -> usize {
        home(address, self.places - 1)
    }

    fn entry(&self, i: usize) -> *mut Buffer {
        self.at.wrapping_add(i)
    }

    /// Where an address is, or the empty place where it belongs.
    fn find(&self, address: usize) -> usize {
        let mut i = self.home(address);
        loop {
            // SAFETY: `i` is below `places`; at most two thirds of them are used, so that the loop ends.
            let there = unsafe { (*self.entry(i)).address };
            if there == address || there == 0 {
                return i;
            }
            i = (i + 1) & (self.places - 1);
        }
    }

    fn make_room(&mut self) -> bool {
        if 3 * (self.used + 1) <= 2 * self.places {
            return true;
        }
        let places = (2 * self.places).max(FIRST);
        let bytes = places * size_of::<Buffer>();
        let huge = bytes >= HUGEPAGE_SIZE && HUGE.load(Relaxed);
        let Some(at) = mapping::map(bytes, if huge { HUGEPAGE_SIZE } else { 1 }) else { return false };
        if huge {
            mapping::advise_huge(at, bytes);
        }
        let old = core::mem::replace(self, Part { at: at as *mut Buffer, places, used: self.used });
        for i in 0..old.places {
            // SAFETY: `i` is below the old table's length, and `find` gives a place of the new one.
            unsafe {
                let buffer = old.entry(i).read();
                if buffer.address != 0 {
                    self.entry(self.find(buffer.address)).write(buffer);
                }
            }
        }
        if old.places > 0 {
            mapping::unmap(old.at as usize, old.places * size_of::<Buffer>());
        }
        true
    }

    fn remove(&mut self, mut hole: usize) {
        let mask = self.places - 1;
        let mut i = hole;
        loop {
            i = (i + 1) & mask;
            // SAFETY: places below `places`.
            let buffer = unsafe { self.entry(i).read() };
            if buffer.address == 0 {
                break;
            }
            // It may move to the hole if that is not before its home.
            if (i.wrapping_sub(self.home(buffer.address)) & mask) >= (i.wrapping_sub(hole) & mask) {
                // SAFETY: as above.
                unsafe { self.entry(hole).write(buffer) };
                hole = i;
            }
        }
        // SAFETY: as above.
        unsafe { self.entry(hole).write(Buffer::default()) };
        self.used -= 1;
    }
}

/// Sets whether large parts lie on hugepages, from their next growth on.
pub(super) fn ask_for_huge(ask: bool) {
    HUGE.store(ask, Relaxed);
}

/// Adds a record; `false` without memory, or if there is one of this address.
pub(crate) fn insert(buffer: Buffer) -> bool {
    let mut part = part(buffer.address).lock();
    let places = part.places;
    if !part.make_room() {
        return false;
    }
    if part.places != places {
        let hint = &HINTS[part_of(buffer.address)];
        hint[0].store(part.at as usize, Relaxed);
        hint[1].store(part.places - 1, Relaxed);
    }
    let i = part.find(buffer.address);
    // SAFETY: `find` gives a place of the table.
    unsafe {
        if (*part.entry(i)).address != 0 {
            return false;
        }
        part.entry(i).write(buffer);
    }
    part.used += 1;
    true
}

/// Looks at an address's record, and may change or remove it; `None` if there is none. Under a lock: nothing that takes memory or another lock.
pub(crate) fn with<R>(address: usize, look: impl FnOnce(&mut Buffer) -> (R, Then)) -> Option<R> {
    let mut part = part(address).lock();
    if part.places == 0 {
        return None;
    }
    let i = part.find(address);
    // SAFETY: `find` gives a place of the table.
    let buffer = unsafe { &mut *part.entry(i) };
    if buffer.address == 0 {
        return None;
    }
    let (result, then) = look(buffer);
    if matches!(then, Then::Remove) {
        part.remove(i);
    }
    Some(result)
}

/// Has the processor fetch what will soon be read: an address's record, and what lies there.
pub(super) fn expect(address: usize) {
    // Without the lock: what is read is no more than a hint, and an address of the old table does no harm.
    let hint = &HINTS[part_of(address)];
    fetch(hint[0].load(Relaxed) + home(address, hint[1].load(Relaxed)) * size_of::<Buffer>());
    // The redzone before it, and its beginning.
    fetch(address.wrapping_sub(1));
    fetch(address);
}

/// Has the processor fetch a cache line; an address of nothing does no harm.
#[inline(always)]
fn fetch(address: usize) {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: a hint, which never fails.
    unsafe {
        core::arch::x86_64::_mm_prefetch::<{ core::arch::x86_64::_MM_HINT_T0 }>(address as *const i8);
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = address;
}

/// A copy of an address's record.
pub(crate) fn get(address: usize) -> Option<Buffer> {
    with(address, |buffer| (*buffer, Then::Keep))
}

/// Tells of each record, part by part, each under its lock.
pub(crate) fn each(mut tell: impl FnMut(&Buffer)) {
    for part in &TABLE {
        let part = part.lock();
        for i in 0..part.places {
            // SAFETY: a place of the table.
            let buffer = unsafe { &*part.entry(i) };
            if buffer.address != 0 {
                tell(buffer);
            }
        }
    }
}

/// A record of which something is so; of several any.
pub(super) fn one_where(is_so: impl Fn(&Buffer) -> bool) -> Option<Buffer> {
    let mut found = None;
    each(|b| {
        if is_so(b) {
            found = Some(*b);
        }
    });
    found
}

/// As [`each`], past the locks: for the copy of a process, in which nobody changes anything.
pub(crate) fn each_in_copy(mut tell: impl FnMut(&Buffer)) {
    for part in &TABLE {
        // SAFETY: the copy has one thread, which holds none of the locks through a guard.
        let part = unsafe { part.held_for_fork() };
        for i in 0..part.places {
            // SAFETY: a place of the table.
            let buffer = unsafe { &*part.entry(i) };
            if buffer.address != 0 {
                tell(buffer);
            }
        }
    }
}

/// Tells where the records lie: address and bytes of each part; for the copy of a process.
pub(crate) fn extents(tell: &mut impl FnMut(usize, usize)) {
    for part in &TABLE {
        // SAFETY: as in `each_in_copy`.
        let part = unsafe { part.held_for_fork() };
        tell(part.at as usize, part.places * size_of::<Buffer>());
    }
}

pub(crate) fn hold_for_fork(nested: bool) {
    TABLE.iter().for_each(|part| part.hold_for_fork(nested));
}

/// # Safety
/// As [`Mutex::release_after_fork`].
pub(crate) unsafe fn release_after_fork() {
    // SAFETY: by the contract.
    TABLE.iter().rev().for_each(|part| unsafe { part.release_after_fork() });
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn records_are_found_changed_and_removed_however_many_there_are() {
        // Addresses that no other test has.
        let address = |n: usize| 0x10_0000_0000 + 16 * n;
        let n = 40_000;
        for i in 0..n {
            assert!(insert(Buffer { address: address(i), size: i, ..Default::default() }));
        }
        assert!(!insert(Buffer { address: address(7), ..Default::default() }), "there is one already");
        for i in (0..n).step_by(3) {
            assert_eq!(with(address(i), |b| (b.size, Then::Remove)), Some(i));
        }
        for i in 0..n {
            let found = with(address(i), |b| {
                b.size += 1;
                (b.size, Then::Remove)
            });
            assert_eq!(found, (!i.is_multiple_of(3)).then_some(i + 1), "{i}");
        }
        let mut left = 0;
        each(|b| left += usize::from((address(0)..address(n)).contains(&b.address)));
        assert_eq!(left, 0);
    }
}
