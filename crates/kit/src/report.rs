//! The report of a failed check (Bonwick94 §6.8). Ends the process by `SIGABRT`, except for leaks.

use crate::audit::Action;
use crate::buffers::Target;
use crate::family;
use crate::out::Out;
use crate::pattern::Wrong;
use crate::setting::{AUDIT, class_bytes};
use crate::table::{Buffer, Event, Kind, State};
use crate::{Kit, Process};
use core::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use craton_heap::Misuse;
use craton_objects::caches::name_of;
use craton_os::{Line, names, precise_ns, process, unwind};

#[derive(Clone, Copy, Debug)]
pub struct Finding {
    pub mistake: Mistake,
    pub buffer: Buffer,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Mistake {
    /// Into a redzone, `offset` from the buffer's start.
    Written { offset: isize, wrong: Wrong, found_by: &'static str },
    /// After the buffer's free.
    WrittenFree { wrong: Wrong, found_by: &'static str },
    /// Twice freed.
    DoubleFree,
    /// In a call, after the free.
    UsedFree { call: &'static str },
    /// Freed to another owner.
    WrongCache { given: Target },
    /// Freed by another family's function.
    Mismatch { call: &'static str },
    /// A wrong size or alignment.
    Claimed { size: usize, align: usize },
    /// In a call that is not for it.
    Elsewhere { call: &'static str },
    /// An address inside a buffer.
    Inside { call: &'static str, offset: isize },
    /// Closed pages; `write` is `None` where the processor does not say.
    Touched { address: usize, write: Option<bool>, offset: isize },
    /// Used as an address what it read from the buffer (or one of `buffers`), which is `freed` or
    /// unwritten.
    Pattern { value: usize, freed: bool, buffers: usize },
}

pub(crate) struct Reports {
    began_ns: AtomicU64,
    speaks: AtomicBool,
}

impl Reports {
    pub(crate) const fn new() -> Self {
        Self { began_ns: AtomicU64::new(0), speaks: AtomicBool::new(false) }
    }

    fn begin(&self) {
        self.began_ns.store(precise_ns(), Relaxed);
    }

    /// Threads with another report wait for the end of the process.
    fn only_one(&self) {
        if self.speaks.swap(true, Relaxed) {
            loop {
                process::pause();
            }
        }
    }
}

fn headline(kind: &str, text: &str) -> Line {
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

fn place(line: Line, offset: isize, size: usize) -> Line {
    let line = signed(line.text("at offset "), offset);
    match usize::try_from(offset) {
        Err(_) => line.text(", ").number(offset.unsigned_abs() as u64).text(" before the start"),
        Ok(inside) if inside < size => line,
        Ok(behind) => line.text(", ").number((behind - size + 1) as u64).text(" past the end"),
    }
}

fn headline_of(mistake: Mistake, buffer: &Buffer, owner: impl FnOnce(Line, Target) -> Line) -> Line {
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
        Mistake::WrongCache { given: Target::MALLOC } => {
            headline("wrong-cache", "gave a buffer of a cache to malloc's functions; it goes back by craton_cache_free")
        }
        Mistake::WrongCache { given } => {
            owner(headline("wrong-cache", "gave a buffer to "), given).text(", whose it is not")
        }
        Mistake::Claimed { size, align } => {
            let line = headline("size-mismatch", "gave a buffer back as one of ").size(size);
            if align > 1 { line.text(" aligned to ").number(align as u64) } else { line }
        }
        Mistake::Mismatch { call } => {
            let (allocates, frees) = family::names(buffer.family);
            let line = headline("mismatch", call).text(" of a buffer that ").text(allocates);
            line.text(" allocated; it goes back by ").text(frees)
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
            headline("use-after-free", "used a word of a freed buffer as an address")
        }
        Mistake::Pattern { freed: false, .. } => {
            headline("uninitialised", "used an unwritten word of a buffer as an address")
        }
    }
}

/// `None`: the headline says all.
fn place_of(mistake: Mistake, buffer: &Buffer) -> Option<Line> {
    Some(match mistake {
        Mistake::Written { offset, wrong, .. } => expected(place(detail(), offset, buffer.size), wrong),
        Mistake::WrittenFree { wrong, .. } => expected(place(detail(), wrong.offset as isize, buffer.size), wrong),
        Mistake::Inside { offset, .. } => place(detail(), offset, buffer.size),
        Mistake::Touched { address, offset, .. } => {
            let line = place(detail().text("touched ").address(address).text(", "), offset, buffer.size);
            let beyond = offset.unsigned_abs().saturating_sub(if offset < 0 { 0 } else { buffer.size });
            if beyond > process::page_size() { line.text("; of all buffers this is the nearest") } else { line }
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
        _ => return None,
    })
}

fn expected(line: Line, wrong: Wrong) -> Line {
    byte(byte(line.text(": "), wrong.found).text(" instead of "), wrong.expected)
}

impl<P: Process> Kit<P> {
    fn owner(&self, line: Line, target: Target, size: usize) -> Line {
        if target != Target::MALLOC {
            return self.cache_name(line, target);
        }
        match class_bytes(size) {
            Some(bytes) => line.text("class of ").number(bytes as u64),
            None => line.text("large"),
        }
    }

    fn cache_name(&self, line: Line, target: Target) -> Line {
        let name = target.id().and_then(P::cache_name).unwrap_or_default();
        line.text("cache \"").text(name_of(&name)).text("\"")
    }

    fn describe(&self, out: &Out, buffer: &Buffer) {
        let line = detail().text("buffer ").address(buffer.address).text(" of ").size(buffer.size).text(", ");
        out.line(self.owner(line, Target(buffer.target), buffer.size));
    }

    fn print(&self, out: &Out, Finding { mistake, buffer }: &Finding) {
        self.reports.begin();
        out.line(headline_of(*mistake, buffer, |line, target| self.owner(line, target, buffer.size)));
        self.describe(out, buffer);
        if let Some(line) = place_of(*mistake, buffer) {
            out.line(line);
        }
        if matches!(mistake, Mistake::Inside { .. })
            && buffer.state != State::Live
            && self.setting.log().is_some_and(|log| log.count() > log.kept())
        {
            let line = detail().text("or a second free of a buffer that lay there, too long ago for the log ");
            out.line(line.text("(audit_log=N keeps more)"));
        }
        self.print_event(out, "allocated", buffer.taken);
        if buffer.state != State::Live {
            self.print_event(out, "freed", buffer.given);
        }
    }

    fn print_event(&self, out: &Out, what: &str, event: Event) {
        if event.thread == 0 {
            return out.line(detail().text(what).text(" by an unknown stack: debug=audit records stacks"));
        }
        let line = detail().text(what).text(" by thread ").number(event.thread.into());
        out.line(at(line, event.time_ns, self.reports.began_ns.load(Relaxed)).text(":"));
        match self.stacks.frames(event.stack) {
            [] if self.stacks.not_kept() > 0 => {
                out.line(Line::new().text("craton:     no stack: there was no room for more of them"))
            }
            [] => out.line(Line::new().text("craton:     no stack: none could be taken")),
            frames => names::print_stack(frames, |line| out.line(line)),
        }
    }

    #[cold]
    #[inline(never)]
    pub fn end(&self, finding: Finding) -> ! {
        self.reports.only_one();
        let out = Out::to(P::open_reports(process::id()));
        self.print(&out, &finding);
        last_line(&out)
    }

    pub(crate) fn end_at(&self, finding: &Finding, frames: &[usize]) -> ! {
        self.reports.only_one();
        let out = Out::to(P::open_reports(process::id()));
        self.print(&out, finding);
        last_line_at(&out, frames)
    }

    pub(crate) fn print_fault(&self, finding: &Finding, frames: &[usize]) {
        let out = Out::to(P::open_reports(process::id()));
        self.print(&out, finding);
        print_here(&out, frames);
    }

    pub(crate) fn print_pattern(&self, value: usize, freed: bool, frames: &[usize]) {
        self.reports.begin();
        let out = Out::to(P::open_reports(process::id()));
        out.line(match freed {
            true => headline("use-after-free", "used the fill pattern of freed memory as an address"),
            false => headline("uninitialised", "used the fill pattern of new memory as an address"),
        });
        out.line(detail().text("the address was ").address(value));
        print_here(&out, frames);
    }

    pub(crate) fn logged(&self, address: usize) -> Option<Buffer> {
        self.logged_at(address, false)
    }

    /// `only_start`: buffers that began at the address, whatever came since.
    fn logged_at(&self, address: usize, only_start: bool) -> Option<Buffer> {
        let (mut given, mut found) = (None, None);
        self.setting.log()?.each(|t| {
            let event = Event { time_ns: t.time_ns, stack: t.stack, thread: t.thread };
            let last = if only_start { t.address } else { t.address + t.size.max(1) - 1 };
            let holds = (t.address..=last).contains(&address);
            match (t.action, given) {
                (Action::Free, None) if holds => given = Some((t.address, event)),
                // The newest counts.
                (Action::Alloc, None) if holds => return false,
                (Action::Alloc, Some((start, given))) if t.address == start => {
                    found = Some(Buffer {
                        address: start,
                        size: t.size,
                        under: start,
                        checks: AUDIT,
                        state: State::Closed,
                        kind: Kind::Mapped,
                        align: 0,
                        family: 0,
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

    pub(crate) fn freed_earlier(&self, address: usize) -> Option<Finding> {
        let mut is_freed = false;
        self.setting.log()?.each(|t| {
            is_freed = t.address == address && t.action == Action::Free;
            t.address != address
        });
        let buffer = if is_freed { self.logged_at(address, true) } else { None };
        buffer.map(|buffer| Finding { mistake: Mistake::DoubleFree, buffer })
    }

    pub(crate) fn end_bad_pointer(&self, call: &'static str, address: usize, misuse: Misuse) -> ! {
        if let Some(buffer) = self.logged(address) {
            let offset = address as isize - buffer.address as isize;
            let mistake = if offset == 0 { Mistake::DoubleFree } else { Mistake::Inside { call, offset } };
            self.end(Finding { mistake, buffer });
        }
        self.reports.only_one();
        self.reports.begin();
        let out = Out::to(P::open_reports(process::id()));
        let kind =
            if matches!(misuse, Misuse::Freed { .. } | Misuse::Unallocated) { "double-free" } else { "bad-free" };
        out.line(headline(kind, call).text("(").address(address).text("): ").text(brief(misuse)));
        let mut printed = 0;
        if let Some(log) = self.setting.log() {
            log.each(|t| {
                if t.address == address {
                    let what = if t.action == Action::Alloc { "allocated" } else { "freed" };
                    out.line(detail().text("buffer ").address(address).text(" of ").size(t.size));
                    let event = Event { time_ns: t.time_ns, stack: t.stack, thread: t.thread };
                    self.print_event(&out, what, event);
                    printed += 1;
                }
                printed < 2
            });
            if printed == 0 && log.count() > log.kept() {
                let line = detail().text("the log has the last ").number(log.kept()).text(" of ").number(log.count());
                out.line(line.text(" transactions, none with this address (audit_log=N keeps more)"));
            }
        }
        last_line(&out)
    }

    /// Writes another part's report into the file; standard error has its `line`.
    #[cold]
    pub fn record(&self, kind: &str, line: &Line) {
        let Some(file) = P::open_reports(process::id()) else { return };
        let text = line.as_bytes();
        let text = text.strip_prefix(b"craton: ").unwrap_or(text);
        let _ = file.write_line(&mut headline(kind, "").bytes(text));
        let mut frames = [0; 32];
        let n = if P::may_unwind() { unwind::capture_outside(&mut frames) } else { 0 };
        each_line_here(&frames[..n], |mut line| _ = file.write_line(&mut line));
    }

    pub(crate) fn report_leak(&self, out: &Out, buffer: &Buffer, lost: &Lost) {
        self.reports.begin();
        out.line(leak_line(lost));
        self.describe(out, buffer);
        self.print_event(out, "allocated", buffer.taken);
    }

    pub(crate) fn report_out(&self, call: &'static str, target: Target, count: usize, some: &[Buffer]) {
        self.reports.begin();
        let out = Out::to(P::open_reports(process::id()));
        let line = self.cache_name(Line::new().text("craton: ").text(call).text(" of "), target);
        let line = line.text(": ").number(count as u64);
        out.line(line.text(if count == 1 { " object is out" } else { " objects are out" }));
        for buffer in some {
            self.describe(&out, buffer);
            self.print_event(&out, "allocated", buffer.taken);
        }
        if count > some.len() {
            out.line(detail().text("and ").number((count - some.len()) as u64).text(" more"));
        }
    }
}

/// `buffers` of `held` bytes hang on `same` of `bytes`, allocated at one place.
#[derive(Clone, Copy, Default)]
pub(crate) struct Lost {
    pub(crate) same: usize,
    pub(crate) bytes: usize,
    pub(crate) buffers: usize,
    pub(crate) held: usize,
}

fn leak_line(lost: &Lost) -> Line {
    let mut line = headline("leak", "nothing leads to a buffer");
    if lost.same > 1 {
        line = line.text(" and to ").number(lost.same as u64 - 1).text(" more that were allocated there, ");
        line = line.size(lost.bytes).text(" in all");
    }
    match lost.buffers {
        0 => line,
        1 => line.text("; 1 buffer of ").size(lost.held).text(" hangs on it"),
        n => line.text("; ").number(n as u64).text(" buffers of ").size(lost.held).text(" hang on it"),
    }
}

fn print_here(out: &Out, frames: &[usize]) {
    each_line_here(frames, |line| out.line(line));
}

fn each_line_here(frames: &[usize], mut print: impl FnMut(Line)) {
    print(detail().text("found by thread ").number(process::thread_id().into()).text(":"));
    names::print_stack(frames, print);
}

fn last_line(out: &Out) -> ! {
    let mut frames = [0; 32];
    let n = unwind::capture_outside(&mut frames);
    last_line_at(out, &frames[..n])
}

fn last_line_at(out: &Out, frames: &[usize]) -> ! {
    print_here(out, frames);
    Line::new().text("craton: the process ends here, since what it does from now on cannot be trusted").abort()
}

/// In seconds with six digits, and how long before `began_ns`.
fn at(line: Line, time_ns: u64, began_ns: u64) -> Line {
    let seconds = |line: Line, ns: u64| {
        let mut digits = [b'0'; 6];
        let mut micros = ns / 1000 % 1_000_000;
        for digit in digits.iter_mut().rev() {
            (*digit, micros) = (b'0' + (micros % 10) as u8, micros / 10);
        }
        line.number(ns / 1_000_000_000).text(".").bytes(&digits).text(" s")
    };
    let line = seconds(line.text(" at "), time_ns);
    seconds(line.text(", "), began_ns.saturating_sub(time_ns)).text(" ago")
}

pub(crate) fn report_leaks(out: &Out, count: usize, lost: usize, buffers: usize) {
    let line = Line::new().text("craton: leaks: ").number(count as u64).text(" of ").number(buffers as u64);
    out.line(line.text(" buffers, ").size(lost).text(", are lost"));
}

fn brief(misuse: Misuse) -> &'static str {
    match misuse {
        Misuse::Freed { .. } => "free already",
        Misuse::WrongSize { .. } => "of another size",
        Misuse::WrongAlign { .. } => "of another alignment",
        Misuse::OtherHeap => "not an object of this heap",
        Misuse::NoHeap => "not a heap of Craton",
        Misuse::HeapDestroyed => "this heap has been destroyed",
        Misuse::HeapStays => "a heap of the library itself cannot be destroyed",
        Misuse::NoCache => "not an object cache of Craton",
        Misuse::CacheDestroyed => "this object cache has been destroyed",
        Misuse::OfCache { .. } => "an object of an object cache: it goes back by craton_cache_free",
        Misuse::OtherCache { .. } => "an object of another object cache",
        Misuse::NotCached { .. } => "not an object of this object cache",
        Misuse::Inside { .. } | Misuse::InsideLarge { .. } => "inside an object",
        Misuse::Unallocated => "nothing is allocated there: it was freed long ago, or never was an object",
        Misuse::Foreign => "not allocated by Craton",
    }
}

#[cfg(all(test, not(loom)))]
mod tests;
