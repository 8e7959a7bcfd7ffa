//! The debugging kit ([`craton_kit`]) in the process: which requests become its buffers, and the
//! locks, caches and signal handlers around its calls. Each call runs where locks may be taken
//! ([`nested`]); a [`Finding`] ends the process.
//!
//! **Unsafe.** Takes objects from callers.

pub(crate) mod option;

use crate::errno::with_errno;
use crate::govern;
use crate::here::Here;
use crate::observe::{profile_file, segment};
use crate::statics::{DEBUG_FILE, HEAP, KIT, KIT_RUNS_CHORES, OBJECT_CACHES, PROFILE, SEGMENT};
use crate::thread::{nested, tls};
use core::sync::atomic::Ordering::Relaxed;
use craton_heap::Misuse;
use craton_heap::size_class::{MAX_CLASSED, class_of};
use craton_heap::thread_cache::MAX_QUICK;
use craton_kit::{Finding, Process, family};
use craton_objects::caches::NAME_MAX;
use craton_os::{Line, OutFile, precise_ns, process, thp};

pub use craton_kit::Counts;
pub(crate) use craton_kit::{AUTO, Target};
pub(crate) use option::{set, set_sample, why_not};

impl Process for Here {
    fn thread_id() -> u32 {
        tls::thread_id()
    }

    fn may_unwind() -> bool {
        // A static program allocates before the C library can unwind.
        SEGMENT.has_started()
    }

    fn count_served() {
        segment::add(&SEGMENT.refills, 1);
        segment::add(&SEGMENT.objects_out, 1);
    }

    fn open_reports(pid: u32) -> Option<OutFile> {
        // A process that filters system calls might be killed for this one.
        let path = thp::may_query().then(|| DEBUG_FILE.try_named(pid))??;
        let file = OutFile::append(path.with_end()).ok()?;
        // Programs that follow one another in a process by exec share a file.
        let mut name = [0; 16];
        let len = process::name(&mut name);
        let line = Line::new().text("craton: reports of process ").number(pid.into());
        let _ = file.write_line(&mut line.text(" (").bytes(&name[..len]).text(")"));
        Some(file)
    }

    fn cache_name(id: u16) -> Option<[u8; NAME_MAX + 1]> {
        Some(OBJECT_CACHES.name(id))
    }
}

fn within<R>(call: impl FnOnce() -> Result<R, Finding>) -> R {
    nested::within(|| call().unwrap_or_else(|finding| KIT.end(finding)))
}

#[inline]
pub(crate) fn in_use() -> bool {
    KIT.in_use()
}

#[inline]
pub(crate) fn checks_of(size: usize) -> u16 {
    KIT.checks_of(size)
}

/// Allocates a buffer for a request beyond the thread cache; `None` for a plain object.
#[inline]
pub(crate) fn alloc(size: usize, align: usize, family: u8) -> Option<*mut u8> {
    if !KIT.is_busy() || nested::is_nested() {
        return None;
    }
    alloc_checked(size, align, family)
}

#[cold]
fn alloc_checked(size: usize, align: usize, family: u8) -> Option<*mut u8> {
    flush_if_asked();
    let checks = checks_of(size);
    let class = if size <= MAX_CLASSED { class_of(size) } else { 0 };
    if checks == 0 && !becomes_sample(class, size, family) {
        return None;
    }
    let saved = process::errno();
    let try_alloc = || {
        within(|| match checks {
            0 => KIT.alloc_sample(&HEAP, class, size, align),
            checks => KIT.alloc_by(&HEAP, size, align, Target::MALLOC, checks, family),
        })
    };
    let mut buffer = try_alloc();
    if buffer.is_null() {
        if checks == 0 {
            return None;
        }
        if nested::within(govern::make_room) {
            buffer = try_alloc();
        }
        if buffer.is_null() {
            govern::count_refusal(size);
        }
    }
    if checks != 0 && PROFILE.due.every_ns() > 0 {
        write_profile_if_due();
    }
    run_background();
    Some(with_errno(buffer, saved))
}

/// Buffers are no samples, which ask otherwise.
#[cold]
fn write_profile_if_due() {
    if PROFILE.due.is_due(precise_ns(), || 0) && thp::may_query() {
        nested::within(profile_file::write);
    }
}

fn becomes_sample(class: usize, size: usize, family: u8) -> bool {
    if !KIT.is_sample_due(class) {
        return false;
    }
    // A free by size alone takes any pointer for an object of the heap. A program that filters
    // system calls gets no new ones.
    if family == family::TRUSTED && size <= MAX_QUICK || !thp::may_query() {
        KIT.skip_sample(class);
        return false;
    }
    if !KIT.in_use() {
        // Samples take half a GiB of address space: too much under a limit.
        if !KIT.sees_large() && process::address_space_limit().is_some() {
            KIT.set_sample(0);
            return false;
        }
        option::turn_on();
    }
    true
}

