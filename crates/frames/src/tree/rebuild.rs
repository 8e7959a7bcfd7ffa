//! Rebuilds trees' entries and sets from the lower level (LLFree §3.2.3).

use super::{ALL, Entry, FREE, SETS, Trees};
use crate::geometry::Geometry;
use crate::lower::Lower;
use crate::media::Media;
use crate::word::Word;

const COUNTERS: u32 = FREE as u32 | (FREE as u32) << 16;

impl Trees<'_> {
    pub(crate) fn begin<G: Geometry, M: Media>(&self, lower: &Lower<'_, G, M>) -> usize {
        let whole = u32::from(G::FULL_CHILD) << 16 | u32::from(G::FULL_CHILD);
        let mut all_free = 0;
        let trees = self.entries.chunks(64).zip(lower.children.chunks(64 * G::CHILDREN / 2));
        for (group, (entries, children)) in trees.enumerate() {
            let mut sets = [0u64; SETS];
            for (at, (entry, children)) in entries.iter().zip(children.chunks_exact(G::CHILDREN / 2)).enumerate() {
                // Both sums fit in 16 bits; only a full counter has the bit 2^k.
                let (sums, any) = children
                    .iter()
                    .map(|word| word.read() & COUNTERS)
                    .fold((0, 0), |(sums, any), word| (sums + word, any | word));
                let free = ((sums & 0xffff) + (sums >> 16)) as usize;
                all_free += free;
                let now = Entry(0).with((free * usize::from(ALL)).div_ceil(G::TREE) as u16);
                entry.begin(now.0);
                if let Some(number) = Self::number(self.class(now), now.kind()) {
                    sets[number] |= 1 << at;
                }
                sets[SETS - 1] |= u64::from(any & whole != 0) << at;
            }
            self.sets.iter().zip(sets).for_each(|(set, trees)| set.begin(group, trees));
        }
        all_free
    }
}
