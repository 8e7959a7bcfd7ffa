//! Live objects by who uses them, and by what they are.
//!
//! **What.** An object's user is the best that is known: the allocation site that the debugging kit
//! recorded, the table of virtual functions that its first word points to, its object cache, its
//! heap, or else its size class.

use crate::heap::{Heap, Kind, Object};
use crate::leaks::cache_of;
use crate::names::Names;
use serde::Serialize;
use std::cmp::Reverse;
use std::collections::HashMap;

#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct User {
    /// Says `site`, `type`, `cache`, `heap` or `class`.
    pub kind: &'static str,
    /// A site's functions, the innermost first; else one name.
    pub name: Vec<String>,
    pub objects: u64,
    pub bytes: u64,
    /// One of them.
    #[serde(serialize_with = "crate::whatis::as_hex")]
    pub example: u64,
}

#[derive(Clone, Debug, Default, Serialize)]
pub struct Users {
    pub objects: u64,
    pub bytes: u64,
    /// Those with most bytes first.
    pub users: Vec<User>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct HistogramRow {
    pub object_bytes: u64,
    /// The symbol that the first word points to; empty for other contents.
    pub first_word: String,
    pub objects: u64,
    pub bytes: u64,
    #[serde(serialize_with = "crate::whatis::as_hex")]
    pub example: u64,
}

#[derive(Clone, Debug, Default, Serialize)]
pub struct Histogram {
    pub objects: u64,
    pub bytes: u64,
    /// Those with most bytes first.
    pub rows: Vec<HistogramRow>,
}

#[derive(Clone, PartialEq, Eq, Hash)]
enum Key {
    /// The kit's number of a stack.
    Site(u32),
    Type(String),
    Cache(String),
    Heap(u32),
    /// By bytes.
    Class(u64),
}

/// # Errors
/// The library's tables cannot be read.
pub fn users(heap: &Heap<'_>) -> Result<Users, String> {
    let mut first = FirstWords::new(heap);
    let mut all = HashMap::new();
    heap.for_each_out(|object| add(&mut all, first.user(object), object));
    let names = Names::new(heap.reader.memory);
    let mut found = Users::default();
    // One site can have several numbers.
    let mut named: HashMap<(&'static str, Vec<String>), Sum> = HashMap::new();
    for (key, sum) in all {
        let (kind, name) = match key {
            Key::Site(stack) => ("site", names.stack(heap.kit.stack(&heap.reader, stack))),
            Key::Type(name) => ("type", vec![name]),
            Key::Cache(name) => ("cache", vec![name]),
            Key::Heap(own) => ("heap", vec![heap.own_name(own)?]),
            Key::Class(bytes) => ("class", vec![format!("objects of {bytes} bytes")]),
        };
        let user = named.entry((kind, name)).or_insert(Sum { example: sum.example, ..Sum::default() });
        user.objects += sum.objects;
        user.bytes += sum.bytes;
    }
    for ((kind, name), Sum { objects, bytes, example }) in named {
        found.objects += objects;
        found.bytes += bytes;
        found.users.push(User { kind, name, objects, bytes, example });
    }
    found.users.sort_by_key(|user| (Reverse(user.bytes), user.example));
    Ok(found)
}

pub fn histogram(heap: &Heap<'_>) -> Histogram {
    let mut first = FirstWords::new(heap);
    let mut all = HashMap::new();
    heap.for_each_out(|object| add(&mut all, (object.size, first.symbol(object).unwrap_or_default()), object));
    let row = |((object_bytes, first_word), sum): ((u64, String), Sum)| HistogramRow {
        object_bytes,
        first_word,
        objects: sum.objects,
        bytes: sum.bytes,
        example: sum.example,
    };
    let mut rows: Vec<HistogramRow> = all.into_iter().map(row).collect();
    rows.sort_by_key(|row| (Reverse(row.bytes), row.example));
    let (objects, bytes) = (rows.iter().map(|row| row.objects).sum(), rows.iter().map(|row| row.bytes).sum());
    Histogram { objects, bytes, rows }
}

#[derive(Clone, Copy, Default)]
struct Sum {
    objects: u64,
    bytes: u64,
    example: u64,
}

fn add<K: Eq + std::hash::Hash>(all: &mut HashMap<K, Sum>, key: K, object: Object) {
    let sum = all.entry(key).or_insert(Sum { example: object.start, ..Sum::default() });
    sum.objects += 1;
    sum.bytes += object.size;
}

/// Symbols that first words point to.
struct FirstWords<'h> {
    heap: &'h Heap<'h>,
    names: Names<'h>,
    known: HashMap<u64, Option<String>>,
}

impl<'h> FirstWords<'h> {
    fn new(heap: &'h Heap<'_>) -> Self {
        Self { heap, names: Names::new(heap.reader.memory), known: HashMap::new() }
    }

    fn symbol(&mut self, object: Object) -> Option<String> {
        let word = self.heap.reader.word(object.start).ok().filter(|_| object.size >= 8)?;
        // Few objects begin with a pointer into a file: most words need no search.
        self.heap.reader.memory.map_at(word)?;
        let names = &self.names;
        self.known.entry(word).or_insert_with(|| names.symbol(word).map(|(name, _)| name)).clone()
    }

    fn user(&mut self, object: Object) -> Key {
        if let Kind::Buffer = object.kind
            && let Some(buffer) = self.heap.kit.at(object.start)
            && buffer.allocated.stack != 0
        {
            return Key::Site(buffer.allocated.stack);
        }
        if let Some(name) = self.symbol(object).as_deref().and_then(|name| name.strip_prefix("vtable for ")) {
            return Key::Type(name.to_owned());
        }
        match cache_of(self.heap, object) {
            name if !name.is_empty() => Key::Cache(name),
            _ if object.own != 0 => Key::Heap(object.own),
            _ => Key::Class(object.size),
        }
    }
}
