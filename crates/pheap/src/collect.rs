//! Collection after a crash, for heaps whose small objects are not logged.
//!
//! **What.** Threads mark what the roots reach. A marked object is allocated; every other one is
//! free, and so is an extent without marks.
//!
//! **From.** NVAlloc §4.4, conservative as in Makalu: a word that is an offset into an object
//! reaches it, also into its middle. A [`Trace`] that knows types reads less and keeps less.
//!
//! **Threads.** Markers share a stack; each keeps up to [`KEPT`] objects in a stack aside.
//!
//! **Failure.** Damage of roots or slabs is reported before anything changes. A crash in here
//! leaves the heap as it was, with some unreached extents free.

use crate::config::Model;
use crate::error::Error;
use crate::extents::{Extent, ExtentKind};
use crate::heap::Heap;
use crate::layout::{PAGE, SLAB_BITMAP, UNIT, UNIT_SHIFT};
use crate::line::{Kind, Redo};
use crate::recover::Report;
use crate::slab::unused_bits;
use craton_base::atomic::{AtomicU64, Ordering};
use craton_base::{Medium, Space};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

/// Names the objects that an object reaches.
pub trait Trace<M>: Sync {
    /// Calls `reach` with the offset of each object that the object `at` of `bytes` bytes reaches,
    /// and a tag for its type. `tag` is that of `at`: from its root, or from an earlier call.
    fn trace(&self, medium: &M, tag: u64, at: u64, bytes: u64, reach: &mut dyn FnMut(u64, u64));
}

/// Every word may be an offset.
#[derive(Clone, Copy, Debug, Default)]
pub struct Conservative;

impl<M: Medium> Trace<M> for Conservative {
    fn trace(&self, medium: &M, tag: u64, at: u64, bytes: u64, reach: &mut dyn FnMut(u64, u64)) {
        let end = medium.len();
        // Most words are no offsets, and go no further than this.
        let mut reach = |word: &AtomicU64| match word.load(Ordering::Relaxed) {
            there if there.wrapping_sub(1) < end => reach(there, tag),
            _ => {}
        };
        match medium.words(at, (bytes / 8) as usize) {
            Some(words) => words.iter().for_each(reach),
            None => (at..at + bytes).step_by(8).for_each(|at| reach(medium.word(at))),
        }
    }
}

/// Objects that a marker keeps before it shares some.
const KEPT: usize = 512;

#[derive(Clone, Copy)]
struct Object {
    at: u64,
    bytes: u64,
    tag: u64,
}

#[derive(Default)]
struct Shared {
    objects: Vec<Object>,
    idle: usize,
    done: bool,
}

/// Of slabs by unit, and of extents.
struct Marks {
    slabs: Vec<Box<[AtomicU64]>>,
    extents: Vec<(Extent, AtomicU64)>,
    shared: Mutex<Shared>,
    more: Condvar,
}

