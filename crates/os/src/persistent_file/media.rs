//! The media of a mapped file: one type for each way to write back, chosen once.
//!
//! **What.** [`Flushed`] writes lines back; [`Cached`] does not, and its flushes and fences compile
//! to nothing. [`PersistentFile::with_medium`] picks the type and calls code that is generic over
//! it, so that no store asks.
//! **Threads.** Words are atomic. On x86 an aligned store is whole, also for a reader in another
//! process, and after a crash.
//! **Unsafe.** Stores lines at checked places.

use super::domain::has_persistent_caches;
use super::{FileError, PersistentFile, space};
use crate::WriteBack;
use core::sync::atomic::{AtomicU32, AtomicU64, Ordering, fence};
use craton_base::{LINE_BYTES, Line, Medium, Promise, Space, SpaceError};

/// Whether lines are written back.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum WriteBackChoice {
    /// On persistent memory, unless the system reports that the caches are persistent.
    Auto,
    /// Always, also where it adds nothing but time.
    Flush,
    /// Never: the caches are known to persist (eADR), or a process crash is all that may happen.
    None,
}

impl WriteBackChoice {
    /// The choice of this name.
    pub fn parse(name: &[u8]) -> Option<Self> {
        Some(match name {
            b"auto" => Self::Auto,
            b"flush" => Self::Flush,
            b"none" => Self::None,
            _ => return None,
        })
    }
}

/// Code for any medium.
pub trait UseMedium {
    type Output;

    fn call<M: Medium + Space + 'static>(self, medium: M) -> Self::Output;
}

/// A file whose lines are written back.
#[derive(Debug)]
pub struct Flushed {
    file: PersistentFile,
    write_back: WriteBack,
}

/// A file whose stores need no write-back.
#[derive(Debug)]
pub struct Cached {
    file: PersistentFile,
}

impl PersistentFile {
    /// Calls `f` with the file as the medium that the choice asks for.
    pub fn with_medium<F: UseMedium>(self, choice: WriteBackChoice, f: F) -> Result<F::Output, FileError> {
        let flushes = match choice {
            WriteBackChoice::Auto => {
                self.promise() == Promise::PowerFailure && !has_persistent_caches(b"/sys", &self.file)
            }
            WriteBackChoice::Flush => true,
            WriteBackChoice::None => false,
        };
        Ok(if flushes { f.call(Flushed::new(self)?) } else { f.call(Cached::new(self)) })
    }
}

impl Flushed {
    /// Fails if the CPU has no instruction for it; the file is closed then.
    pub fn new(file: PersistentFile) -> Result<Self, FileError> {
        let write_back = WriteBack::detect().ok_or(FileError::NoWriteBack)?;
        Ok(Self { file, write_back })
    }

    pub fn file(&self) -> &PersistentFile {
        &self.file
    }

    /// The instruction in use.
    pub fn write_back(&self) -> WriteBack {
        self.write_back
    }
}

impl Cached {
    pub fn new(file: PersistentFile) -> Self {
        Self { file }
    }

    pub fn file(&self) -> &PersistentFile {
        &self.file
    }
}

/// Sets and clears bits. To do both takes a loop.
#[inline(always)]
pub(crate) fn update(word: &AtomicU64, set: u64, clear: u64) -> u64 {
    // With constants, one instruction.
    if clear == 0 {
        // ORDERING: pairs with the acquiring loads of the medium's users.
        return word.fetch_or(set, Ordering::AcqRel);
    }
    if set == 0 {
        // ORDERING: pairs with the acquiring loads of the medium's users.
        return word.fetch_and(!clear, Ordering::AcqRel);
    }
    let mut old = word.load(Ordering::Relaxed);
    loop {
        let new = (old | set) & !clear;
        // ORDERING: pairs with the acquiring loads of the medium's users.
        match word.compare_exchange_weak(old, new, Ordering::AcqRel, Ordering::Relaxed) {
            Ok(old) => return old,
            Err(now) => old = now,
        }
    }
}

