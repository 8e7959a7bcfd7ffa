//! The journal of a heap file: for each page the place of its newest contents.
//!
//! ```text
//! slot.place   0: heap file · n × 4096: here · n × 4096 + 1: zero, by the record there
//! ```
//! **Invariants.** *J1* A record counts if it and all before it are whole, and its sync's last
//! record is among them. *J2* The heap file's pages change only when the journal holds their new
//! contents durably. *J3* A generation ends when the heap file holds all of it durably.
//! *J6* The heap file's mark names its journal, and the generation of which the file lacks pages.
//! It is durable before the first record of that generation, and names the next one only when the
//! file holds all (J3). Another heap's journal, or an older copy, has another id or generation.
//! **Failure.** A failed sync's records are cut off, durably, before another record is written. A
//! damaged record before a whole later sync is an error; nothing is dropped.

use super::buffer::Buffer;
use super::format::{BLOCK, Change, ENTRY_BYTES, HEAD_BYTES, Head, MARK, Record, ZERO_CHECK, check_of, table_bytes};
use crate::persistent_file::FileError;

pub(super) trait Store {
    fn size(&self) -> Result<u64, FileError>;
    fn read(&self, at: u64, into: &mut [u8]) -> Result<(), FileError>;
    fn write(&self, at: u64, from: &[u8]) -> Result<(), FileError>;
    fn set_size(&self, bytes: u64) -> Result<(), FileError>;
    /// Zeroes, and frees blocks where the file system can.
    fn punch(&self, at: u64, bytes: u64) -> Result<(), FileError>;
    fn sync(&self) -> Result<(), FileError>;
}

/// A heap file and its journal.
pub(super) struct Pair<'a, S> {
    pub(super) home: &'a S,
    pub(super) journal: &'a S,
}

/// Of a heap file that is not closed.
pub(super) fn read_mark(home: &impl Store) -> Result<Option<Head>, FileError> {
    let mut bytes = [0; HEAD_BYTES];
    home.read(MARK as u64, &mut bytes)?;
    Head::of_mark(&bytes).ok_or(FileError::Mark)
}

#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
#[repr(C)]
pub(super) struct Entry {
    pub(super) page: u64,
    pub(super) place: u64,
    pub(super) check: u64,
}

/// The page is zero.
pub(super) const IS_ZERO: u64 = 1;
/// Bounds the buffer of a record.
const PART_PAGES: usize = 4096;
/// Of one write in a checkpoint.
const RUN_PAGES: usize = 256;

pub(super) fn page_check(page: &[u8]) -> u64 {
    check_of(0, page)
}

#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Synced {
    pub pages: u64,
    pub bytes: u64,
}

#[derive(Clone, Copy)]
struct Tail {
    end: u64,
    sequence: u64,
    previous: u64,
}

pub(super) struct Journal {
    generation: u64,
    id: u64,
    len: u64,
    tail: Tail,
    slots: Buffer<Entry>,
    /// Whose newest contents are in the journal, each once.
    pages: Buffer<u64>,
    staged: Buffer<Entry>,
    record: Buffer<u8>,
    /// A failed sync may lie behind the tail.
    has_remains: bool,
    /// Write the head first: the file's generation is uncertain.
    has_doubtful_head: bool,
    /// And before it the heap file's mark.
    has_doubtful_mark: bool,
}

impl Journal {
    fn new(Head { generation, len, id }: Head) -> Self {
        Self {
            generation,
            id,
            len,
            tail: Tail { end: BLOCK, sequence: 1, previous: 0 },
            slots: Buffer::new(),
            pages: Buffer::new(),
            staged: Buffer::new(),
            record: Buffer::new(),
            has_remains: false,
            has_doubtful_head: false,
            has_doubtful_mark: false,
        }
    }

