//! A hardened cache: freed objects wait, are cleared, and are reused in random order.
//! ```text
//! free ──> lists[class] ──> cleared, shuffled ──> Stage::old ──> Stage::out ──> malloc
//!          newest objects                         older ones    (and refills)
//! ```
//! A turn moves both groups to the right when the newest are [`wait`], or when `out` is empty and
//! the newest are half as many.
//!
//! **Invariants.** *Q1* an object goes out only after `wait / 2` later frees of its class in this
//! cache, except after a flush of the whole cache. *Q2* objects in `out`, in transfer slots and on
//! slabs are cleared behind their mark, up to [`CLEARED`] bytes.
//!
//! **Threads.** A signal handler that interrupts a push can lose objects: the turn reports it.
//!
//! **Cost.** A turn costs some 180 instructions. A ring for each class mispredicts a jump in each
//! free: 1.57 times the default's time, turns 1.40.
//!
//! **Unsafe.** Reads and writes free objects that the cache owns.

use super::count::{ONE, objects_in, room_for};
use super::{LIST_BYTES, List, OFFSETS, Offsets, ThreadCache, first_max};
use crate::hooks::{Damage, Hooks};
use crate::mark::{Key, clear_pairs, cleared_pairs};
use crate::shuffle::{Random, Wrong, deal};
use crate::size_class::{self, CLASSES, MARKS};
use core::mem::offset_of;
use core::ptr::null_mut;
use craton_slab::{Chain, end};

#[repr(C, align(64))]
struct Stage {
    out: List,
    old: *mut u8,
    last: *mut u8,
    old_len: u32,
    /// Bound of the newest; 0 in a closed class.
    wait: i32,
    /// Not yet reported to [`Hooks::reused`].
    reused: u32,
    pairs: u32,
}

/// Lies behind a hardened cache.
#[repr(C, align(64))]
pub struct Stages {
    of: [Stage; MARKS],
    random: Random,
}

#[repr(C)]
pub struct HardenedCache {
    cache: ThreadCache,
    stages: Stages,
}

/// Powers of two for [`deal`]. More would fall out of the processor's caches, fewer make turns
/// frequent.
const WAIT_BYTES: usize = 4 << 10;
const WAIT_OBJECTS: usize = 32;
/// For objects up to 1 KiB.
const WAIT_LEAST: usize = 16;
const WAIT_LEAST_UP_TO: usize = 1 << 10;

const REPORTED: u32 = 1024;

pub const fn wait(class: usize) -> u32 {
    match WAIT_BYTES / size_class::size_of_class(class) {
        n if n < WAIT_LEAST && size_class::size_of_class(class) <= WAIT_LEAST_UP_TO => WAIT_LEAST as u32,
        0 => 1,
        n if n > WAIT_OBJECTS => WAIT_OBJECTS as u32,
        n => 1 << n.ilog2(),
    }
}

impl ThreadCache {
    pub const fn bytes_of_one(hardened: bool) -> usize {
        if hardened { size_of::<HardenedCache>() } else { size_of::<Self>() }
    }

    const fn out_at(class: usize) -> usize {
        offset_of!(HardenedCache, stages) + offset_of!(Stages, of) + class * size_of::<Stage>() + offset_of!(Stage, out)
    }

    /// # Safety
    /// As [`ThreadCache::begin`]; memory for a [`HardenedCache`] is there.
    pub(super) unsafe fn begin_stages(at: *mut Self, key: &Key) {
        // SAFETY: by the contract.
        unsafe {
            let stages = &raw mut (*at.cast::<HardenedCache>()).stages;
            (*at).stages = stages;
            for class in 0..MARKS {
                let is_class = (1..=CLASSES).contains(&class);
                let (wait, max) = if is_class { (wait(class) as i32, first_max(class)) } else { (0, 0) };
                let out = List { head: end(), secret: key.secrets[class], room: room_for(max), ..List::NONE };
                (&raw mut (*stages).of[class]).write(Stage {
                    out,
                    old: end(),
                    last: null_mut(),
                    old_len: 0,
                    wait,
                    reused: 0,
                    pairs: if is_class { cleared_pairs(size_class::size_of_class(class)) } else { 0 },
                });
                if is_class {
                    (*at).lists[class].room = room_for(wait);
                    (*at).sources[class] = (*at).source_at(class);
                }
            }
            let offsets = &raw mut (*at).offsets;
            for (to, from) in (*offsets).iter_mut().zip(&OFFSETS as &Offsets) {
                *to = (*at).sources[*from as usize / size_of::<List>()];
            }
            (*stages).random = Random::new(key, (*at).number as u64);
        }
    }

    pub fn is_hardened(&self) -> bool {
        !self.stages.is_null()
    }

    /// Where the list for requests lies in the cache.
    #[inline]
    pub(super) fn source_at(&self, class: usize) -> u16 {
        (if self.is_hardened() { Self::out_at(class) } else { class * LIST_BYTES }) as u16
    }

    #[inline]
    pub(super) fn source(&self, class: usize) -> &List {
        match self.stage(class) {
            // SAFETY: the cache owns it.
            Some(stage) => unsafe { &(*stage).out },
            None => &self.lists[class],
        }
    }

    #[inline]
    pub(super) fn source_mut(&mut self, class: usize) -> &mut List {
        match self.stage(class) {
            // SAFETY: the cache owns it.
            Some(stage) => unsafe { &mut (*stage).out },
            None => &mut self.lists[class],
        }
    }

