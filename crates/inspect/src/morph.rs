//! A slab of two sizes (`craton_slab::morph`). Bits mark units in which a live old object begins,
//! and those where a new place does. An old object may extend into the next slab, as its head.

use crate::heap::Heap;
use crate::memory::words;
use crate::reader::{u16_in, u32_in};

#[derive(Clone, Debug, Default)]
pub struct Morph {
    pub slab: u64,
    pub bytes: u64,
    pub to: u8,
    /// Old objects, with the head.
    pub count: u64,
    /// Bytes of an object of the slab before.
    pub head: u64,
    unit: u64,
    page: u64,
    live: Vec<u64>,
    starts: Vec<u64>,
    old: Vec<(u64, u8)>,
}

impl Morph {
    /// `None` if it is inconsistent.
    pub(crate) fn read(heap: &Heap<'_>, first: u64) -> Result<Option<Self>, String> {
        let get = |name: &str| heap.table.get(name);
        let Some(entry) = Self::entry(heap, first)? else { return Ok(None) };
        let number = |entry: &[u8], name: &str| Ok::<u64, String>(u32_in(entry, get(name)? as usize).into());
        let byte = |entry: &[u8], name: &str| Ok::<u8, String>(entry.get(get(name)? as usize).copied().unwrap_or(0));
        let pages = u64::from(byte(&entry, "morph.pages")?);
        let unit = get("morph.unit")?;
        let mut this = Self {
            slab: number(&entry, "morph.slab")?,
            bytes: pages * heap.page,
            to: byte(&entry, "morph.to")?,
            count: u16_in(&entry, get("morph.count")? as usize).into(),
            head: number(&entry, "morph.head")?,
            unit,
            page: heap.page,
            ..Self::default()
        };
        if number(&entry, "morph.new")? == 0 || this.slab != first || pages == 0 || unit == 0 {
            return Ok(None);
        }
        for page in first..first + pages {
            let entry = if page < heap.granted { Self::entry(heap, page)? } else { None };
            let Some(entry) = entry else { return Ok(None) };
            if number(&entry, "morph.slab")? != first {
                return Ok(None);
            }
            let bits = |name: &str| {
                let (at, len) = (get(name)? as usize, (heap.page / unit / 8) as usize);
                Ok::<Vec<u64>, String>(words(entry.get(at..at + len).unwrap_or_default()).collect())
            };
            this.live.extend(bits("morph.live")?);
            this.starts.extend(bits("morph.starts")?);
            this.old.push((number(&entry, "morph.old")?, byte(&entry, "morph.from")?));
        }
        Ok(Some(this))
    }

    fn entry(heap: &Heap<'_>, page: u64) -> Result<Option<Vec<u8>>, String> {
        let get = |name: &str| heap.table.get(name);
        let morphs = heap.heap + get("heap.morphs")?;
        let Some(entry) = heap.morph_entry(page) else { return Ok(None) };
        if entry >= heap.reader.u32(morphs + get("morphs.begun")?)? {
            return Ok(None);
        }
        let entries = heap.reader.word(morphs + get("morphs.entries")?)?;
        let bytes = get("morph.bytes")?;
        heap.reader.bytes(entries + u64::from(entry) * bytes, bytes as usize).map(Some)
    }

    /// As offset, bytes, class.
    pub fn old_objects(&self) -> impl Iterator<Item = (u64, u64, u8)> {
        set_bits(&self.live).map(|unit| {
            let at = unit * self.unit;
            let (size, class) = self.old[(at / self.page) as usize];
            (at, size, class)
        })
    }

    /// The new class's, as offsets.
    pub fn places(&self) -> impl Iterator<Item = u64> {
        set_bits(&self.starts).map(|unit| unit * self.unit)
    }
}

fn set_bits(words: &[u64]) -> impl Iterator<Item = u64> {
    let bits = |(at, word): (usize, &u64)| {
        let word = *word;
        (0..64).filter(move |bit| word >> bit & 1 == 1).map(move |bit| at as u64 * 64 + bit)
    };
    words.iter().enumerate().flat_map(bits)
}

#[cfg(test)]
mod tests;