    /// For a whole heap file. `id` is random. [`mend`](Self::mend) writes the mark.
    pub(super) fn create(pair: &Pair<'_, impl Store>, len: u64, id: u64) -> Result<Self, FileError> {
        pair.journal.set_size(0)?;
        let mut journal = Self::new(Head { generation: 1, len, id });
        journal.write_head(pair.journal)?;
        journal.has_doubtful_mark = true;
        Ok(journal)
    }

    fn head(&self) -> Head {
        Head { generation: self.generation, len: self.len, id: self.id }
    }

    fn write_head(&self, file: &impl Store) -> Result<(), FileError> {
        let mut block = [0; BLOCK as usize];
        self.head().write(block.first_chunk_mut().expect("a block is longer than a head"));
        file.write(0, &block)?;
        file.sync()
    }

    fn write_mark(&self, home: &impl Store) -> Result<(), FileError> {
        home.write(MARK as u64, &self.head().mark())?;
        home.sync()
    }

    /// `id`: of a new journal, for a file that was closed. Call [`mend`](Self::mend) then.
    pub(super) fn open(pair: &Pair<'_, impl Store>, id: u64) -> Result<Self, FileError> {
        match Self::find(pair)? {
            Some(journal) => Ok(journal),
            None => Self::create(pair, pair.home.size()?, id),
        }
    }

    /// `None`: the file was closed. Changes nothing.
    pub(super) fn find(pair: &Pair<'_, impl Store>) -> Result<Option<Self>, FileError> {
        let file = pair.journal;
        let size = file.size()?;
        let mark = read_mark(pair.home)?;
        let mut bytes = [0; HEAD_BYTES];
        if size >= BLOCK {
            file.read(0, &mut bytes)?;
        }
        let head = match (mark, Head::read(&bytes)) {
            (None, None) if size == 0 => return Ok(None),
            (Some(_), None) if size == 0 => return Err(FileError::NoJournal),
            (_, None) => return Err(FileError::Journal),
            (_, Some(head)) => head,
        };
        if let Some(mark) = mark {
            if head.id != mark.id || head.generation != mark.generation && head.generation + 1 != mark.generation {
                return Err(FileError::OtherJournal);
            }
            if head.generation != mark.generation {
                // The file has all of it.
                let mut journal = Self::new(mark);
                (journal.has_remains, journal.has_doubtful_head) = (true, true);
                return Ok(Some(journal));
            }
        }
        let mut journal = Self::new(head);
        journal.read_records(file, size)?;
        match mark {
            Some(_) => Ok(Some(journal)),
            // Closing ended before the journal was gone; only another's has syncs.
            None if journal.tail.end == BLOCK => Ok(None),
            None => Err(FileError::OtherJournal),
        }
    }

    fn read_records(&mut self, file: &impl Store, size: u64) -> Result<(), FileError> {
        let mut tail = self.tail;
        while let Some(record) = self.read_record(file, size, &mut tail)? {
            if record.is_last {
                tail.sequence += 1;
                self.tail = tail;
                self.apply_staged()?;
                self.set_len(record.len);
            }
        }
        self.staged.clear();
        self.find_later(file, size)?;
        self.has_remains = size > self.tail.end;
        Ok(())
    }

    /// `None`: not whole.
    fn read_record(&mut self, file: &impl Store, size: u64, tail: &mut Tail) -> Result<Option<Record>, FileError> {
        let at = tail.end;
        let Some((record, check)) = self.read_table(file, size, at)? else { return Ok(None) };
        if record.sequence != tail.sequence || record.previous != tail.previous {
            return Ok(None);
        }
        let mut place = at + table_bytes(record.entries);
        let mut page_bytes = [0; BLOCK as usize];
        for entry in 0..record.entries as usize {
            let from = HEAD_BYTES + entry * ENTRY_BYTES;
            let bytes = self.record[from..].first_chunk().expect("the table holds its entries");
            match Change::read(bytes) {
                Change::Zero { page, count } => {
                    let end = page.saturating_add(count).min(u64::MAX / BLOCK);
                    for page in page..end {
                        self.staged.push(Entry { page, place: at | IS_ZERO, check: ZERO_CHECK })?;
                    }
                }
                Change::Data { page, check } => {
                    if place >= at + record.bytes() {
                        return Ok(None);
                    }
                    file.read(place, &mut page_bytes)?;
                    if page_check(&page_bytes) != check {
                        return Ok(None);
                    }
                    self.staged.push(Entry { page, place, check })?;
                    place += BLOCK;
                }
            }
        }
        (tail.end, tail.previous) = (at + record.bytes(), check);
        Ok(Some(record))
    }

