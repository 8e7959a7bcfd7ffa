//! The journal's bytes: little-endian words of 8.
//!
//! ```text
//! block 0   head: magic, version, generation, length of the heap file, id, 0, 0, check
//! then      records, each at a multiple of 4,096:
//!           magic, generation, sequence, length of the heap file,
//!           entries | LAST << 32, pages of data, check of the record before, check
//!           entries: page number | ZERO << 63, check of the page or number of zero pages
//!           zeros up to a multiple of 4,096
//!           the pages of the entries that are not ZERO, in their order
//! ```
//! A check covers its record's words, entries and place. Without LAST in its last record, a sync
//! does not count.
//!
//! The heap file has a *mark* in bytes 960 to 1023, which no heap uses: magic, generation, length,
//! id, 0, 0, 0, check; zeros once it is closed. Head and mark of a pair have one id.

/// Also the heap file's page.
pub(super) const BLOCK: u64 = 4096;
pub(super) const WORDS: usize = BLOCK as usize / 8;
pub(super) const HEAD_BYTES: usize = 64;
/// In the heap file.
pub(super) const MARK: usize = 960;
pub(super) const ENTRY_BYTES: usize = 16;
const HEAD_MAGIC: u64 = u64::from_le_bytes(*b"CRATONJH");
const RECORD_MAGIC: u64 = u64::from_le_bytes(*b"CRATONJR");
const MARK_MAGIC: u64 = u64::from_le_bytes(*b"CRATONJM");
const VERSION: u64 = 2;
const LAST: u64 = 1 << 32;
const ZERO: u64 = 1 << 63;

/// Each step is a bijection of word and lane: one changed word always changes the sum.
#[derive(Clone, Copy)]
pub(super) struct Check {
    lanes: [u64; 8],
}

const FACTOR: u64 = 0x9e37_79b9_7f4a_7c15;

impl Check {
    pub(super) const fn new(seed: u64) -> Self {
        let (mut lanes, mut lane) = ([0; 8], 0);
        while lane < 8 {
            lanes[lane] = (seed ^ lane as u64).wrapping_mul(FACTOR);
            lane += 1;
        }
        Self { lanes }
    }

    #[inline(always)]
    pub(super) fn add(&mut self, words: &[u64; 8]) {
        // Not a loop: this crate is optimised for size.
        let ([a, b, c, d, e, f, g, h], step) =
            (self.lanes, |lane: u64, word: u64| (lane ^ word).wrapping_mul(FACTOR).rotate_left(29));
        self.lanes = [
            step(a, words[0]),
            step(b, words[1]),
            step(c, words[2]),
            step(d, words[3]),
            step(e, words[4]),
            step(f, words[5]),
            step(g, words[6]),
            step(h, words[7]),
        ];
    }

    pub(super) const fn sum(self) -> u64 {
        let (mut sum, mut lane) = (0u64, 0);
        while lane < 8 {
            sum = (sum.rotate_left(23) ^ self.lanes[lane]).wrapping_mul(FACTOR);
            lane += 1;
        }
        let sum = (sum ^ sum >> 32).wrapping_mul(FACTOR);
        sum ^ sum >> 29
    }
}

pub(super) const ZERO_CHECK: u64 = zero_check();

const fn zero_check() -> u64 {
    let (mut check, mut chunk) = (Check::new(0), 0);
    while chunk < WORDS / 8 {
        let mut lane = 0;
        while lane < 8 {
            check.lanes[lane] = check.lanes[lane].wrapping_mul(FACTOR).rotate_left(29);
            lane += 1;
        }
        chunk += 1;
    }
    check.sum()
}

/// A multiple of 64 bytes.
pub(super) fn check_of(seed: u64, bytes: &[u8]) -> u64 {
    let mut check = Check::new(seed);
    bytes.as_chunks::<64>().0.iter().for_each(|chunk| check.add(&words(chunk)));
    check.sum()
}

fn words(bytes: &[u8; HEAD_BYTES]) -> [u64; 8] {
    core::array::from_fn(|i| u64::from_le_bytes(bytes[8 * i..8 * i + 8].try_into().unwrap_or_default()))
}

