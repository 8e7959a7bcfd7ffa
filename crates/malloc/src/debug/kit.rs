//! What happens to a buffer: taken, given back, let go.
//!
//! **State.** A buffer's record goes `Live` → `Freeing` → `Freed`, or `Closed` where its pages cannot be touched any more → gone.
//!
//! **Unsafe.** Fills and reads buffers.

use super::area::{self, Area};
use super::report::{self, Mistake};
use super::setting::{self, AUDIT, POISON, SAMPLED, UNMAP};
use super::table::{self, Buffer, Event, Kind, State, Then};
use super::{guard, quarantine, stacks};
use crate::route::Misuse;
use crate::segment::{self, SEGMENT};
use crate::statics::HEAP;
use crate::{nested, tls};
use core::ptr::null_mut;
use craton_os::{precise_ns, process};
use craton_slab::debug::audit::{Deed, Transaction};
use craton_slab::debug::pattern;

/// Whom buffers belong to that malloc handed out.
pub(crate) const MALLOC: Target = Target(0);

/// Whom a buffer belongs to: malloc, or the cache of a number above 0.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Target(pub(crate) u32);

impl Target {
    /// Cache `id`.
    pub(crate) fn cache(id: u16) -> Self {
        Self(u32::from(id) + 1)
    }
}

impl Event {
    /// What the calling thread does now, as far as the checks ask for it.
    fn now(checks: u8) -> Self {
        if checks & (AUDIT | SAMPLED) == 0 {
            return Self::default();
        }
        Self { time_ns: precise_ns(), stack: stacks::capture(), thread: tls::thread_id() }
    }
}

fn note(buffer: &Buffer, event: Event, deed: Deed) {
    if buffer.checks & AUDIT != 0
        && let Some(log) = setting::log()
    {
        let Event { time_ns, stack, thread } = event;
        log.add(Transaction { time_ns, address: buffer.address, size: buffer.size, stack, thread, deed });
    }
}

/// A buffer; null without memory.
pub(crate) fn alloc(size: usize, align: usize, target: Target, checks: u8) -> *mut u8 {
    let Some(area) = Area::take(size, align, checks) else { return null_mut() };
    table::expect(area.address);
    let taken = Event::now(checks);
    let buffer = Buffer {
        address: area.address,
        size,
        under: area.under,
        checks,
        state: State::Live,
        kind: area.kind,
        align: align.max(1).trailing_zeros() as u8,
        target: target.0,
        taken,
        given: Event::default(),
    };
    // SAFETY: the memory is ours until it is handed out.
    unsafe {
        area::draw(&buffer);
        if checks & POISON != 0 {
            pattern::fill(area.address as *mut u8, size, pattern::FRESH);
        }
    }
    if !table::insert(buffer) {
        let_go(&buffer);
        return null_mut();
    }
    note(&buffer, taken, Deed::Alloc);
    if buffer.kind != Kind::Heap {
        // What the heap hands out it counts itself.
        segment::add(&SEGMENT.refills, 1);
        segment::add(&SEGMENT.objects_out, 1);
    }
    area.address as *mut u8
}

/// As [`alloc`], for a cache.
pub(crate) fn alloc_target(size: usize, align: usize, target: Target, checks: u8) -> *mut u8 {
    let saved = process::errno();
    let buffer = nested::within(|| alloc(size, align, target, checks));
    process::set_errno(saved);
    buffer
}

/// Takes a buffer back; `false` if the pointer is none.
///
/// # Safety
/// The caller gives up what is at the pointer, if it is a buffer.
pub(crate) unsafe fn free(pointer: *mut u8, target: Target) -> bool {
    let address = pointer as usize;
    table::expect(address);
    // Where all are audited, the way here is noted while the record comes.
    let checks = match setting::checks_of_class(0) {
        checks if checks & AUDIT != 0 => checks,
        _ => match table::get(address) {
            Some(buffer) => buffer.checks,
            None => return false,
        },
    };
    let given = Event::now(checks);
    let found = table::with(address, |b| {
        let was = *b;
        // Of two threads that free it one finds it free.
        if was.state == State::Live && was.target == target.0 {
            (b.state, b.given) = (State::Freeing, given);
        }
        (was, Then::Keep)
    });
    let Some(buffer) = found else { return false };
    look_at(&buffer, target);
    let buffer = Buffer { given, ..buffer };
    note(&buffer, given, Deed::Free);
    let closed = buffer.checks & (UNMAP | SAMPLED) != 0 && buffer.kind != Kind::Heap && guard::close(&buffer);
    if !closed && buffer.checks & POISON != 0 {
        // SAFETY: the program has given the buffer up.
        unsafe { pattern::fill(pointer, buffer.size, pattern::FREED) };
    }
    table::with(address, |b| {
        b.state = if closed { State::Closed } else { State::Freed };
        ((), Then::Keep)
    });
    match buffer.kind {
        Kind::Slot => guard::wait(&buffer, !closed),
        // What is closed may well lie in memory no more.
        _ => quarantine::wait(address, buffer.size + 128, retire),
    }
    true
}

