//! An object's words, and their meaning.

use crate::heap::Heap;
use crate::names::Names;
use crate::objects::Objects;
use serde::Serialize;

#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Word {
    #[serde(serialize_with = "crate::whatis::as_hex")]
    pub at: u64,
    #[serde(serialize_with = "crate::whatis::as_hex")]
    pub value: u64,
    /// Printable bytes, others as dots.
    pub text: String,
    /// Object, variable or mapping that it points to; empty for a number.
    pub points_to: String,
}

#[derive(Clone, Debug, Default, Serialize)]
pub struct Dump {
    /// The object, or the address that was asked for.
    #[serde(serialize_with = "crate::whatis::as_hex")]
    pub address: u64,
    #[serde(serialize_with = "crate::whatis::as_hex")]
    pub asked: u64,
    /// Of the object; 0 if none is there.
    pub bytes: u64,
    pub words: Vec<Word>,
    /// Behind the last word that is shown.
    pub more_bytes: u64,
}

/// Shown before an address that is far from its object's beginning.
const BEFORE: u64 = 64;

/// `most` bytes of the object around an address, or of other memory from there on.
///
/// # Errors
/// The memory or the library's tables cannot be read.
pub fn dump(heap: &Heap<'_>, at: u64, most: u64) -> Result<Dump, String> {
    let objects = Objects::new(heap)?;
    let object = objects.around(at).map(|(_, object)| object);
    let (address, bytes) = object.map_or((at & !7, 0), |object| (object.start, object.size));
    // Far from its beginning, an object's part around the address is shown.
    let first = if at - address < most { address } else { (at & !7).saturating_sub(BEFORE).max(address) };
    let end = object.map_or_else(|| mapping_end(heap, at), |object| object.start + object.size);
    let len = most.min(end.saturating_sub(first));
    let names = Names::new(heap.reader.memory);
    let held = heap.reader.bytes(first, len as usize)?;
    let words = (first..).step_by(8).zip(held.chunks(8)).map(|(at, bytes)| {
        let mut word = [0; 8];
        word[..bytes.len()].copy_from_slice(bytes);
        let value = u64::from_le_bytes(word);
        Word { at, value, text: printable(bytes), points_to: target(heap, &objects, &names, value) }
    });
    let more_bytes = if object.is_some() { end - first - len } else { 0 };
    Ok(Dump { address, asked: at, bytes, words: words.collect(), more_bytes })
}

fn mapping_end(heap: &Heap<'_>, at: u64) -> u64 {
    heap.reader.memory.map_at(at).map_or(u64::MAX, |map| map.end)
}

fn printable(bytes: &[u8]) -> String {
    let shown = |byte: &u8| if byte.is_ascii_graphic() || *byte == b' ' { char::from(*byte) } else { '.' };
    bytes.iter().map(shown).collect()
}

fn target(heap: &Heap<'_>, objects: &Objects<'_>, names: &Names<'_>, word: u64) -> String {
    if let Some((_, object)) = objects.around(word) {
        return match word - object.start {
            0 => format!("object of {} bytes", object.size),
            into => format!("{into} into the object of {} bytes at {:#x}", object.size, object.start),
        };
    }
    if let Some((name, offset)) = names.symbol(word) {
        return if offset == 0 { name } else { format!("{name}+{offset:#x}") };
    }
    let memory = heap.reader.memory;
    let Some(map) = memory.map_at(word) else { return String::new() };
    match memory.threads().iter().find(|thread| map.contains(thread.stack)) {
        Some(thread) => format!("stack of thread {}", thread.id),
        None if map.path.is_empty() => "anonymous memory".to_owned(),
        None => map.path.clone(),
    }
}

#[cfg(test)]
mod tests;