    fn read_table(&mut self, file: &impl Store, size: u64, at: u64) -> Result<Option<(Record, u64)>, FileError> {
        let mut words = [0; HEAD_BYTES];
        if at + BLOCK > size {
            return Ok(None);
        }
        file.read(at, &mut words)?;
        let Some((record, check)) = Record::read(&words) else { return Ok(None) };
        if record.generation != self.generation || at + record.bytes() > size {
            return Ok(None);
        }
        self.record.set_len(table_bytes(record.entries) as usize)?;
        file.read(at, &mut self.record)?;
        Ok(Record::is_whole(at, &mut self.record, check).then_some((record, check)))
    }

    /// Fails if a later sync is whole: the disk lost durable bytes.
    fn find_later(&mut self, file: &impl Store, size: u64) -> Result<(), FileError> {
        let Tail { end, sequence, .. } = self.tail;
        for at in (end..size).step_by(BLOCK as usize) {
            if let Some((record, _)) = self.read_table(file, size, at)?
                && record.sequence > sequence
            {
                return Err(FileError::Damaged(end));
            }
        }
        Ok(())
    }

    pub(super) fn len(&self) -> u64 {
        self.len
    }

    pub(super) fn is_new(&self) -> bool {
        self.generation == 1 && self.tail.end == BLOCK
    }

    pub(super) fn bytes(&self) -> u64 {
        self.tail.end
    }

    /// All zero: never in the journal.
    pub(super) fn slot(&self, page: u64) -> Entry {
        self.slots.get(page as usize).copied().unwrap_or_default()
    }

    pub(super) fn journaled(&self, from: u64) -> impl Iterator<Item = Entry> {
        self.pages.iter().map(|page| self.slot(*page)).filter(move |slot| slot.place >= from)
    }

    /// `pages` in order, each once. `copy` copies a page and returns its check; `copied` runs after
    /// all. `skips_equal` leaves out pages as last seen.
    pub(super) fn sync(
        &mut self,
        pair: &Pair<'_, impl Store>,
        len: u64,
        pages: &[u64],
        skips_equal: bool,
        mut copy: impl FnMut(u64, &mut [u8]) -> u64,
        copied: impl FnOnce(),
    ) -> Result<Synced, FileError> {
        self.mend(pair)?;
        self.staged.clear();
        let result = self.append(pair.journal, len, pages, skips_equal, &mut copy, copied);
        match result {
            Ok(Some(tail)) => {
                let pages = self.staged.len() as u64;
                let bytes = tail.end - self.tail.end;
                self.tail = Tail { sequence: tail.sequence + 1, ..tail };
                self.apply_staged().expect("there is room");
                self.set_len(len);
                Ok(Synced { pages, bytes })
            }
            Ok(None) => Ok(Synced::default()),
            Err(error) => {
                self.has_remains = true;
                // If this fails too, the next sync does it.
                let _ = self.mend(pair);
                Err(error)
            }
        }
    }

    /// Writes a doubtful mark and head, and removes a failed sync's remains, durably.
    pub(super) fn mend(&mut self, pair: &Pair<'_, impl Store>) -> Result<(), FileError> {
        if self.has_doubtful_mark {
            self.write_mark(pair.home)?;
            self.has_doubtful_mark = false;
        }
        if self.has_doubtful_head {
            self.write_head(pair.journal)?;
            self.has_doubtful_head = false;
        }
        if self.has_remains {
            pair.journal.set_size(self.tail.end)?;
            pair.journal.sync()?;
            self.has_remains = false;
        }
        Ok(())
    }

