//! The words of one CPU.
//!
//! **State.** A line for each CPU and kind: two claims' halves, plus 1, for gets and puts; the
//! root: tree 32 · huge frame in it 16 · present 1 · taking 1 (the paper's t) · guest 1, in a tree
//! that the CPU does not reserve; the last found huge frame, plus 1; the last free: half of a row
//! 40 · consecutive frees to its tree 8. Then a line for each [`Slot`].
//! **Threads.** CPU numbers may be stale or shared: every word changes by one locked operation.

use crate::slot::Slot;
use crate::word::Word;
use craton_base::atomic::{AtomicU64, Ordering};

/// Zeros at first.
#[derive(Debug, Default)]
#[repr(align(64))]
pub struct Local {
    pub(crate) slot: Slot,
    pub(crate) gets: AtomicU64,
    pub(crate) puts: AtomicU64,
    root: AtomicU64,
    huge: AtomicU64,
    last: AtomicU64,
}

const HALF: u64 = (1 << 40) - 1;
const PRESENT: u64 = 1 << 48;
const TAKING: u64 = 1 << 49;
const GUEST: u64 = 1 << 50;

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Last {
    Here,
    Beside,
    Elsewhere,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Root(u64);

impl Root {
    pub(crate) fn new(tree: usize, child: usize) -> Self {
        Self(tree as u64 | (child as u64) << 32 | PRESENT)
    }

    pub(crate) fn guest(tree: usize, child: usize) -> Self {
        Self(tree as u64 | (child as u64) << 32 | GUEST)
    }

    pub(crate) fn tree(self) -> Option<usize> {
        (self.0 & PRESENT != 0).then_some(self.0 as u32 as usize)
    }

    /// The reserved tree, or the one where the CPU is a guest.
    pub(crate) fn place(self) -> Option<usize> {
        (self.0 & (PRESENT | GUEST) != 0).then_some(self.0 as u32 as usize)
    }

    /// The number of huge frames in a tree: no child.
    pub(crate) fn child(self) -> usize {
        (self.0 >> 32) as u16 as usize
    }

    fn is_taking(self) -> bool {
        self.0 & TAKING != 0
    }
}

impl Local {
    pub(crate) fn clear(&self) {
        self.slot.clear();
        [&self.gets, &self.puts, &self.root, &self.huge, &self.last].into_iter().for_each(|word| word.write(0));
    }

    pub(crate) fn root(&self) -> Root {
        Root(self.root.read())
    }

    pub(crate) fn move_on(&self, before: Root, child: usize) {
        if before.child() != child && before.place().is_some() && !before.is_taking() {
            let now = Root(before.0 & !(0xffff << 32) | (child as u64) << 32);
            let _ = self.root.exchange(before.0, now.0);
        }
    }

    #[inline(always)]
    pub(crate) fn huge(&self) -> Option<usize> {
        (self.huge.load(Ordering::Relaxed) as usize).checked_sub(1)
    }

    #[inline(always)]
    pub(crate) fn point_at(&self, child: usize) {
        self.huge.store(child as u64 + 1, Ordering::Relaxed);
    }

    pub(crate) fn begin_taking(&self) -> Option<Root> {
        let root = self.root();
        let taken = !root.is_taking() && self.root.exchange(root.0, root.0 | TAKING).is_ok();
        taken.then_some(root)
    }

    pub(crate) fn end_taking(&self, root: Root) {
        self.root.write(root.0);
    }

    pub(crate) fn take_root(&self) -> Option<usize> {
        let root = self.begin_taking()?;
        self.end_taking(Root(0));
        root.tree()
    }

    /// The place of the last free, the consecutive frees to its tree, and the new record.
    #[inline]
    pub(crate) fn follows(&self, half: usize, halves_of_tree: usize) -> (Last, u32, u64) {
        let last = self.last.load(Ordering::Relaxed);
        let apart = (last ^ half as u64) & HALF;
        let run = if apart < halves_of_tree as u64 { (last >> 40) as u8 } else { 0 };
        let now = half as u64 | u64::from(run.saturating_add(1)) << 40;
        let place = match half as u64 ^ last & HALF {
            _ if run == 0 => Last::Elsewhere,
            0 => Last::Here,
            _ if (last & HALF).abs_diff(half as u64) == 1 => Last::Beside,
            _ => Last::Elsewhere,
        };
        (place, u32::from(run) + 1, now)
    }

    #[inline]
    pub(crate) fn set_last(&self, now: u64) {
        self.last.store(now, Ordering::Relaxed);
    }
}