fn put(words: [u64; 8], into: &mut [u8; HEAD_BYTES]) {
    for (word, bytes) in words.into_iter().zip(into.as_chunks_mut::<8>().0) {
        *bytes = word.to_le_bytes();
    }
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Head {
    pub(super) generation: u64,
    /// When the generation began.
    pub(super) len: u64,
    /// A random number of each pair of journal and heap file.
    pub(super) id: u64,
}

impl Head {
    pub(super) fn write(self, into: &mut [u8; HEAD_BYTES]) {
        put_checked([HEAD_MAGIC, VERSION, self.generation, self.len, self.id, 0, 0], into);
    }

    pub(super) fn read(from: &[u8; HEAD_BYTES]) -> Option<Self> {
        let [magic, version, generation, len, id, ..] = words(from);
        let is_whole = magic == HEAD_MAGIC && version == VERSION && is_checked(from);
        is_whole.then_some(Self { generation, len, id })
    }

    /// As the heap file's mark.
    pub(super) fn mark(self) -> [u8; HEAD_BYTES] {
        let mut bytes = [0; HEAD_BYTES];
        put_checked([MARK_MAGIC, self.generation, self.len, self.id, 0, 0, 0], &mut bytes);
        bytes
    }

    /// `None`: damaged. Inner `None`: no mark.
    pub(super) fn of_mark(from: &[u8; HEAD_BYTES]) -> Option<Option<Self>> {
        let [magic, generation, len, id, ..] = words(from);
        if magic != MARK_MAGIC {
            return Some(None);
        }
        is_checked(from).then_some(Some(Self { generation, len, id }))
    }
}

fn put_checked(words: [u64; 7], into: &mut [u8; HEAD_BYTES]) {
    let [a, b, c, d, e, f, g] = words;
    put([a, b, c, d, e, f, g, 0], into);
    let check = check_of(0, into);
    into[56..].copy_from_slice(&check.to_le_bytes());
}

fn is_checked(bytes: &[u8; HEAD_BYTES]) -> bool {
    let mut unchecked = *bytes;
    unchecked[56..].fill(0);
    words(bytes)[7] == check_of(0, &unchecked)
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Record {
    pub(super) generation: u64,
    pub(super) sequence: u64,
    pub(super) len: u64,
    pub(super) entries: u64,
    pub(super) is_last: bool,
    pub(super) data_pages: u64,
    pub(super) previous: u64,
}

pub(super) fn table_bytes(entries: u64) -> u64 {
    (HEAD_BYTES as u64 + ENTRY_BYTES as u64 * entries).next_multiple_of(BLOCK)
}

impl Record {
    pub(super) fn bytes(&self) -> u64 {
        table_bytes(self.entries) + self.data_pages * BLOCK
    }

    /// Writes the words before `table` (entries and zeros), which lie at `at`; returns the check.
    pub(super) fn write(&self, at: u64, table: &mut [u8]) -> u64 {
        let entries = self.entries | if self.is_last { LAST } else { 0 };
        let mut words =
            [RECORD_MAGIC, self.generation, self.sequence, self.len, entries, self.data_pages, self.previous, 0];
        put(words, head_of(table));
        words[7] = check_of(at, table);
        put(words, head_of(table));
        words[7]
    }

    pub(super) fn read(from: &[u8; HEAD_BYTES]) -> Option<(Self, u64)> {
        let [magic, generation, sequence, len, entries, data_pages, previous, check] = words(from);
        let is_last = entries & LAST != 0;
        let record = Self { generation, sequence, len, entries: entries & !LAST, is_last, data_pages, previous };
        // Sums of a damaged record cannot overflow.
        let is_sane = magic == RECORD_MAGIC && record.entries < LAST && data_pages <= record.entries;
        is_sane.then_some((record, check))
    }

    pub(super) fn is_whole(at: u64, table: &mut [u8], check: u64) -> bool {
        let words = head_of(table);
        words[56..].fill(0);
        let sum = check_of(at, table);
        head_of(table)[56..].copy_from_slice(&check.to_le_bytes());
        sum == check
    }
}

fn head_of(table: &mut [u8]) -> &mut [u8; HEAD_BYTES] {
    table.first_chunk_mut().expect("a table has a block at least")
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Change {
    Data { page: u64, check: u64 },
    Zero { page: u64, count: u64 },
}

impl Change {
    pub(super) fn write(self, into: &mut [u8]) {
        let words = match self {
            Self::Data { page, check } => [page, check],
            Self::Zero { page, count } => [page | ZERO, count],
        };
        for (word, bytes) in words.into_iter().zip(into.as_chunks_mut::<8>().0) {
            *bytes = word.to_le_bytes();
        }
    }

    pub(super) fn read(from: &[u8; ENTRY_BYTES]) -> Self {
        let word = |i: usize| u64::from_le_bytes(from[8 * i..8 * i + 8].try_into().unwrap_or_default());
        let page = word(0) & !ZERO;
        if word(0) & ZERO != 0 { Self::Zero { page, count: word(1) } } else { Self::Data { page, check: word(1) } }
    }
}

#[cfg(test)]
mod tests;
