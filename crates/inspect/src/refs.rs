//! An object's holders, and the way of pointers that keeps it alive.
//!
//! **What.** The words that point at or into the object, and a shortest chain of pointers from a
//! register, stack or variable to it.
//!
//! **State.** The search of [`crate::leaks`], by distance from the roots: for each object the place
//! of the word that led to it first.
//!
//! **Cost.** One read of each word of memory, by one thread, since the first way that is found is
//! the shortest; 8 bytes for each place of an object, and 8 for each object that is found and not
//! read yet.

use crate::heap::{Heap, Object};
use crate::leaks::roots;
use crate::names::Names;
use crate::objects::{BATCH, Found, Numbered, Objects};
use serde::Serialize;
use std::collections::VecDeque;

/// A word with a pointer.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Holder {
    /// Where the word lies; 0 for a register.
    #[serde(serialize_with = "crate::whatis::as_hex")]
    pub at: u64,
    /// Says `object`, `stack`, `variable`, `memory` or `register`.
    pub kind: &'static str,
    /// The object that holds it, or 0.
    #[serde(serialize_with = "crate::whatis::as_hex")]
    pub object: u64,
    pub object_bytes: u64,
    /// From the start of the object or variable.
    pub offset: u64,
    /// The variable, the file, or the thread's number.
    pub name: String,
    /// How far into the next object it points.
    pub into: u64,
}

#[derive(Clone, Debug, Default, Serialize)]
pub struct Refs {
    #[serde(serialize_with = "crate::whatis::as_hex")]
    pub address: u64,
    pub bytes: u64,
    /// Words that point to the object, roots first.
    pub holders: Vec<Holder>,
    /// More than [`MOST`].
    pub more: u64,
    /// From a root to the object, its first and last [`ENDS`] steps; empty if it is lost.
    pub path: Vec<Holder>,
    /// Steps between them that are not in `path`.
    pub path_left_out: u64,
}

/// Holders that are listed.
const MOST: usize = 1000;
/// Steps of a path at each end.
pub const ENDS: usize = 10;
/// Instead of a word's place: no way was found yet, or a register.
const NOWHERE: u64 = 0;
const IN_REGISTER: u64 = 1;

/// # Errors
/// No live object is at the address, or the library's tables cannot be read.
pub fn refs(heap: &Heap<'_>, at: u64) -> Result<Refs, String> {
    let objects = Objects::new(heap)?;
    let Some((target, object)) = objects.around(at) else {
        return Err(format!("no live object is at {at:#x}; `whatis {at:#x}` shows what is there"));
    };
    let names = Names::new(heap.reader.memory);
    let mut found = Refs { address: object.start, bytes: object.size, ..Refs::default() };
    let mut search = Search { objects: &objects, led: vec![NOWHERE; objects.numbers()], open: VecDeque::new() };
    let add = |found: &mut Refs, holder: &dyn Fn() -> Holder| match found.holders.len() < MOST {
        true => found.holders.push(holder()),
        false => found.more += 1,
    };
    for (from, to) in roots(heap)? {
        heap.reader.for_each_word(from, to, |at, word| {
            if search.reach(at, word) == Some(target) {
                add(&mut found, &|| holder(heap, &objects, &names, at, word - object.start));
            }
        });
    }
    // Last: a variable's name explains more.
    for thread in heap.reader.memory.threads() {
        for word in &thread.registers {
            if search.reach(IN_REGISTER, *word) == Some(target) {
                add(&mut found, &|| in_register(thread.id, word - object.start));
            }
        }
    }
    let mut batch = Vec::new();
    let (mut words, mut hits) = (Vec::with_capacity(BATCH), Vec::with_capacity(BATCH));
    // Places and values.
    let mut look = |words: &mut Vec<(u64, u64)>, search: &mut Search<'_, '_>, found: &mut Refs| {
        objects.find_all(words.iter().map(|(_, word)| *word), &mut hits);
        let led = |hit: &Option<Found>| hit.map_or(0, |hit| search.led[hit.number as usize]);
        std::hint::black_box(hits.iter().map(led).fold(0, |all, led| all ^ led));
        for ((at, word), hit) in words.drain(..).zip(hits.drain(..)) {
            if search.reach_found(at, hit) == Some(target) {
                add(found, &|| holder(heap, &objects, &names, at, word - object.start));
            }
        }
    };
    while !search.open.is_empty() {
        let len = search.open.len().min(BATCH);
        batch.extend(search.open.drain(..len));
        objects.fetch(&heap.reader, &batch);
        for held in batch.drain(..) {
            objects.for_each_word_of(&heap.reader, held, |at, word| {
                if objects.may_find(word) {
                    words.push((at, word));
                    if words.len() == BATCH {
                        look(&mut words, &mut search, &mut found);
                    }
                }
            });
        }
        look(&mut words, &mut search, &mut found);
    }
    search.path(heap, &names, (target, object), &mut found);
    // Lost objects hold pointers, too.
    let is_lost = |number| objects.live().has(number) && search.led[number as usize] == NOWHERE;
    objects.for_each(is_lost, |holding| {
        objects.for_each_word_of(&heap.reader, holding, |at, word| {
            if word.wrapping_sub(object.start) < object.size.max(1) {
                add(&mut found, &|| holder(heap, &objects, &names, at, word - object.start));
            }
        });
    });
    Ok(found)
}

