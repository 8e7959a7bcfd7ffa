//! Lanes: where threads write redo lines. Lines of epoch e lie in half e % 2 of a lane's ring. A
//! list has the stored home lines of the lane's epoch, which are not written back yet.
//!
//! **Invariants.** *NL1* A half is written for epoch e only when epoch e - 2 is settled. *NL2* A
//! line's homes are stored after the line is committed.
//!
//! **Threads.** A lane's lock covers all its words; its epoch is also read without. Each thread
//! writes back the homes that it stored, when it joins the next epoch. Without write-back, a thread
//! that has a lane alone takes no lock.

pub mod header;
mod order;

use crate::layout::{LANE_PENDING, LANE_USED, Places};
use crate::line::{Kind, Place, Redo};
use crate::slab;
use crate::tcache::Tcache;
use craton_base::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering, spin};
use craton_base::{LINE_BYTES, Medium};
use header::{encode_pending, encode_used, pending_key};

#[derive(Default)]
struct Dirty {
    lines: Box<[AtomicU64]>,
    len: AtomicU32,
}

pub struct Lane {
    locked: AtomicBool,
    /// Of `used`.
    epoch: AtomicU64,
    used: AtomicU32,
    /// Recovery reads no ring of another generation.
    generation: AtomicU64,
    dirty: Dirty,
    /// Lines of this epoch's list, which mostly come again soon.
    recent: [AtomicU64; RECENT],
    reserved: AtomicU64,
    header: u64,
    /// Of counts of pending lines.
    pending_key: u64,
    ring: u64,
    half: u32,
    seed: u64,
    eager: bool,
    pub tcache: Tcache,
}

/// Beyond an operation's parts: a slab that changes its class, a new one, one that goes.
pub const SPARE: u32 = 3;
const RECENT: usize = 64;
/// Of a new slab's header.
const SLAB_LINES: u32 = 14;

impl Lane {
    pub fn new(index: u32, places: Places, seed: u64, flushes: bool, eager: bool) -> Self {
        // A slot and two homes a line, and some new slabs.
        let lines = if flushes { places.half * 3 + 4 * SLAB_LINES } else { 0 };
        let dirty = Dirty { lines: (0..lines).map(|_| AtomicU64::new(0)).collect(), len: AtomicU32::new(0) };
        Self {
            locked: AtomicBool::new(false),
            epoch: AtomicU64::new(0),
            used: AtomicU32::new(0),
            generation: AtomicU64::new(0),
            dirty,
            recent: [const { AtomicU64::new(0) }; RECENT],
            reserved: AtomicU64::new(0),
            header: places.lane_header(index),
            pending_key: pending_key(seed, places.lane_header(index)),
            ring: places.ring(index),
            half: places.half,
            seed,
            eager,
            tcache: Tcache::new(),
        }
    }

    #[inline]
    pub fn lock(&self) {
        // ORDERING: pairs with the release in `unlock`.
        while self.locked.swap(true, Ordering::Acquire) {
            loop {
                spin();
                std::thread::yield_now();
                // In loom a load may see the older value for ever.
                if cfg!(loom) || !self.locked.load(Ordering::Relaxed) {
                    break;
                }
            }
        }
    }

    pub fn try_lock(&self) -> bool {
        // ORDERING: pairs with the release in `unlock`.
        !self.locked.swap(true, Ordering::Acquire)
    }

    #[inline]
    pub fn unlock(&self) {
        // ORDERING: pairs with the swap in `lock`. loom lets a swap miss a plain store.
        if cfg!(loom) {
            self.locked.swap(false, Ordering::Release);
        } else {
            self.locked.store(false, Ordering::Release);
        }
    }

    /// Whether `lines` more fit into the lane's half of `epoch`, which it joins. Lane locked.
    #[inline]
    pub fn has_room<M: Medium>(&self, medium: &M, epoch: u64, lines: u32) -> bool {
        if self.epoch.load(Ordering::Relaxed) != epoch {
            self.join(medium, epoch);
        }
        let dirty_lines = self.dirty.len.load(Ordering::Relaxed) + 3 * lines + SPARE * SLAB_LINES;
        self.used.load(Ordering::Relaxed) + lines <= self.half && dirty_lines <= self.dirty.lines.len() as u32
    }

    /// Leaves the epoch before, whose homes become durable.
    #[cold]
    fn join<M: Medium>(&self, medium: &M, epoch: u64) {
        self.write_back(medium);
        self.used.store(0, Ordering::Relaxed);
        self.recent.iter().for_each(|line| line.store(0, Ordering::Relaxed));
        // ORDERING: pairs with the acquire in `leave`: that thread writes the settled epoch after
        // these write-backs.
        self.epoch.store(epoch, Ordering::Release);
    }

    /// On return no home of an epoch before `epoch` is dirty, and no operation of one is under way.
    pub fn leave<M: Medium>(&self, medium: &M, epoch: u64) {
        // ORDERING: pairs with the release in `join`.
        if self.epoch.load(Ordering::Acquire) != epoch {
            // Waits for an operation under way.
            self.lock();
            if self.epoch.load(Ordering::Relaxed) != epoch {
                self.write_back(medium);
            }
            self.unlock();
        }
    }

    /// The ring's use is durable before its first line. Lane locked.
    #[inline]
    pub fn begin<M: Medium>(&self, medium: &M, generation: u64) {
        if self.generation.load(Ordering::Relaxed) != generation {
            self.generation.store(generation, Ordering::Relaxed);
            medium.store(self.header + LANE_USED, encode_used(self.seed, self.header, generation));
            medium.flush(self.header + LANE_USED);
            medium.fence();
        }
    }

