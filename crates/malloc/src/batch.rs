//! Many objects in one call.
//!
//! **What.** What the thread's cache holds goes out in one loop; the rest comes from the slabs under one lock, past the cache. On the way
//! back objects beyond what the cache takes go to the slabs in runs of one class.
//!
//! **Cost.** For an object of a class: the fast path without a call and without the search for class and cache.
//!
//! **Failure.** A shorter batch, with `errno` `ENOMEM`.
//!
//! **Unsafe.** Writes to the caller's array, and takes objects from him.

use crate::debug;
use crate::front;
use crate::start::set_up;
use crate::statics::HEAP;
use crate::thread::{nested, tls};
use craton_heap::Misuse;
use craton_heap::size_class::{self, MAX_CLASSED};
use craton_heap::thread_cache::ThreadCache;
use craton_os::process;
use craton_slab::Chain;

/// Allocates up to `n` objects of `size` bytes, aligned to 16, and writes their addresses to `out`; returns how many there are.
///
/// # Safety
/// `out` has room for `n` pointers.
pub unsafe fn alloc(size: usize, n: usize, out: *mut *mut u8) -> usize {
    let mut done = 0;
    if size > MAX_CLASSED {
        while done < n {
            let object = front::malloc(size);
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
        // SAFETY: the pointer is this thread's cache or the one that nobody uses; `out` by the contract.
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
    // The first object is asked for as any other: the thread gets its cache, and what the slow path does by the way is done.
    let first = front::malloc(size);
    if first.is_null() || !set_up() {
        process::set_errno(process::ENOMEM);
        return done;
    }
    // SAFETY: by the contract; `done` is below `n`.
    unsafe { out.add(done).write(first) };
    done += 1;
    while done < n {
        if nested::is_nested() || debug::checks_of(size) != 0 {
            let object = front::malloc(size);
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
        while let Some(object) = chain.pop() {
            // SAFETY: as above; the chain has no more than what is missing.
            unsafe { out.add(done).write(HEAP.wipe_mark(object)) };
            done += 1;
        }
    }
    process::set_errno(saved);
    n
}

/// The shard that the calling thread takes from.
fn home() -> usize {
    // SAFETY: it is this thread's cache.
    tls::own().map_or_else(|| HEAP.home(process::cpu()), |cache| unsafe { (*cache).home() })
}

/// Frees objects; null pointers among them are skipped. `refused` is told of each pointer that could not be freed, and why.
///
/// # Safety
/// Any pointers may be given; those that are objects the caller gives up.
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

/// Gives the objects of one class that the pointers begin with to the slabs at once; returns how many there are.
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
        // SAFETY: the pointer is this thread's cache or the one that nobody uses. An object that is marked is not recognised a second time.
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
        // SAFETY: `recognise` has shown that the objects are of this class; the caller gives them up.
        nested::within(|| unsafe { HEAP.give(class, chain) });
        process::set_errno(saved);
    }
    run
}

#[cfg(test)]
mod tests;
