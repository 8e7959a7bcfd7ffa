//! The debugging kit: checks of what an unmodified program does with its objects.
//!
//! **What.** Under the option `debug=CHECKS[:TARGETS]` objects of the classes and caches that it names become *buffers* of the kit: each has a
//! record apart from it, and, by the checks, bytes around it that nobody may write (`redzone`), patterns while nobody has written it or nobody
//! may (`poison`), pages of its own (`guard`) that are closed when it is freed (`unmap`), a note of who took it and gave it back, when and from
//! where (`audit`), a look at every address that is freed (`verify`), and a search at the exit for those that nothing leads to (`leak`).
//! Freed buffers wait before their memory serves again. Under `guard_sample=N` one object in so many is a buffer on pages of its own.
//!
//! **From.** Bonwick94 §6. Where we differ: it is turned on in a program that runs, for one class if need be; redzones stand at both ends of
//! exactly what was asked for; a buffer's last two owners are kept with it, however far the log has gone on; leaks are searched for
//! by what leads to them. The sampled form is that of GWP-ASan (arXiv 2311.09394).
//!
//! **State.** Targets' checks ([`setting`]) · records by address ([`table`]) · stacks, each once ([`stacks`]) · the log · pages of buffers
//! ([`guard`]) · freed buffers that wait ([`quarantine`]).
//!
//! **Invariants.** D1 a buffer's pointer is never the start of an object of the heap, so that no fast path takes it; D2 a record is `Live` from
//! before the pointer is handed out until it comes back; D3 lists of a class that is checked are empty and have no room, so that its requests
//! come here.
//!
//! **Threads.** Records lie in parts, each under a lock; of two that free one buffer one is told that it is free already. Order: quarantine, pages,
//! records; under a lock of records none is taken.
//!
//! **Failure.** Without memory for a record, or for pages, a buffer has fewer checks, or the request is refused. What the program did wrong is
//! told in a report on standard error, and the process ends by `SIGABRT`.
//!
//! **Cost.** Nothing when off: the fast paths do not know of it. All of it on: two system calls and two stacks for an object.
//!
//! **Unsafe.** Writes around and into memory that it hands out.

mod area;
mod fault;
mod guard;
mod kit;
mod leaks;
mod quarantine;
mod report;
pub(crate) mod sample;
pub(crate) mod setting;
pub(crate) mod shape;
mod stacks;
mod table;

pub(crate) use kit::{
    MALLOC, Target, alloc_target, check_claim, free_target, is_buffer_of, reported_misuse, size_of, tell_live,
};
pub(crate) use quarantine::BYTES as QUARANTINE_BYTES;
pub(crate) use sample::bound;
use sample::is_due;
pub(crate) use setting::checks_of_cache;

use crate::cpu_cache::thread::ThreadCache;
use crate::front::existing_cache;
use crate::route::Misuse;
use crate::size_class::{CLASSES, MAX_CLASSED, class_of};
use crate::statics::HEAP;
use crate::{background, limits, nested};
use core::ptr::null_mut;
use core::sync::atomic::{AtomicBool, Ordering::Relaxed};
use craton_os::process;

/// Whether there are, or may be, buffers: from when the kit was first turned on.
static IN_USE: AtomicBool = AtomicBool::new(false);

/// Whether the process is a copy of another that had buffers.
static IS_COPY: AtomicBool = AtomicBool::new(false);

/// Whether pointers may be buffers of the kit.
#[inline]
pub(crate) fn in_use() -> bool {
    IN_USE.load(Relaxed)
}

/// What is checked of an object of so many bytes; 0 for nothing.
#[inline]
pub(crate) fn checks_of(size: usize) -> u8 {
    if !in_use() {
        return 0;
    }
    setting::checks_of_class(if size <= MAX_CLASSED { class_of(size) } else { 0 })
}

/// A buffer for a request that came past its thread's cache, if it is to be one; `None` if not.
#[inline]
pub(crate) fn alloc(size: usize, align: usize) -> Option<*mut u8> {
    if !in_use() || nested::is_nested() {
        return None;
    }
    alloc_checked(size, align)
}

#[cold]
fn alloc_checked(size: usize, align: usize) -> Option<*mut u8> {
    heed();
    let checks = checks_of(size);
    let class = if size <= MAX_CLASSED { class_of(size) } else { 0 };
    if checks == 0 && !is_due(class) {
        return None;
    }
    let saved = process::errno();
    let take = || {
        if checks == 0 { sample::alloc(class, size, align) } else { kit::alloc(size, align, MALLOC, checks) }
    };
    let mut buffer = nested::within(take);
    if buffer.is_null() {
        if checks == 0 {
            return None;
        }
        if nested::within(limits::make_room) {
            buffer = nested::within(take);
        }
        if buffer.is_null() {
            limits::count_refusal(size);
        }
    }
    poke();
    Some(crate::front::with_errno(buffer, saved))
}

/// As [`background::poke`], which may ask for memory itself: that request does not come here again.
fn poke() {
    static POKES: AtomicBool = AtomicBool::new(false);
    if !POKES.swap(true, Relaxed) {
        background::poke();
        POKES.store(false, Relaxed);
    }
}

