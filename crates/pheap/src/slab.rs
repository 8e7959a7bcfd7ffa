//! The persistent header of a slab (`layout.rs`; NVAlloc §5.2, figure 5). It is written when its
//! redo line is committed, so recovery can write it again.

use crate::class::{CLASSES, Class};
use crate::error::Error;
use crate::guests::{self, GRANULE, Guest};
use crate::lane::seed_of;
use crate::layout::{
    SLAB_BITMAP, SLAB_GUESTS, SLAB_GUESTS_BYTES, SLAB_HEADER, SLAB_MAGIC, SLAB_TABLE, SLAB_TABLE_ENTRIES, UNIT,
    check_of,
};
use crate::line::{Fixed, Kind, Redo};
use crate::tcache::bit_of;
use craton_base::atomic::Ordering;
use craton_base::{LINE_BYTES, LINE_WORDS, Line, Medium};

const NONE: u64 = 255;

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Header {
    pub class: usize,
    pub stripes: u32,
    /// The former class, and the table's entries.
    pub old: Option<(usize, u32)>,
}

impl Header {
    pub fn word(&self) -> u64 {
        let (old, entries) = self.old.map_or((NONE, 0), |(old, entries)| (old as u64, u64::from(entries)));
        SLAB_MAGIC | (self.class as u64) << 16 | old << 24 | entries << 32 | u64::from(self.stripes) << 48
    }

    fn of(word: u64) -> Option<Self> {
        let field = |at: u32, bits: u32| word >> at & ((1 << bits) - 1);
        let (class, old, entries) = (field(16, 8) as usize, field(24, 8), field(32, 16) as u32);
        let old = (old != NONE).then_some((old as usize, entries));
        let right = old.is_none_or(|(old, n)| old < CLASSES && n as usize <= SLAB_TABLE_ENTRIES);
        let header = Self { class, stripes: field(48, 8) as u32, old };
        (field(0, 16) == SLAB_MAGIC && class < CLASSES && right && header.word() == word).then_some(header)
    }

    /// `None`: not whole.
    pub fn read<M: Medium>(medium: &M, seed: u64, at: u64) -> Option<Self> {
        Self::of_line(&read_line(medium, at), seed, at)
    }

    fn of_line(line: &Line, seed: u64, at: u64) -> Option<Self> {
        let whole = line[1] == at && line[7] == check_of(line, seed_of(seed, at));
        whole.then(|| Self::of(line[0])).flatten()
    }
}

pub struct FoundSlab {
    pub at: u64,
    pub header: Header,
    /// As [`read_bits`] returns.
    pub taken: Box<[u64]>,
    pub free: u32,
    pub guests: Vec<Guest>,
}

impl FoundSlab {
    /// `unused` has each class's [`unused_bits`].
    pub fn read<M: Medium>(
        medium: &M,
        seed: u64,
        at: u64,
        classes: &[Class; CLASSES],
        unused: &[Box<[u64]>; CLASSES],
        logged: bool,
    ) -> Result<Self, Error> {
        // In one call: a fault takes as long for a part.
        let mut words = [0; (SLAB_HEADER / 8) as usize];
        let is_copied = medium.copy(at, &mut words);
        let (line, bits) = words.split_first_chunk::<LINE_WORDS>().expect("the header has more than a line");
        let header = if is_copied { Header::of_line(line, seed, at) } else { Header::read(medium, seed, at) };
        let header = header.ok_or(Error::Damaged { what: "header of a slab", at })?;
        if header.stripes != classes[header.class].stripes {
            return Err(Error::Damaged { what: "stripes of a slab", at });
        }
        let mut taken = unused[header.class].clone();
        match is_copied {
            true => taken.iter_mut().zip(bits).for_each(|(taken, bits)| *taken |= bits),
            false => add_bits(medium, at, &mut taken),
        }
        let free = taken.iter().map(|word| word.count_zeros()).sum();
        let guests = match words.last_chunk() {
            _ if !logged => Vec::new(),
            Some(bits) if is_copied => guests::list(bits, at)?,
            _ => guests::read_all(medium, at)?,
        };
        Ok(Self { at, header, taken, free, guests })
    }
}

pub fn read_line<M: Medium>(medium: &M, at: u64) -> Line {
    // ORDERING: pairs with the stores of `Medium`: a line is read behind its commit.
    std::array::from_fn(|i| medium.word(at + 8 * i as u64).load(Ordering::Acquire))
}

