//! A heap file on an ordinary disk, whose syncs happen whole or not at all.
//!
//! ```text
//! memory (private copies) ── sync ──► FILE.journal ── checkpoint ──► FILE
//!        ▲──────────── pages that were never written ────────────────┘
//! ```
//! **From.** Write-ahead logging; measured in `../shared/research/pheap.md` §7.
//! **Invariants.** *J4* The file and the journal together hold the last sync point, whatever fails.
//! *J5* A page that no sync has made durable is private memory, or listed to be tried again.
//! **Threads.** Lock order: checkpoint, journal, `pause`, length; `resize` takes only the last, so
//! a paused thread may be in it. A sync covers all threads that asked before it copied.
//! **Cost.** A sync of n pages: a scan, n copies, one sequential write, one wait. Stores pause for
//! scan and copies; beyond 16 MiB, for all writes but the last.
//! **Not here.** To copy the file, copy the journal too, or close the heap first: the pair knows
//! each other (J6). Hard links: the journal has one name.
//! **Unsafe.** Copies and drops pages of the mapping.

mod buffer;
mod format;
mod journal;
mod medium;
mod paths;
mod tracker;

use crate::persistent_file::descriptor::Descriptor;
use crate::persistent_file::{self, Access, FileError, FileOptions, PAGE_BYTES, PersistentFile, Room, Sharing};
use crate::small_file::PathText;
use crate::{Guard, Mutex, mapping};
use buffer::Buffer;
use core::ffi::CStr;
use core::ops::Range;
use core::sync::atomic::{AtomicU64, Ordering};
use craton_base::{Line, Promise};
use format::Check;
pub use journal::Synced;

/// Where the file has the mark of its journal: memory shows it, too.
pub const MARK_BYTES: Range<u64> = MARK as u64..(MARK + HEAD_BYTES) as u64;

use format::{HEAD_BYTES, MARK};
use journal::{Entry, IS_ZERO, Journal, Pair, Store, clear_mark, write_home};
pub use paths::{JOURNAL_EXTENSION, sync_folder_of};
use paths::{journal_path, real_path};
use tracker::Tracker;
pub use tracker::Tracking;

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct DiskOptions {
    pub file: FileOptions,
    /// [`DiskFile::checkpoint_if_due`] acts from this size on; a checkpoint leaves at most as
    /// much.
    pub journal_bytes: u64,
    pub tracking: Tracking,
    /// Opens a file whose journal is missing or empty, as far as the file has it.
    pub loses_journal: bool,
}

impl DiskOptions {
    pub const fn new(limit: u64) -> Self {
        Self {
            file: FileOptions::new(limit),
            journal_bytes: 64 << 20,
            tracking: Tracking::Recorded,
            loses_journal: false,
        }
    }
}

pub struct DiskFile {
    memory: PersistentFile,
    journal_file: Descriptor,
    tracker: Tracker,
    journal_bytes: u64,
    asked: AtomicU64,
    /// Up to here the kernel records writes.
    tracked: AtomicU64,
    state: Mutex<State>,
    checkpoint: Mutex<Home>,
    journal_path: PathText,
    was_left_open: bool,
    /// Bytes; the file's pages are parts of it.
    machine_page: usize,
}

struct State {
    journal: Journal,
    done: u64,
    /// To be copied, or of failed syncs.
    pages: Buffer<u64>,
    /// The list may be incomplete: compare all private pages.
    is_in_doubt: bool,
}

struct Home {
    entries: Buffer<Entry>,
    bytes: Buffer<u8>,
}

impl DiskFile {
    /// Creates a file of zeros; durable on return.
    pub fn create(path: &CStr, len: u64, options: DiskOptions) -> Result<Self, FileError> {
        persistent_file::check_len(len)?;
        if len > options.file.limit {
            return Err(FileError::TooLong(len));
        }
        let journal_path = journal_path(path)?;
        let file = Descriptor::create(path)?;
        let made = Self::begin(file, len, path, journal_path.clone(), options);
        if made.is_err() {
            // SAFETY: terminated paths of the files just made.
            unsafe {
                libc::unlink(path.as_ptr());
                libc::unlink(journal_path.as_c_str().as_ptr());
            }
        }
        made
    }