impl Marks {
    fn shared(&self) -> MutexGuard<'_, Shared> {
        self.shared.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<M: Medium + Space> Heap<M> {
    pub(crate) fn collect_after_crash(&mut self, trace: &dyn Trace<M>, report: &mut Report) -> Result<(), Error> {
        let mut slabs = Vec::new();
        slabs.resize_with((self.medium.len() >> UNIT_SHIFT) as usize + 1, Box::default);
        let mut extents = Vec::new();
        for extent in self.extents.list(&self.medium) {
            let at = extent.page * PAGE;
            match self.units.get(at) {
                Some(tag) => {
                    let words = self.classes[tag.class].stripes as usize * 8;
                    slabs[(at >> UNIT_SHIFT) as usize] = (0..words).map(|_| AtomicU64::new(0)).collect();
                }
                None => extents.push((extent, AtomicU64::new(0))),
            }
        }
        let undo = self.undo_buffers();
        let marks = Marks { slabs, extents, shared: Mutex::default(), more: Condvar::new() };
        let mut first = Vec::new();
        for root in self.roots()? {
            self.mark(&marks, self.load(root.slot.0), root.tag, &mut first);
        }
        // Their contents reach nothing.
        undo.into_iter().for_each(|at| self.mark(&marks, at, 0, &mut Vec::new()));
        marks.shared().objects = first;
        let markers = self.options.markers();
        std::thread::scope(|scope| {
            for _ in 1..markers {
                scope.spawn(|| self.run_marker(&marks, markers, trace));
            }
            self.run_marker(&marks, markers, trace);
        });
        (report.small, report.large) = (0, 0);
        self.adopt_marks(&marks, report);
        self.free_unmarked(&marks, report)
    }

    fn run_marker(&self, marks: &Marks, markers: usize, trace: &dyn Trace<M>) {
        let mut mine = Vec::with_capacity(2 * KEPT);
        loop {
            if mine.is_empty() && !fetch(marks, markers, &mut mine) {
                return;
            }
            while let Some(object) = mine.pop() {
                trace.trace(&self.medium, object.tag, object.at, object.bytes, &mut |at, tag| {
                    self.mark(marks, at, tag, &mut mine);
                });
                if mine.len() > KEPT {
                    let mut shared = marks.shared();
                    if shared.idle > 0 && shared.objects.is_empty() {
                        shared.objects.extend(mine.drain(..KEPT / 2));
                        marks.more.notify_all();
                    }
                }
            }
        }
    }

    /// Marks the object that holds the byte at `at`; adds a new one to `found`.
    #[inline]
    fn mark(&self, marks: &Marks, at: u64, tag: u64, found: &mut Vec<Object>) {
        if at < self.places.data() || at >= self.medium.len() {
            return;
        }
        let Some(slab) = self.units.get(at) else { return self.mark_extent(marks, at, tag, found) };
        let class = &self.classes[slab.class];
        let Some(index) = class.index_within(at % UNIT) else { return };
        let mid = class.mid_of(index);
        let bit = 1 << (mid % 64);
        let word = &marks.slabs[(at >> UNIT_SHIFT) as usize][(mid / 64) as usize];
        if word.load(Ordering::Relaxed) & bit == 0 && word.fetch_or(bit, Ordering::Relaxed) & bit == 0 {
            let at = at / UNIT * UNIT + class.offset_of(index);
            found.push(Object { at, bytes: u64::from(class.size), tag });
        }
    }

    fn mark_extent(&self, marks: &Marks, at: u64, tag: u64, found: &mut Vec<Object>) {
        let page = at / PAGE;
        let behind = marks.extents.partition_point(|(extent, _)| extent.page <= page);
        let Some((extent, mark)) = behind.checked_sub(1).map(|i| &marks.extents[i]) else { return };
        if page < extent.page + u64::from(extent.pages) && mark.swap(1, Ordering::Relaxed) == 0 {
            found.push(Object { at: extent.page * PAGE, bytes: u64::from(extent.pages) * PAGE, tag });
        }
    }

    /// Makes the marked small objects taken, and all others free.
    fn adopt_marks(&self, marks: &Marks, report: &mut Report) {
        for arena in 0..self.arenas.len() {
            let mut slabs = self.lock_arena(arena);
            for index in 0..slabs.slabs.len() {
                let slab = &mut slabs.slabs[index];
                let class = &self.classes[slab.class];
                let before = class.objects - slab.free;
                let marks = &marks.slabs[(slab.at >> UNIT_SHIFT) as usize];
                slab.taken = unused_bits(class);
                slab.taken.iter_mut().zip(marks).for_each(|(word, mark)| *word |= mark.load(Ordering::Relaxed));
                slab.free = slab.taken.iter().map(|word| word.count_zeros()).sum();
                let live = class.objects - slab.free;
                report.small += u64::from(live);
                report.collected += u64::from(before.saturating_sub(live));
                slabs.relist(index, class.objects);
            }
        }
    }

    fn free_unmarked(&self, marks: &Marks, report: &mut Report) -> Result<(), Error> {
        for (extent, mark) in &marks.extents {
            if mark.load(Ordering::Relaxed) != 0 {
                report.large += 1;
                continue;
            }
            debug_assert!(extent.kind == ExtentKind::Object);
            let guard = self.enter(1);
            let plan = self.extents.plan_free(&self.medium, extent.page)?;
            let (home, value) = (plan.home.at, plan.home.value);
            let old = extent.page * PAGE;
            let redo = Redo { kind: Kind::FreeExtent, slot: 0, old, new: 0, home, value, len: plan.pages };
            guard.lane.commit(&self.medium, self.stamp(), &[redo]);
            self.extents.finish_free(&self.medium, &plan, self.epoch_of(&guard));
            report.collected += 1;
        }
        Ok(())
    }

    /// Stores the bits of all slabs, for the next `open`.
    pub(crate) fn write_bits(&self) {
        debug_assert!(self.sup.model == Model::Gc);
        let cached = self.cached_objects();
        for arena in 0..self.arenas.len() {
            for slab in self.lock_arena(arena).slabs.iter().filter(|slab| slab.at != 0) {
                let class = &self.classes[slab.class];
                let mut bits = slab.taken.clone();
                bits.iter_mut().zip(unused_bits(class)).for_each(|(word, unused)| *word &= !unused);
                let from = cached.partition_point(|at| *at < slab.at);
                for at in cached[from..].iter().take_while(|at| **at < slab.at + UNIT) {
                    if let Some(mid) = class.index_at(at % UNIT).map(|index| class.mid_of(index)) {
                        bits[(mid / 64) as usize] &= !(1 << (mid % 64));
                    }
                }
                for (i, word) in bits.iter().enumerate() {
                    self.medium.store(slab.at + SLAB_BITMAP + 8 * i as u64, *word);
                }
                self.flush_range(slab.at + SLAB_BITMAP, bits.len() as u64 * 8);
            }
        }
        self.medium.fence();
    }
}

/// Waits for objects; `false` when all markers wait.
fn fetch(marks: &Marks, markers: usize, mine: &mut Vec<Object>) -> bool {
    let mut shared = marks.shared();
    shared.idle += 1;
    loop {
        if !shared.objects.is_empty() {
            shared.idle -= 1;
            let kept = shared.objects.len() / 2;
            mine.extend(shared.objects.drain(kept..));
            return true;
        }
        if shared.idle == markers || shared.done {
            shared.done = true;
            marks.more.notify_all();
            return false;
        }
        shared = marks.more.wait(shared).unwrap_or_else(PoisonError::into_inner);
    }
}
