//! The search for leaks at the exit, in a copy of the process.
//!
//! Roots: every writable word outside of buffers, the exiting thread's registers and used stack,
//! all of other threads' stacks unless they ended, not their registers.
//!
//! **Unsafe.** Reads all memory of the process.

use crate::leak::{self, Search, Suspect};
use crate::out::Out;
use crate::report::{Lost, report_leaks};
use crate::setting::LEAK;
use crate::table::{Buffer, State};
use crate::{Kit, Process};
use core::mem::size_of;
use craton_os::thread::block::Blocks;
use craton_os::{Line, copy, mapping, maps, process, unwind};

const MOST_TOLD: usize = 50;
const MOST_RANGES: usize = 1 << 16;

fn table_of<T>(len: usize) -> Option<&'static mut [T]> {
    let at = mapping::map((len.max(1) * size_of::<T>()).next_multiple_of(4096), 1)? as *mut T;
    // SAFETY: fresh zeros, valid for these types.
    Some(unsafe { core::slice::from_raw_parts_mut(at, len) })
}

impl<P: Process> Kit<P> {
    pub(crate) fn leaks_at_exit(&self) {
        if !self.setting.searches_leaks() {
            return;
        }
        let mut place = 0usize;
        // After `main` nothing of the stack is the program's: the exit's frames overwrite `main`'s.
        let here = core::hint::black_box(&raw mut place) as usize;
        let stack_from = unwind::after_main().unwrap_or(here);
        let blocks = Blocks::find();
        let pid = process::id();
        if copy::run(|| u8::from(!self.search_leaks(pid, stack_from, blocks))) != Some(0) {
            Line::new()
                .text("craton: leaks: no search was possible: the system gave no copy of the process, or no memory")
                .print();
        }
    }

    fn search_leaks(&self, pid: u32, stack_from: usize, blocks: Option<Blocks>) -> bool {
        let (mut count, mut live) = (0, 0);
        self.table.each_in_copy(|b| {
            count += usize::from(is_suspect(b));
            live += usize::from(is_suspect(b) && b.state == State::Live);
        });
        let parts = (table_of::<Suspect>(count), table_of::<u32>(count), table_of::<Buffer>(count));
        let (Some(suspects), Some(stack), Some(buffers)) = parts else { return false };
        let Some(ranges) = table_of::<(usize, usize)>(MOST_RANGES) else { return false };
        let mut n = 0;
        self.table.each_in_copy(|b| {
            if is_suspect(b) && n < count {
                let state = if b.state == State::Live { leak::State::Lost } else { leak::State::Told };
                suspects[n] = Suspect { address: b.address, size: b.size, state, index: n as u32 };
                buffers[n] = *b;
                n += 1;
            }
        });
        let mut skips = Skips { ranges: [(0, 0); Skips::MOST], len: 0 };
        skips.add(suspects.as_ptr() as usize, size_of_val(suspects));
        skips.add(stack.as_ptr() as usize, size_of_val(stack));
        skips.add(buffers.as_ptr() as usize, size_of_val(buffers));
        skips.add(ranges.as_ptr() as usize, size_of_val(ranges));
        self.own_ranges(&mut |at, bytes| skips.add(at, bytes));
        let mut known = 0;
        let complete = maps::each(|m| {
            if m.readable && m.writable && known < ranges.len() && !is_device(m.name) {
                ranges[known] = (m.start, m.end);
                known += 1;
            }
        });
        if !complete {
            return false;
        }
        let mut search = Search::new(suspects, stack);
        let mut words = |at: usize, bytes: usize, see: &mut dyn FnMut(usize)| read(at, at + bytes, see);
        let touched = maps::Touched::open();
        for (start, end) in &ranges[..known] {
            // The unused part has old values, as an ended thread's stack.
            let from = if (*start..*end).contains(&stack_from) {
                stack_from
            } else {
                blocks.map_or(*start, |blocks| stack_end(blocks, &touched, *start, *end))
            };
            touched.each(*start, *end, |first, end| {
                if end > from {
                    roots(&mut search, first.max(from), end, &skips, &mut words);
                }
            });
        }
        self.print_leaks(pid, search, (buffers, live), &mut words);
        true
    }