    fn begin(
        file: Descriptor,
        len: u64,
        path: &CStr,
        journal_path: PathText,
        options: DiskOptions,
    ) -> Result<Self, FileError> {
        file.set_size(len)?;
        if options.file.room == Room::Reserved {
            file.allocate(0, len)?;
        }
        file.sync()?;
        let journal_file = Descriptor::beside(journal_path.as_c_str())?;
        let pair = Pair { home: &file, journal: &journal_file };
        let mut journal = Journal::create(&pair, len, new_id())?;
        // The file must not name a journal that has no name yet.
        sync_folder_of(path)?;
        journal.mend(&pair)?;
        Self::map(file, journal_file, journal, journal_path, options)
    }

    /// At its last sync point.
    pub fn open(path: &CStr, options: DiskOptions) -> Result<Self, FileError> {
        let path = real_path(path)?;
        let path = path.as_c_str();
        let file = Descriptor::open(path, Access::ReadWrite)?;
        if file.kind != persistent_file::descriptor::Kind::File {
            return Err(FileError::NotAFile);
        }
        let size = file.size()?;
        persistent_file::check_len(size)?;
        let journal_path = journal_path(path)?;
        let needs_journal = is_left_open(&file)? && !options.loses_journal;
        let journal_file = match Descriptor::beside_if(journal_path.as_c_str(), !needs_journal) {
            Err(FileError::Missing) => return Err(FileError::NoJournal),
            opened => opened?,
        };
        if options.loses_journal && journal_file.size()? == 0 {
            clear_mark(&file)?;
        }
        let pair = Pair { home: &file, journal: &journal_file };
        let mut journal = Journal::open(&pair, new_id())?;
        sync_folder_of(path)?;
        journal.mend(&pair)?;
        let len = journal.len();
        persistent_file::check_len(len)?;
        if len > options.file.limit {
            return Err(FileError::TooLong(len));
        }
        // The journal has missing bytes; those beyond were never synced.
        if size != len {
            file.set_size(len)?;
        }
        Self::map(file, journal_file, journal, journal_path, options)
    }

    fn map(
        file: Descriptor,
        journal_file: Descriptor,
        journal: Journal,
        journal_path: PathText,
        options: DiskOptions,
    ) -> Result<Self, FileError> {
        let (len, was_left_open) = (journal.len(), !journal.is_new());
        let memory = PersistentFile::map(file, len, options.file, Sharing::Private)?;
        for slot in journal.journaled(1).filter(|slot| slot.page < len / PAGE_BYTES) {
            let to = memory.at(slot.page * PAGE_BYTES, PAGE_BYTES);
            // SAFETY: a page of the mapping, which no other thread knows yet.
            let page = unsafe { core::slice::from_raw_parts_mut(to, PAGE_BYTES as usize) };
            if slot.place & IS_ZERO != 0 {
                page.fill(0);
            } else {
                journal_file.read(slot.place, page)?;
            }
        }
        let tracker = Tracker::new(memory.mapped(), options.tracking)?;
        // Pages just read, and absent ones, count as written.
        let is_in_doubt = !tracker.begin(memory.mapped_part(len));
        let state = State { journal, done: 0, pages: Buffer::new(), is_in_doubt };
        Ok(Self {
            memory,
            journal_file,
            tracker,
            journal_bytes: options.journal_bytes,
            asked: AtomicU64::new(0),
            tracked: AtomicU64::new(len),
            state: Mutex::new(state),
            checkpoint: Mutex::new(Home { entries: Buffer::new(), bytes: Buffer::new() }),
            journal_path,
            was_left_open,
            machine_page: crate::process::page_size().max(PAGE_BYTES as usize),
        })
    }

    pub fn promise(&self) -> Promise {
        if self.memory.is_on_disk() { Promise::PowerFailureAtSync } else { Promise::ProcessCrash }
    }

