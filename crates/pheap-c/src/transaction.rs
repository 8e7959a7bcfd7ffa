//! Ranges and objects that change together.
//!
//! **Unsafe.** Takes pointers from C, and keeps a transaction without its heap's lifetime.

use crate::call::on;
use crate::code::Failure;
use crate::handle::Pheap;
use crate::object::tell;
use craton_persistent::raw::RawTx;
use std::ffi::{c_int, c_void};
use std::sync::atomic::Ordering;

pub struct PheapTx {
    heap: *const Pheap,
    tx: RawTx<'static>,
}

/// # Safety
/// `heap` is null or open, `tx` is null or writable.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn craton_pheap_begin(heap: *const Pheap, tx: *mut *mut PheapTx) -> c_int {
    // SAFETY: by the contract.
    unsafe {
        on("craton_pheap_begin", heap, |open| {
            if tx.is_null() {
                return Err(Failure::Argument("the place for the transaction", "is null"));
            }
            let begun = open.raw.begin()?;
            // The heap stays in its place, and open while transactions are.
            let begun = std::mem::transmute::<RawTx<'_>, RawTx<'static>>(begun);
            open.transactions.fetch_add(1, Ordering::Relaxed);
            tx.write(Box::into_raw(Box::new(PheapTx { heap, tx: begun })));
            Ok(())
        })
    }
}

/// # Safety
/// As `craton_pheap_tx_snapshot`.
unsafe fn within(
    call: &str,
    tx: *mut PheapTx,
    f: impl FnOnce(&Pheap, &mut RawTx<'static>) -> Result<(), Failure>,
) -> c_int {
    // SAFETY: by the contract.
    let Some(PheapTx { heap, tx }) = (unsafe { tx.as_mut() }) else {
        return crate::call::run(call, "", || Err(Failure::Argument("the transaction", "is null")));
    };
    // SAFETY: a transaction's heap is open.
    unsafe { on(call, *heap, |heap| f(heap, tx)) }
}

/// # Safety
/// `tx` is null or open; no other thread uses it.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn craton_pheap_tx_snapshot(tx: *mut PheapTx, from: *mut c_void, bytes: usize) -> c_int {
    // SAFETY: by the contract.
    unsafe { within("craton_pheap_tx_snapshot", tx, |heap, tx| Ok(tx.snapshot(heap.offset(from)?, bytes as u64)?)) }
}

/// # Safety
/// As `craton_pheap_tx_snapshot`; `object` is null or writable.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn craton_pheap_tx_alloc(
    tx: *mut PheapTx,
    slot: *mut u64,
    size: usize,
    object: *mut *mut c_void,
) -> c_int {
    // SAFETY: by the contract.
    unsafe {
        within("craton_pheap_tx_alloc", tx, |heap, tx| {
            let at = tx.alloc(heap.slot(slot)?, size as u64)?;
            tell(heap, at.0, object);
            Ok(())
        })
    }
}

/// # Safety
/// As `craton_pheap_tx_snapshot`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn craton_pheap_tx_publish(tx: *mut PheapTx, slot: *mut u64, object: *mut c_void) -> c_int {
    // SAFETY: by the contract.
    unsafe {
        within("craton_pheap_tx_publish", tx, |heap, tx| {
            let object = heap.take_reserved(object)?;
            Ok(tx.publish(heap.slot(slot)?, object)?)
        })
    }
}

/// # Safety
/// As `craton_pheap_tx_snapshot`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn craton_pheap_tx_free(tx: *mut PheapTx, slot: *mut u64, value: u64) -> c_int {
    // SAFETY: by the contract.
    unsafe {
        within("craton_pheap_tx_free", tx, |heap, tx| {
            tx.free(heap.slot(slot)?, heap.check_value(value)?);
            Ok(())
        })
    }
}

/// # Safety
/// As `craton_pheap_tx_snapshot`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn craton_pheap_tx_set(tx: *mut PheapTx, slot: *mut u64, value: u64) -> c_int {
    // SAFETY: by the contract.
    unsafe {
        within("craton_pheap_tx_set", tx, |heap, tx| {
            tx.set(heap.slot(slot)?, heap.check_value(value)?);
            Ok(())
        })
    }
}

/// # Safety
/// As `craton_pheap_commit`.
unsafe fn end(call: &str, tx: *mut PheapTx, f: impl FnOnce(&Pheap, RawTx<'static>) -> Result<(), Failure>) -> c_int {
    if tx.is_null() {
        return crate::call::run(call, "", || Err(Failure::Argument("the transaction", "is null")));
    }
    // SAFETY: made by `Box::into_raw`.
    let PheapTx { heap, tx } = *unsafe { Box::from_raw(tx) };
    // SAFETY: a transaction's heap is open.
    unsafe {
        on(call, heap, |heap| {
            // Before `f`, which may panic.
            heap.transactions.fetch_sub(1, Ordering::Relaxed);
            f(heap, tx)
        })
    }
}

/// # Safety
/// `tx` is null or open, and no longer used.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn craton_pheap_commit(tx: *mut PheapTx) -> c_int {
    // SAFETY: by the contract.
    unsafe { end("craton_pheap_commit", tx, |_, tx| Ok(tx.commit()?)) }
}

/// # Safety
/// As `craton_pheap_commit`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn craton_pheap_abort(tx: *mut PheapTx) -> c_int {
    // SAFETY: by the contract.
    unsafe {
        end("craton_pheap_abort", tx, |heap, tx| {
            drop(tx);
            Ok(heap.raw.check_process()?)
        })
    }
}