fn write_header<M: Medium>(medium: &M, seed: u64, at: u64, word: u64, dirty: &mut impl FnMut(u64)) {
    let mut line: Line = [word, at, 0, 0, 0, 0, 0, 0];
    line[7] = check_of(&line, seed_of(seed, at));
    for (i, word) in line.iter().enumerate() {
        medium.store(at + 8 * i as u64, *word);
    }
    dirty(at);
}

/// `from` and `to` count from the slab.
fn clear_lines<M: Medium>(medium: &M, at: u64, from: u64, to: u64, dirty: &mut impl FnMut(u64)) {
    for line in (at + from..at + to).step_by(LINE_BYTES as usize) {
        for word in (line..line + LINE_BYTES).step_by(8) {
            medium.store(word, 0);
        }
        dirty(line);
    }
}

pub fn guest_of(redo: &Redo) -> (u64, Guest) {
    let at = if redo.kind == Kind::AllocGuest { redo.new } else { redo.old };
    let first = (at % UNIT).saturating_sub(SLAB_HEADER) / GRANULE;
    let guest = Guest { first: first as u32, granules: redo.len / 2 };
    (at & !(UNIT - 1), guest)
}

/// Home and bit of a [`Kind::Publish`].
#[inline]
pub fn bit_of_fixed(redo: &Redo) -> (u64, u64) {
    bit_of(redo.new & !(UNIT - 1), Fixed::of(redo).mid)
}

/// Stores a committed line's home. Idempotent.
pub fn redo<M: Medium>(medium: &M, seed: u64, redo: &Redo, mut dirty: impl FnMut(u64)) {
    match redo.kind {
        Kind::Set => {}
        Kind::Alloc => {
            medium.update(redo.home, redo.value, 0);
            dirty(redo.home);
        }
        Kind::Free => {
            medium.update(redo.home, 0, redo.value);
            dirty(redo.home);
        }
        Kind::Publish => {
            let (home, bit) = bit_of_fixed(redo);
            medium.update(home, bit, 0);
            dirty(home);
        }
        Kind::AllocExtent | Kind::FreeExtent | Kind::FreeSlab => {
            medium.store(redo.home, redo.value);
            dirty(redo.home);
        }
        Kind::NewSlab => {
            write_header(medium, seed, redo.new, redo.old, &mut dirty);
            clear_lines(medium, redo.new, SLAB_BITMAP, SLAB_TABLE, &mut dirty);
            clear_lines(medium, redo.new, SLAB_GUESTS, SLAB_GUESTS + SLAB_GUESTS_BYTES, &mut dirty);
            medium.store(redo.home, redo.value);
            dirty(redo.home);
        }
        Kind::Morph => {
            write_header(medium, seed, redo.home, redo.value, &mut dirty);
            clear_lines(medium, redo.home, SLAB_BITMAP, SLAB_TABLE, &mut dirty);
        }
        Kind::Settle => write_header(medium, seed, redo.home, redo.value, &mut dirty),
        Kind::AllocGuest | Kind::FreeGuest => {
            let (slab, guest) = guest_of(redo);
            for (word, bit) in guest.homes(slab) {
                if redo.kind == Kind::AllocGuest {
                    medium.update(word, bit, 0)
                } else {
                    medium.update(word, 0, bit)
                };
                dirty(word);
            }
        }
    }
}

/// By mid; bits beyond the slab's objects are set.
pub fn read_bits<M: Medium>(medium: &M, at: u64, class: &Class) -> Box<[u64]> {
    let mut bits = unused_bits(class);
    add_bits(medium, at, &mut bits);
    bits
}

fn add_bits<M: Medium>(medium: &M, at: u64, bits: &mut [u64]) {
    let at = at + SLAB_BITMAP;
    match medium.words(at, bits.len()) {
        Some(words) => bits.iter_mut().zip(words).for_each(|(bits, word)| *bits |= word.load(Ordering::Relaxed)),
        None => bits.iter_mut().enumerate().for_each(|(i, bits)| {
            *bits |= medium.word(at + 8 * i as u64).load(Ordering::Relaxed);
        }),
    }
}

/// By mid, of no object.
pub fn unused_bits(class: &Class) -> Box<[u64]> {
    let word = |number: u32| {
        let (stripe, from) = (number / 8, number % 8 * 64);
        // A stripe has every `stripes`-th object.
        let objects = (class.objects + class.stripes - 1 - stripe) / class.stripes;
        match objects.saturating_sub(from) {
            used @ 0..64 => u64::MAX << used,
            _ => 0,
        }
    };
    (0..class.stripes * 8).map(word).collect()
}

#[cfg(test)]
mod tests;
