//! free beyond the fast path.
//!
//! **What.** The fast path takes an object if its page's mark is its class and the cache has room.
//! Other pointers meet these questions, each of which may end the call:
//!
//! | # | question                                              | why at this place |
//! |---|-------------------------------------------------------|-------------------|
//! | 0 | on a morphed slab or behind a sample, and room in the thread's cache? | the commonest ones: no lock, 40 to 90 instructions more than the fast path |
//! | 1 | null, or no heap yet?                                 | nothing below works without a heap |
//! | 2 | debugging kit: a buffer of its, or does it check all? | its buffers look like large objects; it must see each free before that is done |
//! | 3 | perhaps a sample of the profile? | before another object may get the address; a handler leaves that to a later free |
//! | 4 | large object?                                         | the commonest one here, with a cache without locks; not in a handler, which may have interrupted that cache |
//! | 5 | thread on per-CPU caches?                             | no lock; a handler may do it, too |
//! | 6 | in a handler?                                         | from here on locks are taken: the object waits instead |
//! | 7 | anything else, and bad pointers                       | [`Heap::take_back`](craton_heap::heap::Heap::take_back) finds what it is, under locks |
//!
//! **Unsafe.** Takes objects from callers.

use super::apart::free_in_handler;
use crate::statics::{HEAP, HEAPS, PROCESSOR_CACHES, READY};
use crate::thread::life::{cache_for, register_threads, server};
use crate::thread::mode::Server;
use crate::thread::nested;
use crate::thread::tls;
use crate::{debug, govern, sampling};
use core::sync::atomic::Ordering::Relaxed;
use craton_base::PageRange;
use craton_heap::Misuse;
use craton_heap::thread_cache::ThreadCache;
use craton_os::process::{errno, set_errno};
use craton_os::rseq::Rseq;

/// Frees an object; null is ignored.
///
/// # Safety
/// Any pointer is allowed; an object of ours is given up.
#[inline]
pub unsafe fn free(pointer: *mut u8) -> Result<(), Misuse> {
    // SAFETY: by the contract.
    unsafe { if free_by_turn(pointer) || free_on_morphed(pointer) { Ok(()) } else { free_otherwise(pointer) } }
}

/// Frees an object into a hardened thread cache whose newest objects are as many as may wait. It is
/// the commonest slow free there: some 90 instructions, and the turn.
///
/// # Safety
/// As [`free`], unless the answer is `false`.
#[inline(always)]
pub unsafe fn free_by_turn(pointer: *mut u8) -> bool {
    // SAFETY: by the contract.
    unsafe { free_by_turn_if(pointer, |_| true) }
}

/// As [`free_by_turn`], if `is_right` accepts the class.
///
/// # Safety
/// As [`free_by_turn`].
#[inline(always)]
pub(crate) unsafe fn free_by_turn_if(pointer: *mut u8, is_right: impl Fn(usize) -> bool) -> bool {
    let cache = tls::get();
    // SAFETY: it is this thread's cache or one of zeros, and by the contract.
    unsafe {
        if !(*cache).is_hardened() || tls::is_inside() {
            return false;
        }
        let turned = ThreadCache::recognise(cache, pointer)
            .filter(|(class, _)| is_right(*class) && (*cache).is_turn_due(*class));
        turned.is_some_and(|(class, mark)| {
            turn_over(cache, class);
            ThreadCache::push_marked(cache, class, pointer, mark)
        })
    }
}

/// # Safety
/// The cache is this thread's, and hardened.
#[inline(never)]
unsafe fn turn_over(cache: *mut ThreadCache, class: usize) {
    let inside = nested::enter();
    // SAFETY: by the contract.
    unsafe {
        if HEAP.turn_over(cache, class) {
            let saved = errno();
            HEAP.end_turn(cache, class);
            set_errno(saved);
        }
    }
    drop(inside);
    govern::run_chores_in_free();
}

/// Frees an object into the thread cache if its slab has morphed to its class, or it lies behind a
/// sample, and there is room. As the fast path, in a signal handler too.
///
/// # Safety
/// As [`free`], unless the answer is `false`.
#[inline(always)]
pub unsafe fn free_on_morphed(pointer: *mut u8) -> bool {
    // SAFETY: by the contract.
    unsafe { free_on_morphed_if(pointer, |_| true) }
}

