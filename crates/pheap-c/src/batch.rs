//! Several changes as one.
//!
//! **Unsafe.** Reads an array of C.

use crate::call::on;
use crate::code::Failure;
use crate::handle::Pheap;
use craton_persistent::HeapError;
use craton_persistent::raw::{Change, Reserved};
use std::ffi::{c_int, c_void};

#[repr(C)]
#[derive(Clone, Copy)]
pub struct CratonPheapChange {
    kind: c_int,
    slot: *mut u64,
    object: *mut c_void,
    value: u64,
}

const PUBLISH: c_int = 1;
const FREE: c_int = 2;
const SET: c_int = 3;

fn objects<'a>(heap: &'a Pheap, changes: &[CratonPheapChange]) -> (Vec<Reserved<'a>>, Result<(), Failure>) {
    let (mut objects, mut result) = (Vec::new(), Ok(()));
    for (i, change) in changes.iter().enumerate() {
        let checked = match change.kind {
            PUBLISH => heap.take_reserved(change.object).map(|object| objects.push(object)),
            FREE | SET => heap.check_value(change.value).map(drop),
            _ => Err(Failure::Argument("the kind of a change", "is none of CRATON_PHEAP_…")),
        };
        let is_twice = |other: &CratonPheapChange| {
            other.slot == change.slot || change.kind == PUBLISH && other.object == change.object
        };
        let distinct = heap.slot(change.slot).and_then(|slot| match changes[..i].iter().any(is_twice) {
            true => Err(HeapError::Twice { at: slot.0 }.into()),
            false => Ok(()),
        });
        // The first error is reported; later changes' objects are taken all the same.
        result = result.and(distinct).and(checked);
    }
    (objects, result)
}

/// # Safety
/// `heap` is null or open; `changes` points at `count` changes, whose freed objects are no longer
/// used.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn craton_pheap_batch(
    heap: *const Pheap,
    changes: *const CratonPheapChange,
    count: usize,
) -> c_int {
    // SAFETY: by the contract.
    unsafe {
        on("craton_pheap_batch", heap, |heap| {
            if count == 0 {
                return Ok(());
            }
            if changes.is_null() {
                return Err(Failure::Argument("the changes", "are null"));
            }
            if count > isize::MAX as usize / size_of::<CratonPheapChange>() {
                return Err(HeapError::TooMany { parts: count, most: heap.raw.changes_most() }.into());
            }
            commit(heap, std::slice::from_raw_parts(changes, count))
        })
    }
}

fn commit(heap: &Pheap, changes: &[CratonPheapChange]) -> Result<(), Failure> {
    let (objects, checked) = objects(heap, changes);
    let (count, most) = (changes.len(), heap.raw.changes_most());
    if count > most {
        return Err(HeapError::TooMany { parts: count, most }.into());
    }
    checked?;
    let mut objects = objects.into_iter();
    let mut parts = Vec::with_capacity(count);
    for change in changes {
        let (slot, value) = (heap.slot(change.slot)?, change.value);
        parts.push(match change.kind {
            FREE => Change::Free { slot, value },
            SET => Change::Set { slot, value },
            _ => {
                let Some(object) = objects.next() else { continue };
                heap.raw.flush(object.at().0, object.size())?;
                Change::Publish { slot, object }
            }
        });
    }
    Ok(heap.raw.commit(parts)?)
}