    /// `None`: nothing changed.
    fn append(
        &mut self,
        file: &impl Store,
        len: u64,
        pages: &[u64],
        skips_equal: bool,
        copy: &mut impl FnMut(u64, &mut [u8]) -> u64,
        copied: impl FnOnce(),
    ) -> Result<Option<Tail>, FileError> {
        let mut tail = self.tail;
        let parts = pages.len().div_ceil(PART_PAGES).max(1);
        let mut copied = Some(copied);
        for part in 0..parts {
            let is_last = part + 1 == parts;
            let pages = &pages[part * PART_PAGES..pages.len().min((part + 1) * PART_PAGES)];
            let data_pages = self.build(tail.end, pages, skips_equal, copy)?;
            if is_last {
                copied.take().into_iter().for_each(|copied| copied());
            }
            if is_last && self.staged.is_empty() && len == self.len {
                return Ok(None);
            }
            let Tail { sequence, previous, end } = tail;
            let (entries, generation) = (pages.len() as u64, self.generation);
            let record = Record { generation, sequence, len, entries, is_last, data_pages, previous };
            let table = table_bytes(entries) as usize;
            tail.previous = record.write(end, &mut self.record[..table]);
            file.write(end, &self.record[..record.bytes() as usize])?;
            tail.end += record.bytes();
        }
        // Only the wait can fail from here on.
        self.pages.reserve(self.staged.len())?;
        let most = self.staged.iter().map(|entry| entry.page + 1).max().unwrap_or(0);
        self.slots.set_len(self.slots.len().max(most as usize))?;
        file.sync()?;
        Ok(Some(tail))
    }

    /// Returns the data pages.
    fn build(
        &mut self,
        at: u64,
        pages: &[u64],
        skips_equal: bool,
        copy: &mut impl FnMut(u64, &mut [u8]) -> u64,
    ) -> Result<u64, FileError> {
        let table = table_bytes(pages.len() as u64) as usize;
        self.record.set_len(table + pages.len() * BLOCK as usize)?;
        self.record[..table].fill(0);
        let (mut data_pages, mut entries) = (0, 0);
        let mut last: Option<Change> = None;
        for page in pages {
            let data = table + data_pages * BLOCK as usize;
            let contents = &mut self.record[data..data + BLOCK as usize];
            let check = copy(*page, contents);
            if skips_equal && self.slots.get(*page as usize).is_some_and(|slot| slot.check == check) {
                continue;
            }
            let is_zero = check == ZERO_CHECK && contents.iter().all(|byte| *byte == 0);
            let place = if is_zero { at | IS_ZERO } else { at + data as u64 };
            self.staged.push(Entry { page: *page, place, check })?;
            let change = match last {
                Some(Change::Zero { page: first, count }) if is_zero && first + count == *page => {
                    entries -= 1;
                    Change::Zero { page: first, count: count + 1 }
                }
                _ if is_zero => Change::Zero { page: *page, count: 1 },
                _ => Change::Data { page: *page, check },
            };
            data_pages += usize::from(!is_zero);
            change.write(&mut self.record[HEAD_BYTES + entries * ENTRY_BYTES..]);
            (last, entries) = (Some(change), entries + 1);
        }
        for entry in entries..pages.len() {
            Change::Zero { page: 0, count: 0 }.write(&mut self.record[HEAD_BYTES + entry * ENTRY_BYTES..]);
        }
        Ok(data_pages as u64)
    }