    fn print_leaks(
        &self,
        pid: u32,
        mut search: Search<'_>,
        (buffers, live): (&[Buffer], usize),
        words: &mut impl FnMut(usize, usize, &mut dyn FnMut(usize)),
    ) {
        let Some(places) = table_of::<(u32, u32, Lost)>(MOST_TOLD) else { return };
        let (mut count, mut bytes, mut used) = (0, 0, 0);
        search.finish(words, |s, hanging, hanging_bytes| {
            let buffer = &buffers[s.index as usize];
            (count, bytes) = (count + 1 + hanging, bytes + s.size + hanging_bytes);
            let same = places[..used].iter_mut().find(|p| p.0 == buffer.taken.stack && p.0 != 0);
            let lost = match same {
                Some((_, _, lost)) => lost,
                None if used < MOST_TOLD => {
                    places[used] = (buffer.taken.stack, s.index, Lost::default());
                    used += 1;
                    &mut places[used - 1].2
                }
                None => return,
            };
            (lost.same, lost.bytes) = (lost.same + 1, lost.bytes + s.size);
            (lost.buffers, lost.held) = (lost.buffers + hanging, lost.held + hanging_bytes);
        });
        if count == 0 {
            return;
        }
        let out = Out::to(P::open_reports(pid));
        for (_, index, lost) in &places[..used] {
            self.report_leak(&out, &buffers[*index as usize], lost);
        }
        report_leaks(&out, count, bytes, live);
    }
}

/// Behind an ended thread's stack lies its block.
fn stack_end(blocks: Blocks, touched: &maps::Touched, start: usize, end: usize) -> usize {
    let mut found = start;
    touched.each(start, end, |first, last| {
        // SAFETY: readable in this copy.
        if let Some(at) = unsafe { blocks.ended_in(first, last) } {
            found = at;
        }
    });
    found
}

struct Skips {
    ranges: [(usize, usize); Skips::MOST],
    len: usize,
}

impl Skips {
    const MOST: usize = 32;

    fn add(&mut self, at: usize, bytes: usize) {
        if at != 0 && bytes > 0 {
            self.ranges[self.len] = (at, at + bytes);
            self.len += 1;
        }
    }

    fn each(&self) -> impl Iterator<Item = (usize, usize)> {
        self.ranges[..self.len].iter().copied()
    }
}

fn is_suspect(buffer: &Buffer) -> bool {
    buffer.checks & LEAK != 0 && matches!(buffer.state, State::Live | State::Freed)
}

fn is_device(name: &[u8]) -> bool {
    name.starts_with(b"/dev/") || name.starts_with(b"[v")
}

fn read(from: usize, to: usize, see: &mut dyn FnMut(usize)) {
    let mut at = from.next_multiple_of(size_of::<usize>());
    while at + size_of::<usize>() <= to {
        // SAFETY: readable in this copy, in which nothing changes.
        see(unsafe { (at as *const usize).read_volatile() });
        at += size_of::<usize>();
    }
}

fn roots(
    search: &mut Search<'_>,
    from: usize,
    to: usize,
    skips: &Skips,
    words: &mut impl FnMut(usize, usize, &mut dyn FnMut(usize)),
) {
    const WORD: usize = size_of::<usize>();
    let mut at = from.next_multiple_of(WORD);
    while at < to {
        let skip = skips.each().find(|(start, end)| (*start..*end).contains(&at)).map(|(_, end)| end);
        if let Some(end) = skip.or_else(|| search.end_of_suspect_at(at)) {
            at = end.next_multiple_of(WORD);
            continue;
        }
        let next = skips.each().map(|(start, _)| start).filter(|start| *start > at).min();
        let stop = next.unwrap_or(to).min(search.next_suspect_after(at).unwrap_or(to)).min(to);
        while at + WORD <= stop {
            // SAFETY: as in `read`.
            search.root(unsafe { (at as *const usize).read_volatile() }, words);
            at += WORD;
        }
        at = stop.next_multiple_of(WORD);
    }
}

#[cfg(all(test, not(loom)))]
mod tests;