    /// Commits one operation, and stores its homes. With flushes, the lane is locked and has room.
    #[inline(never)]
    pub fn commit<M: Medium>(&self, medium: &M, stamp: u64, parts: &[Redo]) {
        if M::FLUSHES {
            let epoch = self.epoch.load(Ordering::Relaxed);
            let used = self.used.load(Ordering::Relaxed);
            let first = self.ring + (u64::from(self.half) * (epoch & 1) + u64::from(used)) * LINE_BYTES;
            let mut at = first;
            for (part, redo) in parts.iter().enumerate() {
                let place = Place { epoch, part: part as u32, parts: parts.len() as u32, stamp };
                medium.store_line(at, &redo.encode(place, seed_of(self.seed, at)));
                at += LINE_BYTES;
            }
            self.used.store(used + parts.len() as u32, Ordering::Relaxed);
            medium.fence();
        } else {
            let mut at = self.ring;
            for redo in parts {
                medium.store_line(at, &redo.encode_summed(seed_of(self.seed, at)));
                at += LINE_BYTES;
            }
            medium.store(self.header + LANE_PENDING, encode_pending(self.pending_key, parts.len() as u64));
        }
        for redo in parts {
            self.apply(medium, redo);
        }
        if M::FLUSHES && self.eager {
            self.write_back(medium);
        }
        if !M::FLUSHES {
            medium.store(self.header + LANE_PENDING, 0);
        }
    }

    /// Whether the home's bits were as expected; with flushes, the caller has checked.
    #[inline(always)]
    pub fn commit_one<M: Medium>(&self, medium: &M, stamp: u64, redo: &Redo) -> bool {
        if M::FLUSHES {
            self.commit(medium, stamp, std::slice::from_ref(redo));
            return true;
        }
        medium.store_line(self.ring, &redo.encode_summed(seed_of(self.seed, self.ring)));
        medium.store(self.header + LANE_PENDING, encode_pending(self.pending_key, 1));
        let was_right = self.apply(medium, redo);
        medium.store(self.header + LANE_PENDING, 0);
        was_right
    }

    #[inline(always)]
    fn apply<M: Medium>(&self, medium: &M, redo: &Redo) -> bool {
        // Before the slot: another thread may free the object at once.
        match redo.kind {
            Kind::Alloc => _ = medium.update(redo.home, redo.value, 0),
            Kind::AllocGuest => self.apply_rare(medium, redo),
            Kind::Publish => {
                let (home, bit) = slab::bit_of_fixed(redo);
                medium.update(home, bit, 0);
                self.mark_dirty::<M>(home);
            }
            _ => {}
        }
        if redo.slot != 0 {
            medium.store(redo.slot, redo.new);
            self.mark_dirty::<M>(redo.slot);
        }
        let mut was_right = true;
        match redo.kind {
            Kind::Set | Kind::AllocGuest => return true,
            Kind::Alloc => {}
            Kind::Publish => medium.store(redo.home, redo.value),
            Kind::Free => was_right = medium.update(redo.home, 0, redo.value) & redo.value == redo.value,
            _ => {
                self.apply_rare(medium, redo);
                return true;
            }
        }
        self.mark_dirty::<M>(redo.home);
        was_right
    }

    #[cold]
    fn apply_rare<M: Medium>(&self, medium: &M, redo: &Redo) {
        slab::redo(medium, self.seed, redo, |at| self.mark_dirty::<M>(at));
    }

    #[inline]
    pub fn mark_dirty<M: Medium>(&self, at: u64) {
        if M::FLUSHES {
            let line = at & !(LINE_BYTES - 1);
            let recent = &self.recent[(line / LINE_BYTES) as usize % RECENT];
            if recent.load(Ordering::Relaxed) == line && !self.eager {
                return;
            }
            recent.store(line, Ordering::Relaxed);
            let len = self.dirty.len.load(Ordering::Relaxed);
            self.dirty.lines[len as usize].store(line, Ordering::Relaxed);
            self.dirty.len.store(len + 1, Ordering::Relaxed);
        }
    }

    /// The homes of the lane's epoch. Lane locked.
    #[cold]
    fn write_back<M: Medium>(&self, medium: &M) {
        let len = self.dirty.len.swap(0, Ordering::Relaxed);
        if len == 0 {
            return;
        }
        let lines = self.dirty.lines[..len as usize].iter().map(|line| line.load(Ordering::Relaxed));
        if self.eager {
            // The last stored first.
            lines.rev().for_each(|line| medium.flush(line));
        } else {
            // Persistent memory is faster in sequence.
            let mut lines = order::sorted(lines.collect());
            lines.dedup();
            // The heap may have shrunk.
            let end = medium.len();
            lines.into_iter().filter(|line| *line < end).for_each(|line| medium.flush(line));
        }
        medium.fence();
    }

    /// The lane is this thread's, or locked.
    #[inline]
    pub fn count_reserved(&self, objects: i64) {
        let count = self.reserved.load(Ordering::Relaxed).wrapping_add_signed(objects);
        self.reserved.store(count, Ordering::Relaxed);
    }

    /// Wraps: the sum over all lanes counts.
    pub fn reserved(&self) -> u64 {
        self.reserved.load(Ordering::Relaxed)
    }

    pub fn epoch(&self) -> u64 {
        self.epoch.load(Ordering::Relaxed)
    }
}

/// Makes check words cover the heap and the offset.
#[inline]
pub fn seed_of(heap: u64, at: u64) -> u64 {
    heap ^ at.rotate_left(40)
}
