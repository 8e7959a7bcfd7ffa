//! Mappings with real bytes, and a machine whose CPUs the test chooses.
//!
//! Over the system's allocator, for Miri and loom. Growth in place is always refused; moving
//! copies.
//! **Unsafe.** Allocates mappings, copies between them, frees each with its last part.

use crate::fault::{Call, FaultPlan};
use crate::real::RealFloor;
use craton_base::{HUGEPAGE_SIZE, Machine, Mappings, Platform};
use std::alloc::{Layout, alloc_zeroed, dealloc};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

const PAGE: usize = 4096;

#[derive(Debug)]
struct Block {
    at: usize,
    layout: Layout,
    mapped: usize,
}

#[derive(Debug, Default)]
struct State {
    blocks: Mutex<BTreeMap<usize, Block>>,
    cpu: AtomicUsize,
    touch_ns: AtomicU64,
    shut: Mutex<BTreeSet<usize>>,
}

#[derive(Clone, Debug, Default)]
pub struct SimSystem {
    state: Arc<State>,
    faults: FaultPlan,
}

impl SimSystem {
    pub fn new(faults: FaultPlan) -> Self {
        Self { state: Arc::default(), faults }
    }

    pub fn set_cpu(&self, cpu: usize) {
        self.state.cpu.store(cpu, Ordering::Relaxed);
    }

    pub fn set_touch_ns(&self, ns: u64) {
        self.state.touch_ns.store(ns, Ordering::Relaxed);
    }

    pub fn shut_ranges(&self) -> BTreeSet<usize> {
        self.state.shut.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    pub fn mapped(&self) -> usize {
        self.blocks().values().map(|block| block.mapped).sum()
    }

    fn blocks(&self) -> std::sync::MutexGuard<'_, BTreeMap<usize, Block>> {
        self.state.blocks.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn new_block(&self, bytes: usize, align: usize) -> Option<usize> {
        // The allocator clears what it aligns itself.
        let align = align.max(PAGE);
        let layout = Layout::from_size_align(bytes.checked_add(align)?, 16).ok()?;
        // SAFETY: the layout is not empty.
        let at = unsafe { alloc_zeroed(layout) } as usize;
        let start = (at != 0).then_some(at)?.next_multiple_of(align);
        self.blocks().insert(start + bytes, Block { at, layout, mapped: bytes });
        Some(start)
    }

    /// # Safety
    /// Both ranges are mapped, the caller's, and apart.
    unsafe fn copy(from: usize, to: usize, bytes: usize) {
        // SAFETY: by the contract.
        unsafe { (to as *mut u8).copy_from_nonoverlapping(from as *const u8, bytes) };
    }
}

impl Mappings for SimSystem {
    fn map(&self, bytes: usize, align: usize) -> Option<usize> {
        if self.faults.refuses(Call::Map) { None } else { self.new_block(bytes, align) }
    }

    fn reserve(&self, bytes: usize) -> Option<usize> {
        self.map(bytes, HUGEPAGE_SIZE)
    }

    fn discard(&self, at: usize, bytes: usize) {
        // SAFETY: mapped, and the caller's.
        unsafe { (at as *mut u8).write_bytes(0, bytes) };
    }

    fn unmap(&self, at: usize, bytes: usize) {
        let mut blocks = self.blocks();
        let Some((&end, block)) = blocks.range_mut(at + bytes..).next() else {
            panic!("unmap({at:#x}, {bytes}): nothing is mapped there");
        };
        assert!(block.at <= at && bytes <= block.mapped, "unmap({at:#x}, {bytes}): more than is mapped");
        block.mapped -= bytes;
        if block.mapped == 0
            && let Some(block) = blocks.remove(&end)
        {
            // SAFETY: the allocator's, with this layout; its last part is given up.
            unsafe { dealloc(block.at as *mut u8, block.layout) };
        }
    }

    fn advise_huge(&self, _at: usize, _bytes: usize) {}

    fn refuse_huge(&self, _at: usize, _bytes: usize, _refuse: bool) {}

    fn grow(&self, at: usize, old_bytes: usize, new_bytes: usize, may_move: bool) -> Option<usize> {
        if !may_move || self.faults.refuses(Call::Grow) {
            return None;
        }
        let to = self.new_block(new_bytes, PAGE)?;
        // SAFETY: the old mapping is the caller's, the new one exclusive.
        unsafe { Self::copy(at, to, old_bytes) };
        self.unmap(at, old_bytes);
        Some(to)
    }

    fn replace(&self, at: usize, old_bytes: usize, to: usize, _new_bytes: usize) -> bool {
        if self.faults.refuses(Call::Move) {
            return false;
        }
        // SAFETY: both are the caller's; what lay at `to` may go.
        unsafe { Self::copy(at, to, old_bytes) };
        self.unmap(at, old_bytes);
        true
    }

    fn move_memory(&self, at: usize, bytes: usize, to: usize) -> bool {
        if self.faults.refuses(Call::Move) {
            return false;
        }
        // SAFETY: both are the caller's.
        unsafe {
            Self::copy(at, to, bytes);
            (at as *mut u8).write_bytes(0, bytes);
        }
        true
    }
}

impl Machine for SimSystem {
    fn cpu(&self) -> usize {
        self.state.cpu.load(Ordering::Relaxed)
    }

    fn page_size(&self) -> usize {
        PAGE
    }

    fn touch(&self, _at: usize) -> u64 {
        self.state.touch_ns.load(Ordering::Relaxed)
    }

    /// Touches are unseen.
    fn resident(&self, _at: usize, bytes: usize) -> usize {
        bytes
    }

    fn huge(&self, _at: usize, _bytes: usize) -> Option<usize> {
        Some(0)
    }

    fn shut(&self, at: usize, _bytes: usize, shut: bool) -> bool {
        let mut all = self.state.shut.lock().unwrap_or_else(PoisonError::into_inner);
        if shut { all.insert(at) } else { all.remove(&at) }
    }
}

impl Platform for RealFloor {
    type System = SimSystem;
}

#[cfg(test)]
mod tests;