/// Takes a buffer back, if the pointer is one; `None` if not.
///
/// # Safety
/// Any pointer may be given; if it is a buffer the caller gives it up.
#[inline]
pub(crate) unsafe fn free(pointer: *mut u8) -> Option<Result<(), Misuse>> {
    if !in_use() || nested::is_nested() || !may_be_buffer(pointer) {
        return None;
    }
    // SAFETY: by the contract.
    unsafe { free_checked(pointer) }
}

/// Whether a pointer may be a buffer, by where it lies: samples lie on no page of the heap.
fn may_be_buffer(pointer: *mut u8) -> bool {
    setting::ever_checks() || HEAP.page_of(pointer as usize).is_none()
}

/// Has the calling thread's cache give up what it holds, if the option has changed since it last did.
fn heed() {
    if let Some(cache) = existing_cache() {
        // SAFETY: it is this thread's cache.
        unsafe { limits::heed(cache) };
    }
}

/// # Safety
/// As [`free`].
#[cold]
unsafe fn free_checked(pointer: *mut u8) -> Option<Result<(), Misuse>> {
    heed();
    let saved = process::errno();
    // SAFETY: by the contract.
    let freed = nested::within(|| unsafe { kit::free(pointer, MALLOC) });
    process::set_errno(saved);
    freed.then_some(Ok(()))
}

/// Changes a buffer's size by moving it, if the pointer is one; `None` if not.
///
/// # Safety
/// As [`crate::front::realloc`].
#[cold]
pub(crate) unsafe fn realloc(pointer: *mut u8, size: usize) -> Option<*mut u8> {
    if !in_use() || nested::is_nested() || !may_be_buffer(pointer) {
        return None;
    }
    let old = nested::within(|| kit::size_for("realloc", pointer))?;
    let new = if size > isize::MAX as usize { null_mut() } else { crate::front::malloc(size) };
    if new.is_null() {
        return Some(crate::front::with_errno(new, 0));
    }
    // SAFETY: by the contract; both have so many bytes.
    unsafe {
        new.copy_from_nonoverlapping(pointer, old.min(size));
        free_checked(pointer);
    }
    Some(new)
}

/// Closes the lists of a cache for classes that are checked: what a thread without a look at its objects gives back does not stay there.
pub(crate) fn close_lists(cache: &mut ThreadCache) {
    if in_use() {
        for class in 1..=CLASSES {
            if setting::checks_of_class(class) != 0 {
                cache.close(class);
            }
        }
    }
}

/// At the exit: a last look at all buffers, and for leaks.
pub(crate) fn at_exit() {
    if in_use() {
        nested::within(|| {
            if IS_COPY.load(Relaxed) {
                kit::check_own("exit");
            } else {
                kit::check_all("exit");
            }
            leaks::at_exit();
            setting::tell_unmet();
        });
    }
}

/// Looks at every buffer now: whether anybody has written around those that are out, or into those that are free. Reports the first that is
/// wrong; returns how many were looked at.
pub fn check() -> usize {
    if in_use() && !nested::is_nested() { nested::within(|| kit::check_all("craton_debug_check")) } else { 0 }
}

/// Tells where the kit's own notes lie, in which addresses of buffers stand that lead nowhere; for the copy of a process.
fn own_notes(tell: &mut impl FnMut(usize, usize)) {
    table::extents(tell);
    for (at, bytes) in [quarantine::extent(), guard::extent(), stacks::extent(), setting::log_extent()] {
        tell(at, bytes);
    }
}

/// Notes that objects are freed without a look at their pointers, as [`crate::front::try_free_trusted`] does: the option `debug` can then be set at
/// the start only.
pub fn note_trust() {
    setting::note_trust();
}

craton_tables::count_struct! { kit,
    /// Counts of the kit.
    #[derive(Clone, Copy, Debug, Default)]
    pub struct Counts {}
}

/// What there is under the kit.
pub fn counts() -> Counts {
    let mut counts = Counts { samples: sample::taken(), targets_unmet: setting::unmet(), ..Default::default() };
    if let Some(log) = setting::log() {
        (counts.transactions, counts.transactions_kept) = (log.count(), log.kept());
    }
    if in_use() && !nested::is_nested() {
        nested::within(|| {
            table::each(|b| match b.state {
                table::State::Live => {
                    (counts.buffers, counts.buffer_bytes) = (counts.buffers + 1, counts.buffer_bytes + b.size as u64);
                }
                _ => counts.waiting += 1,
            });
        });
    }
    counts
}

/// Takes every lock, for a fork.
pub(crate) fn hold_for_fork(nested: bool) {
    quarantine::hold_for_fork(nested);
    guard::hold_for_fork(nested);
    table::hold_for_fork(nested);
    setting::hold_for_fork(nested);
}

/// In the child of a fork, before the locks are given up.
///
/// # Safety
/// All locks are held for a fork.
pub(crate) unsafe fn forked() {
    if in_use() {
        IS_COPY.store(true, Relaxed);
        // SAFETY: by the contract.
        unsafe { quarantine::forked() };
    }
}

/// Gives them up after it.
///
/// # Safety
/// As [`craton_os::Mutex::release_after_fork`].
pub(crate) unsafe fn release_after_fork() {
    // SAFETY: by the contract.
    unsafe {
        setting::release_after_fork();
        table::release_after_fork();
        guard::release_after_fork();
        quarantine::release_after_fork();
    }
}