    /// Whether an earlier opening synced and did not close.
    pub fn was_left_open(&self) -> bool {
        self.was_left_open
    }

    pub fn tracking(&self) -> Tracking {
        self.tracker.tracking()
    }

    pub fn base(&self) -> *mut u8 {
        self.memory.base()
    }

    /// Makes earlier stores durable, all or nothing. No thread stores while the value of `pause`
    /// lives.
    pub fn sync<P>(&self, pause: impl FnOnce() -> P) -> Result<Synced, FileError> {
        // ORDERING: pairs with the load below: a sync that sees the request sees the thread's
        // stores.
        let asked = self.asked.fetch_add(1, Ordering::Release) + 1;
        let mut state = self.state.lock();
        if state.done >= asked {
            return Ok(Synced::default());
        }
        let paused = pause();
        // ORDERING: pairs with the addition above.
        let covered = self.asked.load(Ordering::Acquire);
        let len = self.memory.len();
        let compares = self.find_changed(&mut state, len)?;
        let State { journal, pages, .. } = &mut *state;
        let copy = |page: u64, into: &mut [u8]| self.copy(page, into);
        let synced = journal.sync(&self.pair(), len, pages, compares, copy, || drop(paused))?;
        state.pages.clear();
        state.is_in_doubt = false;
        state.done = covered;
        Ok(synced)
    }

    /// Whether to compare the pages' checks.
    fn find_changed(&self, state: &mut State, len: u64) -> Result<bool, FileError> {
        let range = self.memory.mapped_part(len);
        let start = range.start;
        let State { pages, is_in_doubt, .. } = state;
        let mut listed = Ok(());
        let mut list = |found: Range<usize>| {
            for at in found.step_by(PAGE_BYTES as usize) {
                listed = listed.and_then(|()| pages.push((at - start) as u64 / PAGE_BYTES));
            }
        };
        let is_recorded = self.tracker.tracking() == Tracking::Recorded;
        if is_recorded && self.tracker.drain_written(range.clone(), &mut list).is_none() {
            // The kernel does not report them again.
            *is_in_doubt = true;
        }
        if *is_in_doubt || !is_recorded {
            self.tracker.private(range, &mut list)?;
        }
        if listed.is_err() {
            *is_in_doubt = true;
        }
        listed?;
        sort_once(pages);
        let below = pages.partition_point(|page| *page < len / PAGE_BYTES);
        pages.truncate(below);
        Ok(*is_in_doubt || !is_recorded)
    }

    fn copy(&self, page: u64, into: &mut [u8]) -> u64 {
        let from = self.memory.at(page * PAGE_BYTES, PAGE_BYTES).cast::<[AtomicU64; format::WORDS]>();
        // SAFETY: a page of the mapping; atomics, since a store may not be paused.
        let words = unsafe { &*from };
        let mut check = Check::new(0);
        for (i, (words, into)) in words.as_chunks::<8>().0.iter().zip(into.as_chunks_mut::<64>().0).enumerate() {
            // The mark is the file's alone.
            let is_mark = page == 0 && i == MARK / HEAD_BYTES;
            let line: Line = core::array::from_fn(|word| if is_mark { 0 } else { words[word].load(Ordering::Relaxed) });
            check.add(&line.map(u64::to_le));
            for (word, into) in line.iter().zip(into.as_chunks_mut::<8>().0) {
                *into = word.to_ne_bytes();
            }
        }
        check.sum()
    }

    pub fn journal_bytes(&self) -> u64 {
        self.state.lock().journal.bytes()
    }

    /// Checkpoints and releases memory if the journal is long.
    pub fn checkpoint_if_due<P>(&self, pause: impl FnOnce() -> P) -> Result<(), FileError> {
        if self.journal_bytes() > self.journal_bytes {
            self.checkpoint()?;
            self.release(pause)?;
        }
        Ok(())
    }

