//! What is known of a slab of two sizes.
//!
//! **From.** `craton_slab::morph`, whose terms these are. Old places are numbered, those of a
//! second part from `half` on. The slab is cut into `parts`, with a bit for each: a new place
//! starts there, at the first multiple of its size in that part, or else at the part's first byte.

use crate::heap::Heap;
use crate::memory::words;
use crate::reader::{u16_in, u32_in};

/// A slab of two sizes.
#[derive(Clone, Debug)]
pub struct Morph {
    /// Its first page.
    pub slab: u64,
    pub bytes: u64,
    /// The class of new objects.
    pub to: u8,
    /// Old objects that are counted as out.
    pub count: u64,
    new: u64,
    part_bytes: u64,
    half: u64,
    parts: u64,
    live: Vec<u64>,
    starts: Vec<u64>,
    /// Size and class of the old objects of each part.
    old: [(u64, u8); 2],
}

impl Morph {
    /// The entry of a number; `None` if there is none, or not one that could be.
    pub(crate) fn read(heap: &Heap<'_>, entry: u32) -> Result<Option<Self>, String> {
        let get = |name: &str| heap.table.get(name);
        let morphs = heap.heap + get("heap.morphs")?;
        let begun = heap.reader.u32(morphs + get("morphs.begun")?)?;
        if entry == 0 || entry >= begun {
            return Ok(None);
        }
        let entries = heap.reader.word(morphs + get("morphs.entries")?)?;
        let all = heap.reader.bytes(entries + u64::from(entry) * get("morph.bytes")?, get("morph.bytes")? as usize)?;
        let number = |name: &str| Ok::<u64, String>(u32_in(&all, get(name)? as usize).into());
        let bits = |name: &str, most: &str| {
            let (at, len) = (get(name)? as usize, get(most)? as usize / 8);
            Ok::<Vec<u64>, String>(words(all.get(at..at + len).unwrap_or_default()).collect())
        };
        let part = |i: u64| {
            let at = (get("morph.parts")? + i * get("morph.part")?) as usize;
            let class = all.get(at + get("morph.part.from")? as usize).copied().unwrap_or(0);
            Ok::<(u64, u8), String>((u32_in(&all, at + get("morph.part.old")? as usize).into(), class))
        };
        let this = Self {
            slab: number("morph.slab")?,
            bytes: number("morph.slab_bytes")?,
            to: all.get(get("morph.to")? as usize).copied().unwrap_or(0),
            count: u16_in(&all, get("morph.count")? as usize).into(),
            new: number("morph.new")?,
            part_bytes: number("morph.part_bytes")?,
            half: get("morph.half")?,
            parts: get("morph.max_starts")?,
            live: bits("morph.live", "morph.max_old")?,
            starts: bits("morph.starts", "morph.max_starts")?,
            old: [part(0)?, part(1)?],
        };
        let possible = this.new > 0 && this.part_bytes > 0 && this.bytes >= this.parts && this.old[0].0 > 0;
        Ok((possible && (this.bytes == this.part_bytes || this.old[1].0 > 0)).then_some(this))
    }

    /// Old objects that are out: where they begin behind the slab's start, their bytes, and their class.
    pub fn old_objects(&self) -> impl Iterator<Item = (u64, u64, u8)> {
        set_bits(&self.live).map(|place| {
            let part = if self.bytes == self.part_bytes { 0 } else { (place / self.half).min(1) };
            let (old, class) = self.old[part as usize];
            (part * self.part_bytes + (place - part * self.half) * old, old, class)
        })
    }

    /// Where the new places begin, behind the slab's start.
    pub fn places(&self) -> impl Iterator<Item = u64> {
        let unit = self.bytes / self.parts;
        set_bits(&self.starts).map(move |bit| {
            let start = bit * unit;
            let grid = start.next_multiple_of(self.new);
            if grid < start + unit { grid } else { start }
        })
    }
}

/// The numbers of the bits that are set.
fn set_bits(words: &[u64]) -> impl Iterator<Item = u64> {
    let bits = |(at, word): (usize, &u64)| {
        let word = *word;
        (0..64).filter(move |bit| word >> bit & 1 == 1).map(move |bit| at as u64 * 64 + bit)
    };
    words.iter().enumerate().flat_map(bits)
}

#[cfg(test)]
mod tests;
