//! A heap's contents, and the repairs of its opening.
//!
//! **Unsafe.** Writes to structs of C.

use crate::call::on;
use crate::code::Failure;
use crate::handle::Pheap;
use std::ffi::c_int;

#[repr(C)]
pub struct CratonPheapReport {
    clean: u64,
    generation: u64,
    lines: u64,
    torn: u64,
    slots: u64,
    undone: u64,
    collected: u64,
    small: u64,
    large: u64,
}

#[repr(C)]
pub struct CratonPheapStats {
    bytes: u64,
    slabs: u64,
    small: u64,
    small_bytes: u64,
    large: u64,
    large_bytes: u64,
    reserved: u64,
    transactions: u64,
}

/// No version's struct is longer: a larger `size` was never set.
const MOST: usize = 4096;

/// Fields that only a newer program has become 0.
///
/// # Safety
/// `into` is null, or has `size` bytes.
unsafe fn write<T>(into: *mut T, size: usize, value: T) -> Result<(), Failure> {
    if into.is_null() {
        return Err(Failure::Argument("the place for the struct", "is null"));
    }
    if !(size_of::<T>()..=MOST).contains(&size) {
        return Err(Failure::Argument("the size", "is not that of the struct"));
    }
    // SAFETY: by the contract; at least as long as ours.
    unsafe {
        into.cast::<u8>().add(size_of::<T>()).write_bytes(0, size - size_of::<T>());
        into.write(value);
    }
    Ok(())
}

/// # Safety
/// `heap` is null or open, `into` is null or has `size` bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn craton_pheap_report(heap: *const Pheap, into: *mut CratonPheapReport, size: usize) -> c_int {
    // SAFETY: by the contract.
    unsafe {
        on("craton_pheap_report", heap, |heap| {
            let it = &heap.report;
            let report = CratonPheapReport {
                clean: u64::from(it.clean),
                generation: it.generation,
                lines: it.lines,
                torn: it.torn,
                slots: it.slots,
                undone: it.undone,
                collected: it.collected,
                small: it.small,
                large: it.large,
            };
            write(into, size, report)
        })
    }
}

/// # Safety
/// As `craton_pheap_report`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn craton_pheap_stats(heap: *const Pheap, into: *mut CratonPheapStats, size: usize) -> c_int {
    // SAFETY: by the contract.
    unsafe {
        on("craton_pheap_stats", heap, |heap| {
            let it = heap.raw.stats();
            let stats = CratonPheapStats {
                bytes: it.bytes,
                slabs: it.slabs,
                small: it.small,
                small_bytes: it.small_bytes,
                large: it.large,
                large_bytes: it.large_bytes,
                reserved: heap.reserved().len() as u64,
                transactions: heap.transactions.load(std::sync::atomic::Ordering::Relaxed) as u64,
            };
            write(into, size, stats)
        })
    }
}

/// # Safety
/// `heap` is null or open.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn craton_pheap_check(heap: *const Pheap) -> c_int {
    // SAFETY: by the contract.
    unsafe { on("craton_pheap_check", heap, |heap| Ok(heap.raw.check()?)) }
}
