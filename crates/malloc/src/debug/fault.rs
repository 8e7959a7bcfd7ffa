//! What a program touches that it may not.
//!
//! **What.** Closed pages beside and under buffers show as faults. The handler looks for the buffer, and says what was done to it; the signal then
//! goes where it went before. An address that is made of a pattern was read from memory that was freed or never written: the registers may
//! show from which buffer.
//!
//! **Unsafe.** Reads buffers.

use super::report::{self, Mistake};
use super::table::{self, Buffer, Kind, State};
use crate::nested;
use crate::statics::HEAP;
use craton_os::fault::{self, Fault};
use craton_os::{process, unwind};
use craton_slab::debug::pattern;

/// Watches from now on.
pub(super) fn watch() {
    fault::install(on_fault);
}

fn on_fault(fault: &Fault) {
    // Who is in the kit holds its locks; what fails there is no buffer's fault.
    if nested::is_nested() {
        return;
    }
    nested::within(|| look(fault));
}

fn look(fault: &Fault) {
    let mut frames = [0; 32];
    let registers = unwind::Registers { pc: fault.at, sp: fault.stack, bp: fault.frame, bx: fault.base };
    let n = unwind::capture_from(registers, &mut frames);
    let frames = &frames[..n];
    if let Some(buffer) =
        buffer_near(fault.address).or_else(|| report::logged(fault.address)).filter(|_| fault.address != 0)
    {
        let offset = fault.address as isize - buffer.address as isize;
        report::tell_fault(Mistake::Touched { address: fault.address, write: fault.write, offset }, &buffer, frames);
        return;
    }
    let patterns = [(pattern::FREED, true), (pattern::FRESH, false)];
    if let Some((at, buffer)) = fault.target_at.and_then(|at| Some((at, buffer_around(at)?))) {
        // SAFETY: a word of a buffer that is not closed, or where that ends on the same page: the instruction has read it.
        let value = unsafe { (at as *const usize).read_unaligned() };
        if let Some((_, freed)) = patterns.into_iter().find(|(word, _)| pattern::is_made_of(value, *word)) {
            report::tell_fault(Mistake::Pattern { value, freed, buffers: 1 }, &buffer, frames);
            return;
        }
    }
    for value in fault.registers.into_iter().chain([fault.address]) {
        if let Some((word, freed)) = patterns.into_iter().find(|(word, _)| pattern::is_made_of(value, *word)) {
            match buffer_with(fault, word, freed) {
                Some((buffer, buffers)) => {
                    report::tell_fault(Mistake::Pattern { value, freed, buffers }, &buffer, frames);
                }
                None => report::tell_pattern(value, freed, frames),
            }
            return;
        }
    }
}

/// The buffer on whose pages, or on the closed ones beside them, an address lies: if two do, the one that is nearer. Of buffers on the heap only those
/// beside its ends: an address a page before the first one or behind the last, where nothing is.
fn buffer_near(address: usize) -> Option<Buffer> {
    let (page, in_heap) = (process::page_size(), HEAP.page_of(address).is_some());
    let mut best: Option<(usize, Buffer)> = None;
    table::each(|b| {
        if b.kind == Kind::Heap && in_heap {
            return;
        }
        let end = (b.address + b.size).next_multiple_of(page).max(b.under + page);
        let beside = b.under - page..end + page;
        if beside.contains(&address) {
            let distance =
                if address < b.address { b.address - address } else { address.saturating_sub(b.address + b.size) };
            if best.is_none_or(|(least, _)| distance < least) {
                best = Some((distance, *b));
            }
        }
    });
    best.map(|(_, buffer)| buffer)
}

/// The buffer that an address lies in, if it can be read.
fn buffer_around(address: usize) -> Option<Buffer> {
    table::one_where(|b| (b.address..b.address + b.size).contains(&address) && b.state != State::Closed)
}

/// A buffer that a register points into and that holds the pattern, from which the address may have been read, and how many such there are.
fn buffer_with(fault: &Fault, word: u32, freed: bool) -> Option<(Buffer, usize)> {
    let (mut found, mut buffers) = (None, 0);
    table::each(|b| {
        let is_fit = if freed { b.state == State::Freed } else { b.state == State::Live };
        let within = fault.registers.iter().any(|r| (b.address..b.address + b.size.max(1)).contains(r));
        if is_fit && within {
            // SAFETY: a buffer that is not closed can be read.
            let holds = (0..b.size / 4).any(|i| unsafe { (b.address as *const u32).add(i).read_unaligned() } == word);
            if holds {
                found = found.or(Some(*b));
                buffers += 1;
            }
        }
    });
    found.map(|buffer| (buffer, buffers))
}
