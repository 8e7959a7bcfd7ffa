//! Freed mappings kept for a moment, for programs that will ask for such memory again.
//!
//! A request within a second of a free ([`KEEP_NS`]) raises the bytes that may be kept. A mapping
//! kept for a second goes back, and lowers them. No other table lists kept mappings.

use crate::huge::Entry;
use core::mem::{offset_of, replace};

const PLACES: usize = 8;
pub const KEEP_NS: u64 = 1_000_000_000;

/// 0 bytes: empty.
#[derive(Clone, Copy)]
struct Place {
    entry: Entry,
    since_ns: u64,
}

impl Place {
    const NONE: Self = Self { entry: Entry { at: 0, bytes: 0 }, since_ns: 0 };

    fn is_none(&self) -> bool {
        self.entry.bytes == 0
    }
}

pub struct Kept {
    places: [Place; PLACES],
    bytes: usize,
    allowed: usize,
    /// Bytes unmapped in the last second, and the last unmapping's time.
    gone: usize,
    gone_ns: u64,
}

impl Kept {
    pub const SHAPE: [(&'static str, usize); 5] = [
        ("kept.places", offset_of!(Self, places)),
        ("kept.most", PLACES),
        ("kept.place.bytes", size_of::<Place>()),
        ("kept.place.at", offset_of!(Place, entry) + offset_of!(Entry, at)),
        ("kept.place.len", offset_of!(Place, entry) + offset_of!(Entry, bytes)),
    ];

    pub const NONE: Self = Self { places: [Place::NONE; PLACES], bytes: 0, allowed: 0, gone: 0, gone_ns: 0 };

    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// Assumes that no other mapping is kept; `most` is the bound.
    pub fn wants(&self, bytes: usize, most: usize) -> bool {
        bytes <= self.allowed.min(most)
    }

    /// Beside the mappings already kept.
    pub fn has_room(&self, bytes: usize, most: usize) -> bool {
        self.bytes + bytes <= self.allowed.min(most) && self.places.iter().any(Place::is_none)
    }

    /// There must be room.
    pub fn put(&mut self, entry: Entry, now_ns: u64) {
        if let Some(place) = self.places.iter_mut().find(|place| place.is_none()) {
            *place = Place { entry, since_ns: now_ns };
            self.bytes += entry.bytes;
        }
    }

    /// Records an unmapping.
    pub fn note_gone(&mut self, bytes: usize, now_ns: u64) {
        if now_ns.saturating_sub(self.gone_ns) > KEEP_NS {
            self.gone = 0;
        }
        self.gone += bytes;
        self.gone_ns = now_ns;
    }

    /// No kept mapping served a request. Returns whether one unmapped lately could have.
    pub fn note_miss(&mut self, bytes: usize, now_ns: u64) -> bool {
        if self.gone == 0 || now_ns.saturating_sub(self.gone_ns) > KEEP_NS {
            return false;
        }
        let back = self.gone.min(bytes);
        self.gone -= back;
        // The next one may be larger.
        self.allowed = self.allowed.max(self.bytes) + back + back / 4;
        true
    }

    /// The shortest that is long enough, else the longest.
    pub fn take(&mut self, bytes: usize, align: usize) -> Option<Entry> {
        let fit = |place: &&mut Place| match place.entry.bytes {
            long if long >= bytes => (0, long - bytes),
            short => (1, bytes - short),
        };
        let good = |place: &&mut Place| !place.is_none() && place.entry.at.is_multiple_of(align);
        let best = self.places.iter_mut().filter(good).min_by_key(fit)?;
        let entry = replace(best, Place::NONE).entry;
        self.bytes -= entry.bytes;
        Some(entry)
    }

    pub fn take_oldest(&mut self) -> Option<Entry> {
        let oldest = self.places.iter_mut().filter(|place| !place.is_none()).min_by_key(|place| place.since_ns)?;
        let entry = replace(oldest, Place::NONE).entry;
        self.bytes -= entry.bytes;
        Some(entry)
    }

    /// Lowers the allowance by its bytes.
    pub fn take_expired(&mut self, now_ns: u64) -> Option<Entry> {
        let late = |place: &&mut Place| !place.is_none() && now_ns.saturating_sub(place.since_ns) >= KEEP_NS;
        let entry = replace(self.places.iter_mut().find(late)?, Place::NONE).entry;
        self.bytes -= entry.bytes;
        self.allowed = self.allowed.saturating_sub(entry.bytes);
        Some(entry)
    }
}

#[cfg(test)]
mod tests;