    #[inline]
    fn stage(&self, class: usize) -> Option<*mut Stage> {
        // SAFETY: `begin_stages` set the pointer.
        (!self.stages.is_null()).then(|| unsafe { &raw mut (*self.stages).of[class] })
    }

    fn newest(&self, class: usize, stage: *mut Stage) -> i32 {
        // SAFETY: the cache owns it.
        unsafe { (*stage).wait - objects_in(self.lists[class].room) }
    }

    pub(super) fn waiting_bytes(&self) -> usize {
        (1..=CLASSES)
            .filter_map(|class| {
                let stage = self.stage(class)?;
                // SAFETY: the cache owns it.
                let objects = unsafe { (*stage).old_len as usize } + self.newest(class, stage).max(0) as usize;
                Some(objects * size_class::size_of_class(class))
            })
            .sum()
    }

    /// Frees then leave the fast path.
    pub(super) fn close_stage(&mut self, class: usize) {
        if let Some(stage) = self.stage(class) {
            // SAFETY: the cache owns it.
            unsafe { (*stage).wait = 0 };
        }
    }

    #[inline]
    pub fn is_turn_due(&self, class: usize) -> bool {
        // SAFETY: the cache owns it.
        self.is_full(class) && self.stage(class).is_some_and(|stage| unsafe { (*stage).wait > 0 })
    }

    /// Whether a turn would keep Q1 and bring objects.
    #[inline]
    pub fn may_turn(&self, class: usize) -> bool {
        self.stage(class).is_some_and(|stage| {
            // SAFETY: the cache owns it.
            let (wait, old_len) = unsafe { ((*stage).wait, (*stage).old_len) };
            old_len > 0 && 2 * self.newest(class, stage) >= wait
        })
    }

    /// Few for a class that frees, since all of them wait later.
    pub fn most_wanted(&self, class: usize) -> u32 {
        match self.stage(class) {
            Some(stage) if 4 * self.newest(class, stage) >= wait(class) as i32 => wait(class),
            _ => u32::MAX,
        }
    }

    #[inline]
    pub fn is_report_due(&self, class: usize) -> bool {
        // SAFETY: the cache owns it.
        self.stage(class).is_some_and(|stage| unsafe { (*stage).reused >= REPORTED })
    }

    pub fn take_reuse(&mut self, class: usize) -> u32 {
        // SAFETY: the cache owns it.
        self.stage(class).map_or(0, |stage| unsafe { core::mem::take(&mut (*stage).reused) })
    }

    #[inline]
    pub fn turn<H: Hooks>(&mut self, class: usize) {
        let Some(stage) = self.stage(class) else { return };
        // SAFETY: the cache owns all lists; the older objects hang from the first to the last.
        unsafe {
            let (first, last, n) = ((*stage).old, (*stage).last, (*stage).old_len);
            self.age::<H>(class, stage);
            if n > 0 {
                let out = &mut (*stage).out;
                last.cast::<*mut u8>().write(out.head);
                out.head = first;
                out.room -= n as i32 * ONE;
                (*stage).reused += n;
            }
        }
    }

    pub fn end_waits<H: Hooks>(&mut self, class: usize, mut give: impl FnMut(Chain)) {
        for _ in 0..2 {
            let Some(stage) = self.stage(class) else { return };
            // SAFETY: as in `turn`.
            unsafe {
                let (first, last, n) = ((*stage).old, (*stage).last, (*stage).old_len);
                self.age::<H>(class, stage);
                if n > 0 {
                    give(Chain::from_raw(first, last, n));
                }
            }
        }
    }

    /// # Safety
    /// It is the class's stage, whose older objects the caller takes.
    #[inline]
    unsafe fn age<H: Hooks>(&mut self, class: usize, stage: *mut Stage) {
        let (seal, newest) = (self.seal(class), self.newest(class, stage).max(0) as u32);
        // SAFETY: the cache owns stage and lists, which hold free objects of the class.
        unsafe {
            let list = &mut self.lists[class];
            let first = core::mem::replace(&mut list.head, end());
            list.room = room_for((*stage).wait);
            (*stage).old_len = newest;
            if newest == 0 {
                return;
            }
            let pairs = (*stage).pairs;
            let dealt = deal(&mut (*self.stages).random, first, newest, |object| {
                let is_free = seal.is_on(object);
                if is_free {
                    clear_pairs(object, pairs);
                }
                is_free
            });
            match dealt {
                Ok(chain) => ((*stage).last, (*stage).old) = (chain.last(), chain.into_raw().0),
                Err(Wrong::Short(objects)) => H::corrupt(Damage::Lost { class, objects }),
                Err(Wrong::NotFree(at)) => H::corrupt(Damage::NotFree { class, at }),
            }
        }
    }
}

const _: () = assert!(ThreadCache::out_at(MARKS) <= u16::MAX as usize && ONE > 0);

pub(super) const SHAPE: [(&str, usize); 4] = [
    ("thread.stages", offset_of!(ThreadCache, stages)),
    ("stage.bytes", size_of::<Stage>()),
    ("stage.out", offset_of!(Stages, of) + offset_of!(Stage, out)),
    ("stage.old", offset_of!(Stages, of) + offset_of!(Stage, old)),
];

impl Stages {
    pub(super) const NONE: *mut Self = null_mut();
}

#[cfg(all(test, not(loom)))]
mod tests;
