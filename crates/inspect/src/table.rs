//! The library's table of names and numbers in another process. A search for its magic word finds
//! it even in a stripped program; copies lack their address in the entry `self`.

use crate::memory::{Map, Memory};
use crate::reader::{Reader, text_in, u32_in, word_in};
use std::collections::HashMap;

const MAGIC: [u8; 8] = *b"\0CRATONI";
const VERSION: u32 = 1;
const ALIGN: usize = 64;
const HEAD: usize = 40;
const PIECE: usize = 1 << 20;
const MOST_ANONYMOUS: u64 = 256 << 20;

#[derive(Clone, Copy, Debug, Default)]
pub struct Class {
    pub object: u64,
    pub pages: u64,
    pub capacity: u64,
    pub batch: u64,
    pub count_at: u64,
    pub array_at: u64,
}

#[derive(Clone, Debug)]
pub struct Table {
    pub at: u64,
    pub bytes: u64,
    values: HashMap<String, u64>,
    pub classes: Vec<Class>,
}

impl Table {
    /// # Errors
    /// Not on Craton, or of another release.
    pub fn of(memory: &dyn Memory) -> Result<Self, String> {
        Self::find(&Reader::new(memory))
    }

    pub fn find(reader: &Reader<'_>) -> Result<Self, String> {
        let maps = reader.memory.maps();
        let names_files = maps.iter().any(Map::is_file);
        let is_small = |map: &Map| map.path.is_empty() && map.end - map.start <= MOST_ANONYMOUS;
        // A position-dependent program that names the table has it in a copy behind its data.
        let follows = |map: &Map| maps.iter().any(|before| before.is_file() && before.end == map.start);
        let searched = |map: &&Map| map.readable && (map.is_file() || is_small(map) && (!names_files || follows(map)));
        let (mut found, mut other) = (Vec::new(), None);
        // A library with a heap goes before one that was only loaded.
        let in_use = |table: &Table| table.heap_base(reader).is_ok_and(|base| base != 0);
        // A file mapped only for reading holds no table.
        let (data, rest): (Vec<&Map>, Vec<&Map>) = maps.iter().filter(searched).partition(|map| map.writable);
        for map in data.into_iter().chain(rest) {
            search(reader.memory, map, |at| match Self::at(reader, at) {
                Ok(Some(table)) => found.push(table),
                Ok(None) => (),
                Err(why) => other = Some(why),
            });
            if let Some(at) = found.iter().position(in_use) {
                return Ok(found.swap_remove(at));
            }
        }
        if !found.is_empty() {
            return Err(format!("{}: Craton is loaded, but has served no request yet", reader.memory.name()));
        }
        let (name, n) = (reader.memory.name(), maps.len());
        Err(other.unwrap_or_else(|| {
            format!(
                "{name}: not running on Craton: no table of the library in its {n} mappings; start the program by \
                 `craton run -- CMD`, or link it with libcraton"
            )
        }))
    }

    fn heap_base(&self, reader: &Reader<'_>) -> Result<u64, String> {
        reader.word(self.get("heap")? + self.get("heap.layout")? + self.get("layout.base")?)
    }

    fn at(reader: &Reader<'_>, at: u64) -> Result<Option<Self>, String> {
        let Ok(head) = reader.bytes(at, HEAD + 4) else { return Ok(None) };
        let number = |i: usize| u32_in(&head, 8 + 4 * i) as usize;
        let (version, bytes) = (number(0), number(1));
        if version != VERSION as usize {
            let (plausible, name) = ((1..1000).contains(&version), reader.memory.name());
            let text = format!(
                "{name}: its library has a table of version {version} at {at:#x}, and this program reads version \
                 {VERSION}; use the `craton` that came with that library"
            );
            return if plausible { Err(text) } else { Ok(None) };
        }
        let (entries_at, entries, entry_bytes) = (number(2), number(3), number(4));
        let (classes_at, classes, class_bytes) = (number(5), number(6), number(7));
        let end = |from: usize, n: usize, each: usize| n.checked_mul(each).and_then(|len| from.checked_add(len));
        let fits = |end: Option<usize>| end.is_some_and(|end| end <= bytes && bytes <= PIECE);
        let right = fits(end(entries_at, entries, entry_bytes)) && fits(end(classes_at, classes, class_bytes));
        if !right || entry_bytes < 16 || class_bytes < 24 {
            return Ok(None);
        }
        let Ok(all) = reader.bytes(at, bytes) else { return Ok(None) };
        let mut values = HashMap::new();
        for entry in all[entries_at..entries_at + entries * entry_bytes].chunks_exact(entry_bytes) {
            let (name, value) = entry.split_at(entry_bytes - 8);
            values.insert(text_in(name), word_in(value, 0));
        }
        let class = |class: &[u8]| {
            let number = |i: usize| u64::from(u32_in(class, 4 * i));
            let [object, pages, capacity, batch, count_at, array_at] = std::array::from_fn(number);
            Class { object, pages, capacity, batch, count_at, array_at }
        };
        let classes =
            all[classes_at..classes_at + classes * class_bytes].chunks_exact(class_bytes).map(class).collect();
        let table = Self { at, bytes: bytes as u64, values, classes };
        let is_copy = table.values.get("self") != Some(&at);
        Ok((!is_copy).then_some(table))
    }

    pub fn get(&self, name: &str) -> Result<u64, String> {
        self.values.get(name).copied().ok_or_else(|| {
            format!(
                "the library's table at {:#x} has no entry \"{name}\": it is of another release; use the `craton` that came with it",
                self.at
            )
        })
    }
}

fn search(memory: &dyn Memory, map: &Map, mut each: impl FnMut(u64)) {
    let mut buffer = vec![0; PIECE];
    let mut at = map.start;
    while at < map.end {
        let len = (map.end - at).min(PIECE as u64) as usize;
        let got = memory.read(at, &mut buffer[..len]);
        for (i, part) in buffer[..got].chunks(ALIGN).enumerate() {
            if part.starts_with(&MAGIC) {
                each(at + (i * ALIGN) as u64);
            }
        }
        // Behind an unreadable part there may be more.
        at = if got == len { at + len as u64 } else { (at + got as u64) / 4096 * 4096 + 4096 };
    }
}