    /// Writes synced pages home and empties the journal. Stores and syncs pause only for the last
    /// part.
    pub fn checkpoint(&self) -> Result<(), FileError> {
        let mut home = self.checkpoint.lock();
        let file = &self.memory.file;
        let end = {
            let state = self.state.lock();
            home.fill(&state.journal, 1)?;
            state.journal.bytes()
        };
        self.write_home(&mut home)?;
        file.sync()?;
        let mut state = self.state.lock();
        home.fill(&state.journal, end)?;
        if !home.entries.is_empty() {
            self.write_home(&mut home)?;
        }
        self.fit(&state)?;
        file.sync()?;
        state.journal.reset(&self.pair(), self.journal_bytes)
    }

    fn pair(&self) -> Pair<'_, Descriptor> {
        Pair { home: &self.memory.file, journal: &self.journal_file }
    }

    fn write_home(&self, home: &mut Guard<'_, Home>) -> Result<(), FileError> {
        let Home { entries, bytes } = &mut **home;
        write_home(&self.pair(), entries, self.memory.file.size()?, bytes)
    }

    /// Only this shortens the file: to the last sync's length, if stores need no more.
    fn fit(&self, state: &State) -> Result<(), FileError> {
        let _length = self.memory.resizing.lock();
        let needed = state.journal.len().max(self.memory.len());
        if self.memory.file.size()? > needed { self.memory.file.set_size(needed) } else { Ok(()) }
    }

    /// Drops pages that are the same in the file; returns bytes. No thread stores while the value
    /// of `pause` lives.
    pub fn release<P>(&self, pause: impl FnOnce() -> P) -> Result<u64, FileError> {
        let mut state = self.state.lock();
        if state.is_in_doubt || !state.pages.is_empty() {
            // A failed sync's pages are only in memory.
            return Ok(0);
        }
        let _paused = pause();
        let range = self.memory.mapped_part(self.memory.len());
        let (start, is_recorded) = (range.start, self.tracker.tracking() == Tracking::Recorded);
        let mut released = 0;
        let State { journal, is_in_doubt, .. } = &mut *state;
        let mut scratch = [0; PAGE_BYTES as usize];
        let mut is_home = |at: usize| {
            let page = (at - start) as u64 / PAGE_BYTES;
            let slot = journal.slot(page);
            slot.check != 0 && slot.place == 0 && (is_recorded || self.copy(page, &mut scratch) == slot.check)
        };
        let whole = self.machine_page;
        let mut release = |found: Range<usize>| {
            // The kernel drops whole pages of the machine.
            let first = found.start.next_multiple_of(whole);
            for at in (first..found.end).step_by(whole).filter(|at| at + whole <= found.end) {
                if (at..at + whole).step_by(PAGE_BYTES as usize).all(&mut is_home) {
                    released += mapping::drop_private(at, whole);
                }
            }
        };
        if !is_recorded {
            self.tracker.private(range, &mut release)?;
        } else if self.tracker.unwritten(range, &mut release).is_none() {
            *is_in_doubt = true;
        }
        Ok(released as u64)
    }

    /// Removes the journal. Later stores are lost.
    pub fn close(self) -> Result<(), FileError> {
        self.checkpoint()?;
        clear_mark(&self.memory.file)?;
        // SAFETY: a terminated path.
        if unsafe { libc::unlink(self.journal_path.as_c_str().as_ptr()) } != 0 {
            return Err(FileError::of("unlink", crate::process::errno()));
        }
        Ok(())
    }

    fn resize_memory(&self, len: u64) -> Result<(), FileError> {
        persistent_file::check_len(len)?;
        if len > self.memory.limit() {
            return Err(FileError::TooLong(len));
        }
        let _length = self.memory.resizing.lock();
        let old = self.memory.len();
        if len < old {
            // The last sync point needs the file's end until a checkpoint.
            self.zero(len, old - len);
        } else if len > self.memory.file.size()? {
            let size = self.memory.file.size()?;
            let grown = self.memory.file.set_size(len).and_then(|()| match self.memory.room() {
                Room::Reserved => self.memory.file.allocate(size, len - size),
                Room::Sparse => Ok(()),
            });
            if let Err(error) = grown {
                let _ = self.memory.file.set_size(size);
                return Err(error);
            }
        }
        let tracked = self.tracked.load(Ordering::Relaxed);
        if len > tracked {
            let part = self.memory.mapped_part(len);
            self.tracker.begin(part.start + tracked as usize..part.end);
            self.tracked.store(len, Ordering::Relaxed);
        }
        self.memory.set_len(len);
        Ok(())
    }

    /// Zeroed pages stay in memory until home and released.
    fn zero(&self, at: u64, len: u64) {
        for page in (at..at + len).step_by(PAGE_BYTES as usize) {
            let to = self.memory.at(page, PAGE_BYTES).cast::<[AtomicU64; format::WORDS]>();
            // SAFETY: a page of the mapping, stored to by atomics.
            unsafe { &*to }.iter().for_each(|word| word.store(0, Ordering::Relaxed));
        }
    }
}

