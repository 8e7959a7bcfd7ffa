//! Locks of the heap that threads hold: what they guard may be between two states.

use crate::caches::MOST;
use crate::memory::Memory;
use crate::reader::{Reader, text_in};
use crate::table::Table;

/// Few words, so that a process can be asked before its memory is copied.
///
/// # Errors
/// The library's data cannot be read.
pub fn locks(memory: &dyn Memory, table: &Table) -> Result<Vec<String>, String> {
    held(&Reader::new(memory), table)
}

pub(crate) fn held(reader: &Reader<'_>, table: &Table) -> Result<Vec<String>, String> {
    let get = |name: &str| table.get(name);
    let heap = get("heap")?;
    let mut held = Vec::new();
    for (name, at) in [("huge objects", "heap.huge.lock"), ("slabs of two classes", "heap.morphs.lock")] {
        if reader.word(heap + get(at)?)? != 0 {
            held.push(name.to_owned());
        }
    }
    if are_records(reader, table)? {
        held.push("records of buffers".to_owned());
    }
    held.extend(caches(reader, table)?);
    let shards = reader.word(heap + get("heap.layout")? + get("layout.more_shards")?)? + 1;
    let (first, stride) = (heap + get("heap.shards")? + get("shard.classes")?, get("shard.bytes")?);
    let (bytes, lock) = (get("shard.class.bytes")?, get("shard.class.lock")?);
    for shard in 0..shards.min(get("shards.most")?) {
        for (i, class) in table.classes.iter().enumerate().skip(1) {
            if reader.word(first + shard * stride + (i as u64 - 1) * bytes + lock)? != 0 {
                held.push(format!("class of {} in shard {shard}", class.object));
            }
        }
    }
    Ok(held)
}

/// Whether a thread has locked a part of the debugging kit's records.
pub(crate) fn are_records(reader: &Reader<'_>, table: &Table) -> Result<bool, String> {
    let get = |name: &str| table.get(name);
    let (parts, bytes, lock) = (get("kit.table")?, get("kit.part.bytes")?, get("kit.part.lock")?);
    for part in 0..get("kit.table.parts")? {
        if reader.word(parts + part * bytes + lock)? != 0 {
            return Ok(true);
        }
    }
    Ok(false)
}

fn caches(reader: &Reader<'_>, table: &Table) -> Result<Vec<String>, String> {
    let get = |name: &str| table.get(name);
    let at = get("caches")?;
    let (base, used) = (reader.word(at + get("caches.base")?)?, reader.word(at + get("caches.used")?)?);
    let mut held = Vec::new();
    if base == 0 || used > MOST {
        return Ok(held);
    }
    let (bytes, handle) = (get("caches.slot.bytes")?, get("caches.slot.handle")?);
    let (lock, name) = (get("caches.slot.lock")?, get("caches.slot.name")?);
    for slot in (0..used).map(|id| base + id * bytes) {
        if reader.word(slot + handle)? != 0 && reader.word(slot + lock)? != 0 {
            held.push(format!("object cache \"{}\"", text_in(&reader.bytes(slot + name, 32)?)));
        }
    }
    Ok(held)
}