/// As [`free_on_morphed`], if `is_right` accepts the class.
///
/// # Safety
/// As [`free_on_morphed`].
#[inline(always)]
pub(crate) unsafe fn free_on_morphed_if(pointer: *mut u8, is_right: impl Fn(usize) -> bool) -> bool {
    let cache = tls::get();
    // SAFETY: it is this thread's cache or one without room; the object is one of the class, and
    // given up.
    unsafe {
        let pages = ThreadCache::pages(cache);
        let found = HEAP.recognise_morphed(pointer, pages).or_else(|| HEAP.recognise_behind_sample(pointer, pages));
        let found = found.filter(|(class, _)| is_right(*class));
        found.is_some_and(|(class, mark)| ThreadCache::push_marked(cache, class, pointer, mark))
    }
}

/// Frees an object that [`free_on_morphed`] did not take.
///
/// # Safety
/// As [`free`].
#[inline(never)]
pub unsafe fn free_otherwise(pointer: *mut u8) -> Result<(), Misuse> {
    // The numbers are the table's.
    if pointer.is_null() {
        return Ok(()); // 1
    }
    if !READY.load(Relaxed) {
        return Err(Misuse::Foreign); // 1
    }
    // SAFETY: by the contract.
    if let Some(freed) = unsafe { debug::free(pointer) } {
        return freed; // 2
    }
    if sampling::may_be_sample(pointer) {
        if nested::is_nested() {
            // SAFETY: by the contract.
            unsafe { free_in_handler(pointer) };
            return Ok(());
        }
        sampling::end_if_sample(pointer); // 3
    }
    if !nested::is_nested()
        && let Some(first) = HEAP.large_at(pointer as usize)
    {
        if let Some(span) = HEAP.give_large(first) {
            give_span(span);
        }
        return Ok(()); // 4
    }
    let cache = match server() {
        // SAFETY: by the contract.
        Server::PerCpu(rseq) if unsafe { free_per_cpu(rseq, pointer) } => return Ok(()), // 5
        Server::PerCpu(_) if !nested::is_nested() => None,
        Server::PerCpu(_) | Server::Apart => {
            // SAFETY: by the contract.
            unsafe { free_in_handler(pointer) };
            return Ok(()); // 6
        }
        other => cache_for(other),
    };
    let saved = errno();
    // SAFETY: it is this thread's cache, and by the contract.
    let result = nested::within(|| unsafe {
        match HEAP.take_back(cache, pointer)? {
            // `take_back` has classified the object.
            Some(object) => HEAPS.over(&HEAP).free(object, pointer),
            None => Ok(()),
        }
    }); // 7
    govern::run_chores_in_free();
    set_errno(saved);
    if result == Err(Misuse::Foreign) && nested::size_of(pointer).is_some() { Ok(()) } else { result }
}

/// Frees the span of a large object that no cache keeps.
#[cold]
fn give_span(span: PageRange) {
    let saved = errno();
    nested::within(|| HEAP.give_span(span));
    govern::run_chores_in_free();
    set_errno(saved);
}

/// Frees an object into this CPU's cache; `false` if it cannot go there.
///
/// # Safety
/// As [`free`].
unsafe fn free_per_cpu(rseq: &Rseq, pointer: *mut u8) -> bool {
    let Some(class) = HEAP.recognise(pointer) else { return false };
    // SAFETY: the object is a live one of the class, and given up.
    unsafe {
        let pointer = HEAP.mark_given(class, pointer);
        if pointer.is_null() {
            return true;
        }
        if PROCESSOR_CACHES.push(rseq, class, pointer) {
            govern::read_mailbox_in_free();
        } else {
            if nested::is_nested() {
                free_in_handler(HEAP.wipe_mark(class, pointer));
                return true;
            }
            let saved = errno();
            register_threads();
            nested::within(|| PROCESSOR_CACHES.overflow(&HEAP, rseq, class, pointer));
            govern::run_chores_in_free();
            set_errno(saved);
        }
    }
    true
}
