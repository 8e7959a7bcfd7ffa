//! What is said when a check fails: which buffer, where in it, who had it.
//!
//! **From.** Bonwick94 §6.8.
//!
//! **Failure.** Ends the process by `SIGABRT`, but for leaks.

use super::kit::Target;
use super::setting::{self, AUDIT};
use super::stacks;
use super::table::{self, Buffer, Event, Kind, State};
use crate::route::Misuse;
use core::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use craton_objects::caches;
use craton_os::{Line, names, precise_ns, process, unwind};
use craton_slab::debug::audit::Deed;
use craton_slab::debug::pattern::Wrong;

/// What a program did to a buffer.
#[derive(Clone, Copy, Debug)]
pub(super) enum Mistake {
    /// Wrote into a redzone, at this distance from the buffer's start.
    Written { offset: isize, wrong: Wrong, found_by: &'static str },
    /// Wrote into the buffer after it had freed it.
    WrittenFree { wrong: Wrong, found_by: &'static str },
    /// Freed it twice.
    DoubleFree,
    /// Named it in a call after it had freed it.
    UsedFree { call: &'static str },
    /// Gave it to malloc though it is a cache's, or the other way round.
    WrongCache { given: Target },
    /// Says a size or an alignment that it does not have.
    Claimed { size: usize, align: usize },
    /// Named it in a call that is not for it.
    Elsewhere { call: &'static str },
    /// Named an address inside of it.
    Inside { call: &'static str, offset: isize },
    /// Touched what it may not; `at` is the instruction.
    Touched { address: usize, write: Option<bool>, offset: isize },
    /// Used what it read from the buffer, whose bytes there nobody had written; the pattern is that of freed memory, or not. There are so
    /// many buffers from which it may have come.
    Pattern { value: usize, freed: bool, buffers: usize },
}

/// Lines go where the program's own messages go.
const TO: i32 = 2;

/// When the report began: what it says was so long ago was that before it, however long its lines take.
static BEGAN_NS: AtomicU64 = AtomicU64::new(0);

fn headline(kind: &str, text: &str) -> Line {
    BEGAN_NS.store(precise_ns(), Relaxed);
    Line::new().text("craton: BUG ").text(kind).text(": ").text(text)
}

fn detail() -> Line {
    Line::new().text("craton:   ")
}

fn signed(line: Line, offset: isize) -> Line {
    line.text(if offset < 0 { "-" } else { "" }).number(offset.unsigned_abs() as u64)
}

fn byte(line: Line, value: u8) -> Line {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    line.text("0x").bytes(&[DIGITS[usize::from(value >> 4)], DIGITS[usize::from(value & 15)]])
}

/// Where an offset lies in or beside a buffer of so many bytes.
fn place(line: Line, offset: isize, size: usize) -> Line {
    let line = signed(line.text("at offset "), offset);
    match usize::try_from(offset) {
        Err(_) => line.text(", ").number(offset.unsigned_abs() as u64).text(" before the start"),
        Ok(inside) if inside < size => line,
        Ok(behind) => line.text(", ").number((behind - size + 1) as u64).text(" past the end"),
    }
}

fn tell(mistake: Mistake, buffer: &Buffer) {
    match mistake {
        Mistake::Written { offset, found_by, .. } => {
            let line = if offset < 0 {
                headline("underflow", "written before the start of a buffer")
            } else {
                headline("overflow", "written past the end of a buffer")
            };
            line.text(", found by ").text(found_by)
        }
        Mistake::WrittenFree { found_by, .. } => {
            headline("use-after-free", "written into a buffer after it was freed, found by ").text(found_by)
        }
        Mistake::DoubleFree => headline("double-free", "freed a buffer that is free already"),
        Mistake::UsedFree { call } => headline("use-after-free", call).text(" of a buffer that is free already"),
        Mistake::WrongCache { given: Target(0) } => {
            headline("wrong-cache", "gave a buffer of a cache to malloc's functions; it goes back by craton_cache_free")
        }
        Mistake::WrongCache { given } => {
            whose(headline("wrong-cache", "gave a buffer to "), given, buffer.size).text(", whose it is not")
        }
        Mistake::Claimed { size, align } => {
            let line = headline("size-mismatch", "gave a buffer back as one of ").size(size);
            if align > 1 { line.text(" aligned to ").number(align as u64) } else { line }
        }
        Mistake::Elsewhere { call } => {
            headline("wrong-cache", call).text(" of a buffer that is another's: no heap has it that the call is for")
        }
        Mistake::Inside { call, .. } => headline("bad-free", call).text(" of an address inside a buffer"),
        Mistake::Touched { offset, write, .. } => {
            let (kind, of) = match buffer.state {
                State::Live if offset < 0 => ("underflow", " before the start of a buffer"),
                State::Live => ("overflow", " past the end of a buffer"),
                _ => ("use-after-free", " a buffer after it was freed"),
            };
            let how = match (write, buffer.state) {
                (Some(true), State::Live) => "written",
                (Some(false), State::Live) => "read",
                (None, State::Live) => "touched",
                (Some(true), _) => "written into",
                (Some(false), _) => "read from",
                (None, _) => "touched",
            };
            headline(kind, how).text(of)
        }
        Mistake::Pattern { freed: true, .. } => {
            headline("use-after-free", "used as an address what was read from a freed buffer")
        }
        Mistake::Pattern { freed: false, .. } => {
            headline("uninitialised", "used as an address what was read from a buffer where nobody has written")
        }
    }
    .write_to(TO);
    describe(buffer);
    match mistake {
        Mistake::Written { offset, wrong, .. } => expected(place(detail(), offset, buffer.size), wrong),
        Mistake::WrittenFree { wrong, .. } => expected(place(detail(), wrong.offset as isize, buffer.size), wrong),
        Mistake::Inside { offset, .. } => place(detail(), offset, buffer.size),
        Mistake::Touched { address, offset, .. } => {
            place(detail().text("touched ").address(address).text(", "), offset, buffer.size)
        }
        Mistake::Pattern { value, buffers, .. } => {
            let line = detail().text("the address was ").address(value);
            match buffers {
                1 => line.text(", as this buffer has it, to which a register leads"),
                n => line
                    .text(", as ")
                    .number(n as u64)
                    .text(" buffers have it to which registers lead: this is one of them"),
            }
        }
        _ => return,
    }
    .write_to(TO);
}

fn expected(line: Line, wrong: Wrong) -> Line {
    byte(byte(line.text(": "), wrong.found).text(" instead of "), wrong.expected)
}

fn whose(line: Line, target: Target, size: usize) -> Line {
    if target.0 != 0 {
        return cache_name(line, target);
    }
    match setting::class_bytes(size) {
        Some(bytes) => line.text("class of ").number(bytes as u64),
        None => line.text("large"),
    }
}

fn cache_name(line: Line, target: Target) -> Line {
    let name = name_of(target).unwrap_or_default();
    line.text("cache \"").text(caches::name_of(&name)).text("\"")
}

fn describe(buffer: &Buffer) {
    let line = detail().text("buffer ").address(buffer.address).text(" of ").size(buffer.size).text(", ");
    whose(line, Target(buffer.target), buffer.size).write_to(TO);
}

fn event(what: &str, event: Event) {
    if event.thread == 0 {
        detail().text(what).text(" by nobody knows whom: nothing is noted without debug=audit").write_to(TO);
        return;
    }
    at(detail().text(what).text(" by thread ").number(event.thread.into()), event.time_ns).text(":").write_to(TO);
    stack(event.stack);
}

fn stack(number: u32) {
    match stacks::frames(number) {
        [] if stacks::not_kept() > 0 => {
            Line::new().text("craton:     no stack: there was no room for more of them").write_to(TO)
        }
        [] => Line::new().text("craton:     no stack: none could be taken").write_to(TO),
        frames => names::print_stack(TO, frames),
    }
}

/// A moment in seconds with six digits, and how long ago it was.
fn at(line: Line, time_ns: u64) -> Line {
    let seconds = |line: Line, ns: u64| {
        let mut digits = [b'0'; 6];
        let mut micros = ns / 1000 % 1_000_000;
        for digit in digits.iter_mut().rev() {
            (*digit, micros) = (b'0' + (micros % 10) as u8, micros / 10);
        }
        line.number(ns / 1_000_000_000).text(".").bytes(&digits).text(" s")
    };
    let line = seconds(line.text(" at "), time_ns);
    seconds(line.text(", "), BEGAN_NS.load(Relaxed).saturating_sub(time_ns)).text(" ago")
}

fn owners(buffer: &Buffer) {
    event("allocated", buffer.taken);
    if buffer.state != State::Live {
        event("freed", buffer.given);
    }
}

fn here(what: &str, frames: &[usize]) {
    detail().text(what).text(" by thread ").number(process::thread_id().into()).text(":").write_to(TO);
    names::print_stack(TO, frames);
}

/// One report at a time: threads that have something to say while the process ends wait for the end.
fn only_one() {
    static SPEAKS: AtomicBool = AtomicBool::new(false);
    if SPEAKS.swap(true, Relaxed) {
        loop {
            process::pause();
        }
    }
}

/// Reports a mistake, and ends the process.
#[cold]
#[inline(never)]
pub(super) fn end(mistake: Mistake, buffer: &Buffer) -> ! {
    only_one();
    tell(mistake, buffer);
    owners(buffer);
    let mut frames = [0; 32];
    let n = unwind::capture_outside(&mut frames);
    here("found", &frames[..n]);
    last_line()
}

fn last_line() -> ! {
    Line::new().text("craton: the process ends here, since what it does from now on cannot be trusted").abort()
}

/// Reports a mistake that a fault showed; the process then ends by its signal.
pub(super) fn tell_fault(mistake: Mistake, buffer: &Buffer, frames: &[usize]) {
    tell(mistake, buffer);
    owners(buffer);
    here("found", frames);
}

/// Reports that a pattern was used as an address, without a buffer that it may have come from.
pub(super) fn tell_pattern(value: usize, freed: bool, frames: &[usize]) {
    if freed {
        headline("use-after-free", "used as an address what freed memory is filled with").write_to(TO);
    } else {
        headline("uninitialised", "used as an address what new memory is filled with").write_to(TO);
    }
    detail().text("the address was ").address(value).write_to(TO);
    here("found", frames);
}

/// The buffer that an address lay in last, if it was freed and the kit knows it from the log alone: its memory was let go.
pub(super) fn logged(address: usize) -> Option<Buffer> {
    let (mut given, mut found) = (None, None);
    setting::log()?.each(|t| {
        let event = Event { time_ns: t.time_ns, stack: t.stack, thread: t.thread };
        let holds = (t.address..t.address + t.size.max(1)).contains(&address);
        match (t.deed, given) {
            (Deed::Free, None) if holds => given = Some((t.address, event)),
            // The newest is what counts; it is out, or another has its place.
            (Deed::Alloc, None) if holds => return false,
            (Deed::Alloc, Some((start, given))) if t.address == start => {
                found = Some(Buffer {
                    address: start,
                    size: t.size,
                    under: start,
                    checks: AUDIT,
                    state: State::Closed,
                    kind: Kind::Mapped,
                    align: 0,
                    target: 0,
                    taken: event,
                    given,
                });
                return false;
            }
            _ => {}
        }
        true
    });
    found
}

/// Reports a pointer that the heap refuses if it points into a buffer, and ends the process then.
pub(super) fn bad_place(call: &'static str, address: usize) {
    let around = table::one_where(|b| (b.address.min(b.under)..b.address + b.size.max(1) + 16).contains(&address));
    if let Some(buffer) = around {
        match address as isize - buffer.address as isize {
            0 if buffer.state == State::Live => end(Mistake::Elsewhere { call }, &buffer),
            0 => end(Mistake::UsedFree { call }, &buffer),
            offset => end(Mistake::Inside { call, offset }, &buffer),
        }
    }
}

/// Reports any other pointer that the heap refuses, and ends the process.
pub(super) fn bad_pointer(call: &'static str, address: usize, misuse: Misuse) -> ! {
    if let Some(buffer) = logged(address) {
        let offset = address as isize - buffer.address as isize;
        end(if offset == 0 { Mistake::DoubleFree } else { Mistake::Inside { call, offset } }, &buffer);
    }
    only_one();
    let kind = if matches!(misuse, Misuse::Freed { .. } | Misuse::Unallocated) { "double-free" } else { "bad-free" };
    headline(kind, call).text("(").address(address).text("): ").text(crate::report::brief(misuse)).write_to(TO);
    let mut told = 0;
    if let Some(log) = setting::log() {
        log.each(|t| {
            if t.address == address {
                let what = if t.deed == Deed::Alloc { "allocated" } else { "freed" };
                detail().text("buffer ").address(address).text(" of ").size(t.size).write_to(TO);
                event(what, Event { time_ns: t.time_ns, stack: t.stack, thread: t.thread });
                told += 1;
            }
            told < 2
        });
        if told == 0 && log.count() > log.kept() {
            let line = detail().text("the log has the last ").number(log.kept()).text(" of ").number(log.count());
            line.text(" transactions, none with this address (audit_log=N keeps more)").write_to(TO);
        }
    }
    let mut frames = [0; 32];
    let n = unwind::capture_outside(&mut frames);
    here("found", &frames[..n]);
    last_line()
}

/// Says that a buffer leaks, with how much hangs on it.
pub(super) fn leak(buffer: &Buffer, buffers: usize, held: usize, same: usize) {
    let line = headline("leak", "nothing leads to a buffer");
    let line = if same > 1 {
        line.text(" and to ").number(same as u64 - 1).text(" more that were allocated there")
    } else {
        line
    };
    let line = match buffers {
        0 => line,
        1 => line.text("; 1 buffer of ").size(held).text(" hangs on it"),
        n => line.text("; ").number(n as u64).text(" buffers of ").size(held).text(" hang on it"),
    };
    line.write_to(TO);
    describe(buffer);
    event("allocated", buffer.taken);
}

/// Says of objects that keep a cache from being destroyed who has them.
pub(super) fn still_out(call: &'static str, target: Target, count: usize, some: &[Buffer]) {
    BEGAN_NS.store(precise_ns(), Relaxed);
    let line = cache_name(Line::new().text("craton: ").text(call).text(" of "), target);
    line.text(": ")
        .number(count as u64)
        .text(if count == 1 { " object is out" } else { " objects are out" })
        .write_to(TO);
    for buffer in some {
        describe(buffer);
        event("allocated", buffer.taken);
    }
    if count > some.len() {
        detail().text("and ").number((count - some.len()) as u64).text(" more").write_to(TO);
    }
}

/// One line about the search for leaks.
pub(super) fn leaks(count: usize, lost: usize, buffers: usize) {
    let line = Line::new().text("craton: leaks: ").number(count as u64).text(" of ").number(buffers as u64);
    line.text(" buffers, ").size(lost).text(", are lost").write_to(TO);
}

/// The name of a cache.
fn name_of(target: Target) -> Option<[u8; caches::NAME_MAX + 1]> {
    let id = u16::try_from(target.0.checked_sub(1)?).ok()?;
    Some(crate::statics::OBJECT_CACHES.name(id))
}