    fn apply_staged(&mut self) -> Result<(), FileError> {
        for i in 0..self.staged.len() {
            let entry = self.staged[i];
            let page = entry.page as usize;
            if page >= self.slots.len() {
                self.slots.set_len(page + 1)?;
            }
            if self.slots[page].place == 0 {
                self.pages.push(entry.page)?;
            }
            self.slots[page] = entry;
        }
        self.staged.clear();
        Ok(())
    }

    /// Pages beyond are zero when the file grows again.
    fn set_len(&mut self, len: u64) {
        let (first, old) = ((len / BLOCK) as usize, core::mem::replace(&mut self.len, len));
        if len < old {
            self.slots.iter_mut().skip(first).for_each(|slot| *slot = Entry::default());
            let mut kept = 0;
            for i in 0..self.pages.len() {
                if self.pages[i] < first as u64 {
                    self.pages[kept] = self.pages[i];
                    kept += 1;
                }
            }
            self.pages.truncate(kept);
        }
    }

    /// The heap file holds all durably. Kept bytes need no new blocks.
    pub(super) fn reset(&mut self, pair: &Pair<'_, impl Store>, keep: u64) -> Result<(), FileError> {
        for i in 0..self.pages.len() {
            let page = self.pages[i] as usize;
            self.slots[page].place = 0;
        }
        self.pages.clear();
        self.tail = Tail { end: BLOCK, sequence: 1, previous: 0 };
        self.generation += 1;
        (self.has_doubtful_mark, self.has_doubtful_head) = (true, true);
        self.has_remains = false;
        self.mend(pair)?;
        let file = pair.journal;
        if file.size()? > keep.max(BLOCK) { file.set_size(keep.max(BLOCK)) } else { Ok(()) }
    }
}

/// After a reset: the heap file needs no journal.
pub(super) fn clear_mark(home: &impl Store) -> Result<(), FileError> {
    home.write(MARK as u64, &[0; HEAD_BYTES])?;
    home.sync()
}

/// Sorted by page. Does not wait.
pub(super) fn write_home(
    Pair { journal, home }: &Pair<'_, impl Store>,
    entries: &[Entry],
    len: u64,
    buffer: &mut Buffer<u8>,
) -> Result<(), FileError> {
    let mut mark = [0; HEAD_BYTES];
    home.read(MARK as u64, &mut mark)?;
    let mut rest = entries;
    while let Some(first) = rest.first() {
        let is_zero = first.place & IS_ZERO != 0;
        let most = if is_zero { usize::MAX } else { RUN_PAGES };
        let follows = |(i, entry): (usize, &Entry)| {
            entry.page == first.page + i as u64 && (entry.place & IS_ZERO != 0) == is_zero
        };
        let count = rest.iter().enumerate().take(most).take_while(|pair| follows(*pair)).count();
        let (run, later) = rest.split_at(count);
        rest = later;
        let (at, bytes) = (first.page * BLOCK, count as u64 * BLOCK);
        if at >= len {
            continue;
        }
        if is_zero && at == 0 {
            // The mark's page stays.
            buffer.set_len(BLOCK as usize)?;
            buffer.fill(0);
            buffer[MARK..MARK + HEAD_BYTES].copy_from_slice(&mark);
            home.write(0, buffer)?;
            if bytes > BLOCK {
                home.punch(BLOCK, bytes.min(len) - BLOCK)?;
            }
            continue;
        }
        if is_zero {
            home.punch(at, bytes.min(len - at))?;
            continue;
        }
        buffer.set_len(bytes as usize)?;
        for (entry, page) in run.iter().zip(buffer.chunks_exact_mut(BLOCK as usize)) {
            journal.read(entry.place, page)?;
            if page_check(page) != entry.check {
                return Err(FileError::Damaged(entry.place));
            }
        }
        if at == 0 {
            buffer[MARK..MARK + HEAD_BYTES].copy_from_slice(&mark);
        }
        home.write(at, &buffer[..bytes.min(len - at) as usize])?;
    }
    Ok(())
}

#[cfg(test)]
mod tests;
