//! The debugging kit's records in another process. A buffer is in an object of the heap, or on
//! private pages between guard pages.

use crate::heap::Heap;
use crate::names::Names;
use crate::reader::{Reader, u16_in, u32_in, word_in};
use crate::table::Table;
use crate::whatis::as_hex;
use serde::Serialize;
use std::collections::HashMap;

const MOST: u64 = 1 << 32;
const MOST_FRAMES: u32 = 64;

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Event {
    /// Of the monotonic clock.
    pub time_ns: u64,
    /// 0: none.
    pub stack: u32,
    /// 0: no event.
    pub thread: u32,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Buffer {
    pub address: u64,
    /// As asked for.
    pub size: u64,
    /// Where the object or the pages under it begin.
    pub under: u64,
    /// Of its private pages, else 0.
    pub end: u64,
    pub is_live: bool,
    /// By `debug=audit`, with its stack.
    pub is_audited: bool,
    /// Freed, its pages closed to every access.
    pub is_closed: bool,
    /// 0 for malloc, else a cache's number plus 1.
    pub target: u32,
    pub allocated: Event,
    pub freed: Event,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Beside {
    Inside,
    /// In the rest of the object under it.
    Redzone,
    ClosedPage,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Transaction {
    pub number: u64,
    /// `alloc` or `free`.
    pub action: &'static str,
    #[serde(serialize_with = "as_hex")]
    pub address: u64,
    pub bytes: u64,
    #[serde(flatten)]
    pub who: Who,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Who {
    pub thread: u32,
    pub time_ns: u64,
    /// Innermost first.
    pub stack: Vec<String>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Log {
    pub is_there: bool,
    pub count: u64,
    pub kept: u64,
    /// Newest first.
    pub transactions: Vec<Transaction>,
}

#[derive(Debug, Default)]
pub struct Kit {
    /// By address.
    pub buffers: Vec<Buffer>,
    /// In objects of the heap, by start.
    under: HashMap<u64, u32>,
    /// On private pages, by start.
    pages: Vec<u32>,
    page: u64,
    stacks: (u64, u64),
    log: u64,
    pub(crate) own: Vec<(u64, u64)>,
}

/// # Errors
/// The library's tables cannot be read.
pub fn log(heap: &Heap<'_>, last: u64) -> Result<Log, String> {
    heap.kit.log(&heap.reader, &heap.table, last)
}

impl Kit {
    pub(crate) fn read(reader: &Reader<'_>, table: &Table) -> Result<Self, String> {
        let get = |name: &str| table.get(name);
        let mut this = Self { page: 4096, ..Self::default() };
        let stacks = reader.word(get("kit.stacks")?)?;
        this.stacks = (stacks, stacks + get("kit.stacks.bytes")?);
        let ring = reader.word(get("kit.quarantine")? + get("kit.ring.at")?)?;
        let guard = get("kit.guard")?;
        let slots = reader.word(guard + get("kit.guard.ring")?)?;
        this.own =
            vec![this.stacks, (ring, ring + get("kit.ring.bytes")?), (slots, slots + get("kit.guard.ring.bytes")?)];
        let arena = reader.word(guard + get("kit.guard.arena")?)?;
        if arena != 0 && arena != u64::MAX {
            this.page = reader.word(guard + get("kit.guard.page")?)?.max(1);
            this.own.push((arena, arena + get("kit.guard.pages")? * this.page));
        }
        if reader.byte(get("kit.log.made")?) != 0 {
            this.log = get("kit.log")?;
            let (at, len) = (reader.word(this.log + get("log.entries")?)?, reader.word(this.log + get("log.len")?)?);
            this.own.push((at, at.saturating_add(len.min(MOST) * get("log.entry.bytes")?)));
        }
        let parts = get("kit.table")?;
        for part in 0..get("kit.table.parts")? {
            this.read_part(reader, table, parts + part * get("kit.part.bytes")?)?;
        }
        this.own.retain(|(from, _)| *from != 0);
        this.buffers.sort_unstable_by_key(|buffer| buffer.address);
        for (i, buffer) in this.buffers.iter().enumerate() {
            if buffer.end == 0 {
                this.under.insert(buffer.under, i as u32);
            } else {
                this.pages.push(i as u32);
                this.own.push((buffer.under - this.page.min(buffer.under), buffer.end + this.page));
            }
        }
        let buffers = &this.buffers;
        this.pages.sort_unstable_by_key(|i| buffers[*i as usize].under);
        Ok(this)
    }

    fn read_part(&mut self, reader: &Reader<'_>, table: &Table, part: u64) -> Result<(), String> {
        let get = |name: &str| table.get(name);
        let (at, places) = (reader.word(part + get("kit.part.at")?)?, reader.word(part + get("kit.part.places")?)?);
        if places == 0 || places > MOST {
            return Ok(());
        }
        let bytes = get("kit.buffer.bytes")? as usize;
        self.own.push((at, at + places * bytes as u64));
        let all = reader.bytes(at, places as usize * bytes)?;
        let place = |name: &str| get(&format!("kit.buffer.{name}")).map(|at| at as usize);
        let (address, size, under) = (place("address")?, place("size")?, place("under")?);
        let (state, kind, target) = (place("state")?, place("kind")?, place("target")?);
        let (allocated, freed) = (place("taken")?, place("given")?);
        let (checks, audit) = (place("checks")?, get("kit.check.audit")?);
        let (live, closed) = (get("kit.state.live")? as u8, get("kit.state.closed")? as u8);
        let (heap, slot) = (get("kit.kind.heap")? as u8, get("kit.kind.slot")? as u8);
        let (time, stack, thread) = (get("kit.event.time")?, get("kit.event.stack")?, get("kit.event.thread")?);
        for entry in all.chunks_exact(bytes.max(1)).filter(|entry| word_in(entry, address) != 0) {
            let event = |at: usize| Event {
                time_ns: word_in(entry, at + time as usize),
                stack: u32_in(entry, at + stack as usize),
                thread: u32_in(entry, at + thread as usize),
            };
            let mut buffer = Buffer {
                address: word_in(entry, address),
                size: word_in(entry, size),
                under: word_in(entry, under),
                end: 0,
                is_live: entry[state] == live,
                is_audited: u64::from(u16_in(entry, checks)) & audit != 0,
                is_closed: entry[state] == closed,
                target: u16_in(entry, target).into(),
                allocated: event(allocated),
                freed: event(freed),
            };
            if entry[kind] == slot {
                buffer.end = buffer.under + self.page;
            } else if entry[kind] != heap {
                buffer.end = buffer.address.saturating_add(buffer.size.max(1)).next_multiple_of(self.page);
            }
            self.buffers.push(buffer);
        }
        Ok(())
    }

    /// Whether `debug=audit` was ever on.
    pub(crate) fn is_audited(reader: &Reader<'_>, table: &Table) -> Result<bool, String> {
        Ok(reader.byte(table.get("kit.log.made")?) != 0)
    }

    pub fn under(&self, start: u64) -> Option<&Buffer> {
        self.under.get(&start).map(|i| &self.buffers[*i as usize])
    }

    /// Of objects of the heap that buffers lie in.
    pub fn under_starts(&self) -> impl Iterator<Item = u64> + '_ {
        self.under.keys().copied()
    }

    pub fn at(&self, address: u64) -> Option<&Buffer> {
        let i = self.buffers.binary_search_by_key(&address, |buffer| buffer.address).ok()?;
        Some(&self.buffers[i])
    }

    /// By private or guard pages; of two buffers, the one before the address.
    pub fn on_page(&self, at: u64) -> Option<(&Buffer, Beside)> {
        let buffer = |i: usize| self.pages.get(i).map(|i| &self.buffers[*i as usize]);
        let behind = self.pages.partition_point(|i| self.buffers[*i as usize].under <= at);
        if let Some(before) = behind.checked_sub(1).and_then(buffer) {
            if at < before.end {
                return Some((before, before.beside(at)));
            }
            if at - before.end < self.page {
                return Some((before, Beside::ClosedPage));
            }
        }
        buffer(behind).filter(|next| next.under - at <= self.page).map(|next| (next, Beside::ClosedPage))
    }

    pub fn stack(&self, reader: &Reader<'_>, number: u32) -> Vec<u64> {
        let at = self.stacks.0 + u64::from(number) * 8;
        if number == 0 || self.stacks.0 == 0 || at >= self.stacks.1 {
            return Vec::new();
        }
        let frames = reader.u32(at + 4).unwrap_or(0).min(MOST_FRAMES);
        let bytes = reader.bytes(at + 8, frames as usize * 8).unwrap_or_default();
        crate::memory::words(&bytes).collect()
    }

    pub fn who(&self, reader: &Reader<'_>, names: &Names<'_>, event: Event) -> Option<Who> {
        let stack = || names.stack(self.stack(reader, event.stack));
        (event.thread != 0).then(|| Who { thread: event.thread, time_ns: event.time_ns, stack: stack() })
    }

    fn log(&self, reader: &Reader<'_>, table: &Table, last: u64) -> Result<Log, String> {
        if self.log == 0 {
            return Ok(Log::default());
        }
        let get = |name: &str| table.get(name);
        let at = |name: &str| reader.word(self.log + table.get(name)?);
        let (entries, len, count) = (at("log.entries")?, at("log.len")?, at("log.next")?);
        let (bytes, shift) = (get("log.entry.bytes")?, get("log.action.shift")?);
        let mut log = Log { is_there: true, count, kept: count.min(len), transactions: Vec::new() };
        let names = Names::new(reader.memory);
        for number in (count - log.kept..count).rev().take(last as usize) {
            let entry = reader.bytes(entries + number % len.max(1) * bytes, bytes as usize)?;
            let word = |name: &str| Ok::<u64, String>(word_in(&entry, get(name)? as usize));
            let half = |name: &str| Ok::<u32, String>(u32_in(&entry, get(name)? as usize));
            let (time_ns, who) = (word("log.entry.time")?, half("log.entry.who")?);
            // A thread was just writing it.
            if time_ns == 0 {
                continue;
            }
            let event = Event { time_ns, stack: half("log.entry.stack")?, thread: who & ((1 << shift) - 1) };
            log.transactions.push(Transaction {
                number,
                action: if who >> shift == 1 { "alloc" } else { "free" },
                address: word("log.entry.address")?,
                bytes: word("log.entry.size")?,
                who: self.who(reader, &names, event).unwrap_or_default(),
            });
        }
        Ok(log)
    }
}

impl Buffer {
    pub fn beside(&self, at: u64) -> Beside {
        if at >= self.address && at - self.address < self.size { Beside::Inside } else { Beside::Redzone }
    }

    /// Bytes before its start (negative) or behind its last byte.
    pub fn beyond(&self, at: u64) -> i64 {
        let past = || (at - self.address + 1).saturating_sub(self.size) as i64;
        if at < self.address { -((self.address - at) as i64) } else { past() }
    }
}