/// As [`free`], for a cache.
///
/// # Safety
/// As [`free`].
pub(crate) unsafe fn free_target(pointer: *mut u8, target: Target) -> bool {
    let saved = process::errno();
    // SAFETY: by the contract.
    let freed = nested::within(|| unsafe { free(pointer, target) });
    process::set_errno(saved);
    freed
}

/// Lets a buffer go that has waited enough.
fn retire(address: usize) {
    if let Some(buffer) = forget(address) {
        let_go(&buffer);
    }
}

/// Removes the record of a buffer that has waited enough, whose memory can be touched; looks whether anybody has written it meanwhile.
pub(super) fn forget(address: usize) -> Option<Buffer> {
    let buffer = table::with(address, |b| (*b, Then::Remove))?;
    check_freed(&buffer, "alloc");
    Some(buffer)
}

/// Gives what lies under a buffer back.
fn let_go(buffer: &Buffer) {
    match buffer.kind {
        Kind::Heap => {
            // SAFETY: the object is the kit's own, and nobody has the buffer on it any more.
            let given = unsafe { HEAP.take_back(None, buffer.under as *mut u8) };
            debug_assert_eq!(given, Ok(None));
        }
        Kind::Slot => guard::wait(buffer, true),
        Kind::Mapped => guard::give(buffer),
    }
}

fn check_around(buffer: &Buffer, found_by: &'static str) {
    // SAFETY: a buffer that is out can be read, and so can what is around it.
    if let Some((offset, wrong)) = unsafe { area::check(buffer) } {
        report::end(Mistake::Written { offset, wrong, found_by }, buffer);
    }
}

fn check_freed(buffer: &Buffer, found_by: &'static str) {
    if buffer.state == State::Freed && buffer.checks & POISON != 0 {
        // SAFETY: a buffer that waits can be read unless it is closed.
        let wrong = unsafe { pattern::check(buffer.address as *const u8, buffer.size, pattern::FREED) };
        if let Some(wrong) = wrong {
            report::end(Mistake::WrittenFree { wrong, found_by }, buffer);
        }
        check_around(buffer, found_by);
    }
}

/// Looks at every buffer; reports the first in which something is wrong. Returns how many there were.
pub(super) fn check_all(found_by: &'static str) -> usize {
    check_where(found_by, |_| true, |_| {})
}

/// As [`check_all`], at the end of a process that is a copy of another: at what waited when it was made its parent looks.
pub(super) fn check_own(found_by: &'static str) {
    let is_ringed = |buffer: &Buffer| buffer.state == State::Freed && buffer.kind != Kind::Slot;
    check_where(
        found_by,
        |buffer| !is_ringed(buffer),
        |look| {
            quarantine::each_own(|address| {
                table::with(address, |buffer| (look(buffer), Then::Keep));
            });
        },
    );
}

/// Looks at the buffers of the table that are wanted, and at those that `others` tells of.
fn check_where(
    found_by: &'static str,
    wanted: impl Fn(&Buffer) -> bool,
    others: impl FnOnce(&mut dyn FnMut(&Buffer)),
) -> usize {
    let (mut buffers, mut bad) = (0, None);
    let mut look = |buffer: &Buffer| {
        if bad.is_none() && is_written(buffer) {
            bad = Some(*buffer);
        }
    };
    table::each(|buffer| {
        buffers += 1;
        if wanted(buffer) {
            look(buffer);
        }
    });
    others(&mut look);
    // Reported without the lock: the report looks for neighbours.
    if let Some(buffer) = bad {
        check_freed(&buffer, found_by);
        check_around(&buffer, found_by);
    }
    buffers
}

