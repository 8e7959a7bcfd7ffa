//! Accesses to closed pages: the handler reports which buffer, then passes the signal on. An
//! address made of a pattern was read from freed or unwritten memory: registers may show from which
//! buffer.
//!
//! **Unsafe.** Reads buffers.

use crate::report::{Finding, Mistake};
use crate::setting::GUARD;
use crate::table::{Buffer, Kind, State};
use crate::{Kit, Process};
use crate::{area, guard, pattern};
use craton_base::{Clock, Platform};
use craton_heap::Heap;
use craton_heap::hooks::Hooks;
use craton_os::fault::Fault;
use craton_os::{precise_ns, process, unwind, watch};

/// `Pattern`: the address, and whether of freed memory.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Cause {
    Buffer(Finding),
    Pattern(usize, bool),
}

/// Unbounded in the arena, which holds nothing else.
const FAR: usize = 1 << 20;
/// Closer to the stack pointer it is a stack's end.
const NEAR_STACK: usize = 64 << 10;

fn gap(buffer: &Buffer, address: usize) -> usize {
    let end = buffer.address + buffer.size;
    if address < buffer.address { buffer.address - address } else { address.saturating_sub(end) }
}

impl<P: Process> Kit<P> {
    /// The handler does not call this while the thread is in the kit, whose locks it holds.
    pub fn on_fault<F: Platform, C: Clock, H: Hooks>(&self, heap: &Heap<F, C, H>, fault: &Fault) {
        if fault.is_watch {
            return self.on_watch(fault);
        }
        let mut frames = [0; 32];
        let registers = unwind::Registers { pc: fault.at, sp: fault.stack, bp: fault.frame, bx: fault.base };
        let n = unwind::capture_from(registers, &mut frames);
        match self.cause_of(fault, |address| heap.page_of(address).is_some()) {
            Some(Cause::Buffer(finding)) => self.print_fault(&finding, &frames[..n]),
            Some(Cause::Pattern(value, freed)) => self.print_pattern(value, freed, &frames[..n]),
            None => {}
        }
    }

    pub(crate) fn watch(&self, buffer: &Buffer) {
        if buffer.checks & GUARD != 0 && buffer.kind != Kind::Heap {
            let now_ns = if buffer.taken.time_ns > 0 { buffer.taken.time_ns } else { precise_ns() };
            self.watches.follow(buffer, guard::end_of(buffer), now_ns);
        }
    }

    fn on_watch(&self, fault: &Fault) {
        let Some(buffer) = self.watches.buffer_of(fault.address).and_then(|address| self.table.get(address)) else {
            return;
        };
        if buffer.state != State::Live || self.watches.is_quiet(fault.at) || !process::can_read(fault.at - 12) {
            return;
        }
        // SAFETY: code that has just run; the page before it can be read.
        if unsafe { watch::follows_vectors(fault.at) } {
            return;
        }
        // The processor does not say which byte was read: the nearest. A write is seen.
        let offset = if fault.address < buffer.address { -1 } else { buffer.size as isize };
        // SAFETY: a live buffer and its redzones can be read.
        let mistake = match unsafe { area::check_redzones(&buffer, self.secret()) } {
            Some((offset, wrong)) => Mistake::Written { offset, wrong, found_by: "a watchpoint" },
            None => {
                Mistake::Touched { address: buffer.address.wrapping_add_signed(offset), write: Some(false), offset }
            }
        };
        let mut frames = [0; 32];
        let registers = unwind::Registers { pc: fault.at, sp: fault.stack, bp: fault.frame, bx: fault.base };
        let n = unwind::capture_from(registers, &mut frames);
        self.end_at(&Finding { mistake, buffer }, &frames[..n]);
    }