/// Stores a line through the cache, word by word.
#[inline(always)]
pub(crate) fn store_words(to: *mut u8, line: &Line) {
    // SAFETY: the caller has checked that the line is mapped and aligned; atomics may be shared.
    let words = unsafe { &*to.cast::<[AtomicU64; craton_base::LINE_WORDS]>() };
    // ORDERING: pairs with the end of the process: earlier stores are in the cache before these.
    fence(Ordering::Release);
    for (word, value) in words.iter().zip(line) {
        word.store(*value, Ordering::Relaxed);
    }
}

impl Medium for Flushed {
    const FLUSHES: bool = true;

    #[inline(always)]
    fn len(&self) -> u64 {
        self.file.len()
    }

    #[inline(always)]
    fn word(&self, at: u64) -> &AtomicU64 {
        self.file.word(at)
    }

    #[inline(always)]
    fn store(&self, at: u64, value: u64) {
        // ORDERING: pairs with the acquiring loads of the medium's users.
        self.file.word(at).store(value, Ordering::Release);
    }

    #[inline(always)]
    fn update(&self, at: u64, set: u64, clear: u64) -> u64 {
        update(self.file.word(at), set, clear)
    }

    #[inline(always)]
    fn store_line(&self, at: u64, line: &Line) {
        let to = self.file.at(at, LINE_BYTES);
        // SAFETY: mapped and aligned, as was just checked.
        unsafe { self.write_back.store_line(to.cast(), line) };
    }

    #[inline(always)]
    fn flush(&self, at: u64) {
        let line = self.file.at(at / LINE_BYTES * LINE_BYTES, LINE_BYTES);
        // SAFETY: mapped, as was just checked.
        unsafe { self.write_back.flush_at(line) };
    }

    #[inline(always)]
    fn fence(&self) {
        self.write_back.fence();
    }

    fn words(&self, at: u64, words: usize) -> Option<&[AtomicU64]> {
        self.file.words(at, words)
    }

    fn half_words(&self, at: u64, words: usize) -> Option<&[AtomicU32]> {
        self.file.half_words(at, words)
    }
}

impl Medium for Cached {
    const FLUSHES: bool = false;

    #[inline(always)]
    fn len(&self) -> u64 {
        self.file.len()
    }

    #[inline(always)]
    fn word(&self, at: u64) -> &AtomicU64 {
        self.file.word(at)
    }

    #[inline(always)]
    fn store(&self, at: u64, value: u64) {
        // ORDERING: pairs with the acquiring loads of the medium's users, and with the end of the
        // process: earlier stores are in the cache before this one.
        self.file.word(at).store(value, Ordering::Release);
    }

    #[inline(always)]
    fn update(&self, at: u64, set: u64, clear: u64) -> u64 {
        update(self.file.word(at), set, clear)
    }

    /// Its words may be stored in any order; later stores come after them.
    #[inline(always)]
    fn store_line(&self, at: u64, line: &Line) {
        store_words(self.file.at(at, LINE_BYTES), line);
    }

    #[inline(always)]
    fn flush(&self, _at: u64) {}

    #[inline(always)]
    fn fence(&self) {}

    fn words(&self, at: u64, words: usize) -> Option<&[AtomicU64]> {
        self.file.words(at, words)
    }

    fn half_words(&self, at: u64, words: usize) -> Option<&[AtomicU32]> {
        self.file.half_words(at, words)
    }
}

impl Space for Flushed {
    fn resize(&self, len: u64) -> Result<(), SpaceError> {
        space(self.file.resize(len))
    }

    fn discard(&self, at: u64, len: u64) -> Result<(), SpaceError> {
        space(self.file.discard(at, len))
    }

    fn allocate(&self, at: u64, len: u64) -> Result<(), SpaceError> {
        space(self.file.allocate(at, len))
    }

    fn limit(&self) -> u64 {
        self.file.limit()
    }
}

impl Space for Cached {
    fn resize(&self, len: u64) -> Result<(), SpaceError> {
        space(self.file.resize(len))
    }

    fn discard(&self, at: u64, len: u64) -> Result<(), SpaceError> {
        space(self.file.discard(at, len))
    }

    fn allocate(&self, at: u64, len: u64) -> Result<(), SpaceError> {
        space(self.file.allocate(at, len))
    }

    fn limit(&self) -> u64 {
        self.file.limit()
    }
}
