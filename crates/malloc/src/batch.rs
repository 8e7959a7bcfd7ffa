//! Allocation and free of many objects in one call: the slabs serve what the thread cache cannot,
//! under one lock.
//!
//! **Unsafe.** Writes to the caller's array; takes its objects.

use crate::debug;
use crate::front::{self, family::TRUSTED};
use crate::start::set_up;
use crate::statics::HEAP;
use crate::thread::{nested, tls};
use craton_heap::Misuse;
use craton_heap::size_class::{self, MAX_CLASSED};
use craton_heap::thread_cache::ThreadCache;
use craton_os::process;
use craton_slab::Chain;

/// Returns the number of objects, aligned to 16; below `n` with `errno` `ENOMEM`.
///
/// # Safety
/// `out` has room for `n` pointers.
pub unsafe fn alloc(size: usize, n: usize, out: *mut *mut u8) -> usize {
    let mut done = 0;
    if size > MAX_CLASSED {
        while done < n {
            let object = front::malloc_by::<{ TRUSTED }>(size);
            if object.is_null() {
                return done;
            }
            // SAFETY: by the contract.
            unsafe { out.add(done).write(object) };
            done += 1;
        }
        return done;
    }
    let class = size_class::class_of(size);
    let cache = tls::get();
    while done < n {
        // SAFETY: as in `front::malloc`; `out` by the contract.
        unsafe {
            let object = ThreadCache::pop(cache, class);
            if object.is_null() {
                break;
            }
            out.add(done).write(object);
        }
        done += 1;
    }
    if done == n {
        return n;
    }
    let saved = process::errno();
    // malloc sets up the thread's cache and runs chores.
    let first = front::malloc_by::<{ TRUSTED }>(size);
    if first.is_null() || !set_up() {
        process::set_errno(process::ENOMEM);
        return done;
    }
    // SAFETY: by the contract; `done` is below `n`.
    unsafe { out.add(done).write(first) };
    done += 1;
    while done < n {
        if nested::is_nested() || debug::checks_of(size) != 0 {
            let object = front::malloc_by::<{ TRUSTED }>(size);
            if object.is_null() {
                return done;
            }
            // SAFETY: as above.
            unsafe { out.add(done).write(object) };
            done += 1;
            continue;
        }
        let want = u32::try_from(n - done).unwrap_or(u32::MAX);
        let mut chain = nested::within(|| HEAP.take(home(), class, want));
        if chain.is_empty() {
            process::set_errno(process::ENOMEM);
            return done;
        }
        while !chain.is_empty() {
            // SAFETY: as above; the chain has no more than is missing.
            unsafe { out.add(done).write(HEAP.pop_free(class, &mut chain)) };
            done += 1;
        }
    }
    process::set_errno(saved);
    n
}

fn home() -> usize {
    // SAFETY: the calling thread's cache.
    tls::own().map_or_else(|| HEAP.home(process::cpu()), |cache| unsafe { (*cache).home() })
}

/// Skips nulls; calls `refused` with each bad pointer.
///
/// # Safety
/// Objects are given up.
pub unsafe fn free(pointers: &[*mut u8], mut refused: impl FnMut(*mut u8, Misuse)) {
    let mut at = 0;
    while let Some(&pointer) = pointers.get(at) {
        // SAFETY: by the contract.
        if unsafe { front::try_free(pointer) } {
            at += 1;
            continue;
        }
        // SAFETY: by the contract.
        let run = unsafe { free_run(&pointers[at..]) };
        if run == 0 {
            // SAFETY: by the contract.
            if let Err(misuse) = unsafe { front::free(pointer) } {
                refused(pointer, misuse);
            }
        }
        at += run.max(1);
    }
}

/// Flushes leading objects of one class to the slabs; returns their number.
///
/// # Safety
/// As [`free`].
unsafe fn free_run(pointers: &[*mut u8]) -> usize {
    let (mut chain, mut class) = (Chain::EMPTY, 0);
    let mut run = 0;
    if nested::is_nested() {
        return 0;
    }
    for pointer in pointers {
        // SAFETY: as in `front::malloc`. Marked objects are not recognised.
        unsafe {
            match ThreadCache::recognise(tls::get(), *pointer) {
                Some((c, mark)) if run == 0 || c == class => {
                    class = c;
                    pointer.cast::<usize>().add(1).write(mark);
                    chain.push(*pointer);
                    run += 1;
                }
                _ => break,
            }
        }
    }
    if run > 0 {
        let saved = process::errno();
        // SAFETY: objects of this class, given up.
        nested::within(|| unsafe { HEAP.give(class, chain) });
        process::set_errno(saved);
    }
    run
}

#[cfg(test)]
mod tests;