impl Home {
    fn fill(&mut self, journal: &Journal, from: u64) -> Result<(), FileError> {
        self.entries.clear();
        journal.journaled(from).try_for_each(|entry| self.entries.push(entry))?;
        self.entries.sort_unstable_by_key(|entry| entry.page);
        Ok(())
    }
}

/// Whether the file's journal is the right one. Changes nothing.
pub fn check_journal(path: &CStr) -> Result<(), FileError> {
    let path = real_path(path)?;
    let file = Descriptor::open(path.as_c_str(), Access::ReadOnly)?;
    persistent_file::check_len(file.size()?)?;
    let journal = match Descriptor::to_read(journal_path(path.as_c_str())?.as_c_str()) {
        Err(FileError::Missing) if is_left_open(&file)? => return Err(FileError::NoJournal),
        Err(FileError::Missing) => return Ok(()),
        opened => opened?,
    };
    Journal::find(&Pair { home: &file, journal: &journal }).map(drop)
}

pub(crate) fn is_left_open(file: &Descriptor) -> Result<bool, FileError> {
    Ok(journal::read_mark(file)?.is_some())
}

/// No two pairs of heap file and journal share one.
fn new_id() -> u64 {
    static COUNT: AtomicU64 = AtomicU64::new(0);
    let count = COUNT.fetch_add(1, Ordering::Relaxed);
    let [a, b] = crate::process::random_words();
    let words = [a, b, crate::clock::precise_ns(), u64::from(crate::process::id()), count, 0, 0, 0];
    format::check_of(0, words.map(u64::to_le_bytes).as_flattened()) | 1
}

fn sort_once(numbers: &mut Buffer<u64>) {
    if numbers.windows(2).all(|pair| pair[0] < pair[1]) {
        return;
    }
    numbers.sort_unstable();
    let mut kept = 0;
    for i in 0..numbers.len() {
        if kept == 0 || numbers[kept - 1] != numbers[i] {
            numbers[kept] = numbers[i];
            kept += 1;
        }
    }
    numbers.truncate(kept);
}

impl Store for Descriptor {
    fn size(&self) -> Result<u64, FileError> {
        self.size()
    }

    fn read(&self, at: u64, into: &mut [u8]) -> Result<(), FileError> {
        self.read(at, into)
    }

    fn write(&self, at: u64, from: &[u8]) -> Result<(), FileError> {
        self.write(at, from)
    }

    fn set_size(&self, bytes: u64) -> Result<(), FileError> {
        self.set_size(bytes)
    }

    fn punch(&self, at: u64, bytes: u64) -> Result<(), FileError> {
        match self.punch(at, bytes) {
            Err(FileError::System(_, libc::EOPNOTSUPP | libc::ENOSYS)) => {
                let zeros = [0; PAGE_BYTES as usize];
                (at..at + bytes).step_by(zeros.len()).try_for_each(|at| self.write(at, &zeros))
            }
            answer => answer,
        }
    }

    fn sync(&self) -> Result<(), FileError> {
        self.sync()
    }
}

#[cfg(all(test, not(loom)))]
mod tests;