struct Search<'o, 'm> {
    objects: &'o Objects<'m>,
    /// By object: the place of the word that led there first.
    led: Vec<u64>,
    open: VecDeque<Found>,
}

impl Search<'_, '_> {
    /// The object that `word`, which lies at `at`, points to.
    fn reach(&mut self, at: u64, word: u64) -> Option<u32> {
        self.reach_found(at, self.objects.find(word))
    }

    fn reach_found(&mut self, at: u64, found: Option<Found>) -> Option<u32> {
        let found = found.filter(|found| self.objects.live().has(found.number))?;
        let led = &mut self.led[found.number as usize];
        if *led == NOWHERE {
            *led = at;
            self.open.push_back(found);
        }
        Some(found.number)
    }

    fn path(&self, heap: &Heap<'_>, names: &Names<'_>, target: Numbered, found: &mut Refs) {
        let (mut last, mut first) = (Vec::new(), VecDeque::new());
        let mut to = target;
        loop {
            let (number, Object { start, .. }) = to;
            let at = self.led[number as usize];
            if at == NOWHERE {
                break;
            }
            if at == IN_REGISTER {
                let thread = |word: &u64| self.objects.around(*word).is_some_and(|(i, _)| i == number);
                let all = heap.reader.memory.threads();
                let word = all.iter().find_map(|t| Some((t.id, *t.registers.iter().find(|word| thread(word))?)));
                first.extend(word.map(|(id, word)| in_register(id, word - start)));
                break;
            }
            let into = heap.reader.word(at).unwrap_or(start).wrapping_sub(start);
            let step = || holder(heap, self.objects, names, at, into);
            if last.len() < ENDS {
                last.push(step());
            } else {
                first.push_back(step());
            }
            if first.len() > ENDS {
                first.pop_front();
                found.path_left_out += 1;
            }
            // A word in the heap was read because something led to its object.
            let Some(from) = self.objects.around(at) else { break };
            to = from;
        }
        found.path = first.into_iter().rev().chain(last.into_iter().rev()).collect();
    }
}

fn in_register(thread: u32, into: u64) -> Holder {
    Holder { kind: "register", name: format!("thread {thread}"), into, ..Holder::default() }
}

fn holder(heap: &Heap<'_>, objects: &Objects<'_>, names: &Names<'_>, at: u64, into: u64) -> Holder {
    if let Some((_, Object { start, size, .. })) = objects.around(at) {
        return Holder {
            at,
            kind: "object",
            object: start,
            object_bytes: size,
            offset: at - start,
            into,
            ..Holder::default()
        };
    }
    let memory = heap.reader.memory;
    let map = memory.map_at(at);
    if let Some(thread) = memory.threads().iter().find(|t| map.is_some_and(|map| map.contains(t.stack))) {
        let name = format!("thread {}", thread.id);
        return Holder { at, kind: "stack", offset: at.saturating_sub(thread.stack), name, into, ..Holder::default() };
    }
    if let Some((name, offset)) = names.symbol(at) {
        return Holder { at, kind: "variable", offset, name, into, ..Holder::default() };
    }
    let name = map.map_or(String::new(), |map| map.path.clone());
    let offset = map.map_or(0, |map| at - map.start);
    Holder { at, kind: "memory", offset, name, into, ..Holder::default() }
}

impl std::fmt::Display for Holder {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { at, object, object_bytes, offset, name, .. } = self;
        match self.kind {
            "register" => write!(f, "a register of {name}")?,
            "stack" => write!(f, "{at:#x}, {offset:#x} above the stack pointer of {name}")?,
            "variable" => write!(f, "{at:#x}, {name}+{offset:#x}")?,
            "object" => write!(f, "{at:#x}, {offset} into the object of {object_bytes} bytes at {object:#x}")?,
            _ if name.is_empty() => write!(f, "{at:#x}, in anonymous memory")?,
            _ => write!(f, "{at:#x}, {offset:#x} into a mapping of {name}")?,
        }
        match self.into {
            0 => Ok(()),
            1 => f.write_str(" (points 1 byte into it)"),
            into => write!(f, " (points {into} bytes into it)"),
        }
    }
}