/// [`govern::run_chores`], whose allocations do not run it again.
fn run_background() {
    if !KIT_RUNS_CHORES.swap(true, Relaxed) {
        govern::run_chores();
        KIT_RUNS_CHORES.store(false, Relaxed);
    }
}

/// Frees a buffer; `None` for other pointers.
///
/// # Safety
/// Any pointer; a buffer is given up.
#[inline]
pub(crate) unsafe fn free(pointer: *mut u8) -> Option<Result<(), Misuse>> {
    if !may_be_buffer(pointer) || nested::is_nested() {
        return None;
    }
    // SAFETY: by the contract.
    unsafe { free_checked(pointer) }
}

/// Samples lie outside the heap's pages.
#[inline]
pub(crate) fn may_be_buffer(pointer: *mut u8) -> bool {
    in_use() && (KIT.may_be_on_heap() || HEAP.page_of(pointer as usize).is_none())
}

#[inline]
pub(crate) fn sees_large() -> bool {
    KIT.sees_large()
}

/// Flushes the thread's cache if the option has changed since the last flush.
fn flush_if_asked() {
    if let Some(cache) = tls::own() {
        // SAFETY: the calling thread's cache.
        unsafe { govern::flush_if_requested(cache) };
    }
}

/// # Safety
/// As [`free`].
#[cold]
unsafe fn free_checked(pointer: *mut u8) -> Option<Result<(), Misuse>> {
    flush_if_asked();
    // SAFETY: by the contract.
    unsafe { free_target(pointer, Target::MALLOC) }.then_some(Ok(()))
}

/// Allocates a buffer for an object cache; null without memory.
pub(crate) fn alloc_target(size: usize, align: usize, target: Target, checks: u16) -> *mut u8 {
    let saved = process::errno();
    let buffer = within(|| KIT.alloc(&HEAP, size, align, target, checks));
    process::set_errno(saved);
    buffer
}

/// Frees a buffer of an owner; `false` for other pointers.
///
/// # Safety
/// As [`free`].
pub(crate) unsafe fn free_target(pointer: *mut u8, target: Target) -> bool {
    let saved = process::errno();
    // SAFETY: by the contract.
    let freed = within(|| unsafe { KIT.free(&HEAP, pointer, target) });
    process::set_errno(saved);
    freed
}

/// Returns the bytes of a live buffer to move; `None` for other pointers.
#[cold]
pub(crate) fn size_to_move(pointer: *mut u8) -> Option<usize> {
    if !may_be_buffer(pointer) || nested::is_nested() {
        return None;
    }
    within(|| KIT.size_for("realloc", pointer))
}

/// # Safety
/// As [`free`]; [`size_to_move`] found the buffer.
pub(crate) unsafe fn free_moved(pointer: *mut u8) {
    // SAFETY: by the contract.
    unsafe { free_checked(pointer) };
}

/// Returns the requested bytes of a live buffer; `None` for other pointers.
pub(crate) fn size_of(call: &'static str, pointer: *mut u8) -> Option<usize> {
    if !may_be_buffer(pointer) || nested::is_nested() {
        return None;
    }
    within(|| KIT.size_for(call, pointer))
}

/// Whether the pointer is a live buffer of a cache; ends the process if another owner's.
pub(crate) fn is_buffer_of(pointer: *mut u8, target: Target) -> bool {
    may_be_buffer(pointer) && !nested::is_nested() && within(|| KIT.is_buffer_of(pointer, target))
}

/// Whether the pointer is a buffer; ends the process if size or alignment is wrong.
pub(crate) fn check_claim(pointer: *mut u8, size: Option<usize>, align: usize) -> bool {
    may_be_buffer(pointer) && !nested::is_nested() && within(|| KIT.check_claim(pointer, size, align))
}

/// Ends the process if another family of functions allocated the buffer.
#[inline]
pub(crate) fn check_pair(pointer: *mut u8, call: &'static str, with_align: bool) {
    if may_be_buffer(pointer) && !nested::is_nested() {
        within(|| KIT.check_pair(pointer, call, with_align));
    }
}

/// Ends the process with the kit's report, if it has one.
pub(crate) fn report_misuse(call: &'static str, pointer: *mut u8, misuse: Misuse) {
    if in_use() && !nested::is_nested() {
        nested::within(|| KIT.report_misuse(call, pointer, misuse));
    }
}

pub(crate) fn at_exit() {
    if in_use() {
        within(|| KIT.at_exit(OBJECT_CACHES.any_made()));
    }
}

/// Checks every buffer for stray writes; returns their number, or ends the process.
pub fn check() -> usize {
    if in_use() && !nested::is_nested() { within(|| KIT.check_all("craton_debug_check")) } else { 0 }
}

/// Records that frees trust sizes ([`crate::front::try_free_trusted`]): `debug` must then be set at
/// the start.
pub fn record_trust() {
    KIT.trust();
    PROFILE.trusts.store(true, Relaxed);
}

pub fn counts() -> Counts {
    let counts_buffers = !nested::is_nested();
    nested::within(|| KIT.counts(counts_buffers))
}
