//! An open heap.
//!
//! **Unsafe.** Takes the heap's address from C, and keeps objects without their heap's lifetime.

use crate::code::Failure;
use craton_persistent::Report;
use craton_persistent::raw::{RawHeap, Reserved, Slot};
use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

const OPEN: u64 = u64::from_le_bytes(*b"PHEAPOPN");

pub struct Pheap {
    mark: AtomicU64,
    /// The program holds only their addresses. Dropped before their heap.
    reserved: Mutex<HashMap<u64, Reserved<'static>>>,
    pub raw: RawHeap,
    pub report: Report,
    path: String,
    pub transactions: AtomicUsize,
    is_unsound: AtomicBool,
}

impl Pheap {
    pub fn new(raw: RawHeap, report: Report, path: String) -> Self {
        Self {
            mark: AtomicU64::new(OPEN),
            raw,
            report,
            path,
            reserved: Mutex::default(),
            transactions: AtomicUsize::new(0),
            is_unsound: AtomicBool::new(false),
        }
    }

    /// # Safety
    /// `heap` is null or open.
    pub unsafe fn of<'a>(heap: *const Self) -> Option<&'a Self> {
        // SAFETY: by the contract; shared, for its fields change by atomics and locks.
        let heap = unsafe { heap.as_ref() }?;
        (heap.mark.load(Ordering::Relaxed) == OPEN).then_some(heap)
    }

    /// Before the handle is freed: a second close often still finds this.
    pub fn mark_closed(&self) {
        self.mark.store(0, Ordering::Relaxed);
    }

    pub fn path(&self) -> &str {
        &self.path
    }

    pub fn mark_unsound(&self) {
        self.is_unsound.store(true, Ordering::Relaxed);
    }

    pub fn is_unsound(&self) -> bool {
        self.is_unsound.load(Ordering::Relaxed)
    }

    pub fn check_sound(&self) -> Result<(), Failure> {
        match self.is_unsound() {
            true => Err(Failure::Panicked("in an earlier call".to_owned())),
            false => Ok(()),
        }
    }

    pub fn offset<T>(&self, pointer: *const T) -> Result<u64, Failure> {
        let offset = (pointer as usize).wrapping_sub(self.raw.base()) as u64;
        match !pointer.is_null() && offset < self.raw.len() {
            true => Ok(offset),
            false => Err(Failure::Foreign(pointer as usize)),
        }
    }

    pub fn slot(&self, slot: *const u64) -> Result<Slot, Failure> {
        match slot.is_null() {
            true => Err(Failure::Argument("the slot", "is null")),
            false => Ok(Slot(self.offset(slot)?)),
        }
    }

    pub fn pointer<T>(&self, offset: u64) -> *mut T {
        // The mapping's address comes from the system, and is known to the program.
        std::ptr::with_exposed_provenance_mut(self.raw.base() + offset as usize)
    }

    pub fn check_value(&self, value: u64) -> Result<u64, Failure> {
        match value < self.raw.len() {
            true => Ok(value),
            false => Err(Failure::Value(value)),
        }
    }

    /// # Safety
    /// The heap stays in its place until it has no reserved objects.
    pub unsafe fn keep(&self, object: Reserved<'_>) {
        // SAFETY: by the contract the heap outlives the object.
        let object = unsafe { std::mem::transmute::<Reserved<'_>, Reserved<'static>>(object) };
        self.reserved().insert(object.at().0, object);
    }

    pub fn reserved(&self) -> MutexGuard<'_, HashMap<u64, Reserved<'static>>> {
        self.reserved.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Given up by the program: dropped, it is free.
    pub fn take_reserved<T>(&self, object: *const T) -> Result<Reserved<'_>, Failure> {
        if object.is_null() {
            return Err(Failure::Argument("the object", "is null"));
        }
        let missing = Failure::NotReserved(object as usize);
        let offset = self.offset(object)?;
        self.reserved().remove(&offset).ok_or(missing)
    }
}