    pub(crate) fn cause_of(&self, fault: &Fault, in_heap: impl Fn(usize) -> bool) -> Option<Cause> {
        let near = || {
            let buffer = self.buffer_near(fault.address, in_heap(fault.address));
            buffer.or_else(|| self.logged(fault.address)).or_else(|| self.buffer_far(fault.address, fault.stack))
        };
        if fault.address != 0
            && let Some(buffer) = near()
        {
            let offset = fault.address as isize - buffer.address as isize;
            let mistake = Mistake::Touched { address: fault.address, write: fault.write, offset };
            return Some(Cause::Buffer(Finding { mistake, buffer }));
        }
        let patterns = [(pattern::FREED, true), (pattern::FRESH, false)];
        let made_of = |value| patterns.into_iter().find(|(word, _)| pattern::is_made_of(value, *word));
        if let Some((at, buffer)) = fault.target_at.and_then(|at| Some((at, self.buffer_around(at)?))) {
            // SAFETY: the instruction read this word of an open buffer, or of its last page.
            let value = unsafe { (at as *const usize).read_unaligned() };
            if let Some((_, freed)) = made_of(value) {
                let mistake = Mistake::Pattern { value, freed, buffers: 1 };
                return Some(Cause::Buffer(Finding { mistake, buffer }));
            }
        }
        let mut values = fault.registers.into_iter().chain([fault.address]);
        let (value, (word, freed)) = values.find_map(|value| Some((value, made_of(value)?)))?;
        Some(match self.buffer_with(fault, word, freed) {
            Some((buffer, buffers)) => {
                Cause::Buffer(Finding { mistake: Mistake::Pattern { value, freed, buffers }, buffer })
            }
            None => Cause::Pattern(value, freed),
        })
    }

    /// Beside the heap only the next page counts.
    fn buffer_near(&self, address: usize, in_heap: bool) -> Option<Buffer> {
        let page = process::page_size();
        let mut best: Option<(usize, Buffer)> = None;
        self.table.each(|b| {
            if b.kind == Kind::Heap && in_heap {
                return;
            }
            let end = (b.address + b.size).next_multiple_of(page).max(b.under + page);
            let beside = b.under - page..end + page;
            if beside.contains(&address) {
                let distance = gap(b, address);
                if best.is_none_or(|(least, _)| distance < least) {
                    best = Some((distance, *b));
                }
            }
        });
        best.map(|(_, buffer)| buffer)
    }

    fn buffer_far(&self, address: usize, stack: usize) -> Option<Buffer> {
        if address.abs_diff(stack) < NEAR_STACK {
            return None;
        }
        let most = if self.guards.has(address) { usize::MAX } else { FAR };
        let mut best: Option<(usize, Buffer)> = None;
        self.table.each(|b| {
            let distance = gap(b, address);
            if b.kind != Kind::Heap && distance <= most && best.is_none_or(|(least, _)| distance < least) {
                best = Some((distance, *b));
            }
        });
        best.map(|(_, buffer)| buffer)
    }

    fn buffer_around(&self, address: usize) -> Option<Buffer> {
        self.table.find_where(|b| (b.address..b.address + b.size).contains(&address) && b.state != State::Closed)
    }

    /// A register points into the buffer. Also returns how many there are; of several the one to
    /// which the last register leads, since the first four, R8 to R11, are seldom those of an
    /// access: an earlier call may have left them.
    fn buffer_with(&self, fault: &Fault, word: u32, freed: bool) -> Option<(Buffer, usize)> {
        let (mut found, mut buffers) = (None, 0);
        self.table.each(|b| {
            let is_fit = if freed { b.state == State::Freed } else { b.state == State::Live };
            let within = fault.registers.iter().rposition(|r| (b.address..b.address + b.size.max(1)).contains(r));
            if is_fit && let Some(register) = within {
                // SAFETY: a buffer that is not closed can be read.
                let holds =
                    (0..b.size / 4).any(|i| unsafe { (b.address as *const u32).add(i).read_unaligned() } == word);
                if holds {
                    if found.is_none_or(|(last, _)| register > last) {
                        found = Some((register, *b));
                    }
                    buffers += 1;
                }
            }
        });
        found.map(|(_, buffer)| (buffer, buffers))
    }
}