/// Whether somebody has written where nobody may; of a buffer that cannot go meanwhile, since its record's lock is held.
fn is_written(buffer: &Buffer) -> bool {
    // SAFETY: buffers that are not closed can be read.
    unsafe {
        match buffer.state {
            State::Live => area::check(buffer).is_some(),
            State::Freed if buffer.checks & POISON != 0 => {
                pattern::check(buffer.address as *const u8, buffer.size, pattern::FREED).is_some()
                    || area::check(buffer).is_some()
            }
            _ => false,
        }
    }
}

/// Bytes of a buffer that is out, for a call that needs them; `None` if the pointer is no buffer.
pub(super) fn size_for(call: &'static str, pointer: *mut u8) -> Option<usize> {
    let buffer = table::get(pointer as usize)?;
    if buffer.state != State::Live {
        report::end(Mistake::UsedFree { call }, &buffer);
    }
    if buffer.target != MALLOC.0 {
        report::end(Mistake::WrongCache { given: MALLOC }, &buffer);
    }
    Some(buffer.size)
}

/// Bytes that were asked for, of a buffer that is out; `None` if the pointer is no buffer.
pub(crate) fn size_of(call: &'static str, pointer: *mut u8) -> Option<usize> {
    if !super::in_use() || nested::is_nested() {
        return None;
    }
    nested::within(|| size_for(call, pointer))
}

/// Whether a pointer is a buffer of the target that is out; `false` if it is no buffer. Ends the process with a report if it is free, another one's, or
/// written around.
pub(crate) fn is_buffer_of(pointer: *mut u8, target: Target) -> bool {
    !nested::is_nested()
        && nested::within(|| {
            let Some(buffer) = table::get(pointer as usize) else { return false };
            look_at(&buffer, target);
            true
        })
}

/// Looks at a buffer that its owner gives back.
fn look_at(buffer: &Buffer, target: Target) {
    if buffer.state != State::Live {
        report::end(Mistake::DoubleFree, buffer);
    }
    if buffer.target != target.0 {
        report::end(Mistake::WrongCache { given: target }, buffer);
    }
    check_around(buffer, "free");
}

/// Tells of buffers of a target that are out, and who has them.
pub(crate) fn tell_live(target: Target, call: &'static str) {
    /// So many are told of one by one.
    const MOST: usize = 20;
    let (mut count, mut some) = (0, [Buffer::default(); MOST]);
    table::each(|buffer| {
        if buffer.target == target.0 && buffer.state == State::Live {
            if count < MOST {
                some[count] = *buffer;
            }
            count += 1;
        }
    });
    report::still_out(call, target, count, &some[..count.min(MOST)]);
}

/// Ends the process with a report if the program says a wrong size or alignment of a buffer; `false` if the pointer is none.
pub(crate) fn check_claim(pointer: *mut u8, size: Option<usize>, align: usize) -> bool {
    if !super::in_use() || nested::is_nested() {
        return false;
    }
    nested::within(|| {
        let Some(buffer) = table::get(pointer as usize) else { return false };
        if buffer.state != State::Live {
            report::end(Mistake::DoubleFree, &buffer);
        }
        if size.is_some_and(|size| size != buffer.size) || !(pointer as usize).is_multiple_of(align.max(1)) {
            report::end(Mistake::Claimed { size: size.unwrap_or(buffer.size), align }, &buffer);
        }
        true
    })
}

/// Of a pointer that the heap refuses: ends the process with a report that tells of the buffer that it points into, or of what the log knows of the
/// address. Returns if the kit is off, and if it is no object that is wrong but the handle of a heap or a cache, of which it knows nothing.
pub(crate) fn reported_misuse(call: &'static str, pointer: *mut u8, misuse: Misuse) {
    use Misuse::{CacheDestroyed, HeapDestroyed, HeapStays, NoCache, NoHeap};
    if matches!(misuse, CacheDestroyed | HeapDestroyed | HeapStays | NoCache | NoHeap) {
        return;
    }
    if super::in_use() && !nested::is_nested() {
        nested::within(|| {
            report::bad_place(call, pointer as usize);
            if setting::verifies() {
                report::bad_pointer(call, pointer as usize, misuse);
            }
        });
    }
}
