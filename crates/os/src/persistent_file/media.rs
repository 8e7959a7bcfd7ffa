//! The media of a mapped file, types so that no store asks: [`Cached`]'s flushes and fences compile
//! to nothing.
//!
//! **Threads.** An aligned store of x86 is whole, also for another process and after a crash.
//! **Unsafe.** Stores lines at checked places.

use super::domain::has_persistent_caches;
use super::{FileError, PersistentFile, space};
use crate::WriteBack;
use core::sync::atomic::{AtomicU32, AtomicU64, Ordering, fence};
use craton_base::{LINE_BYTES, Line, Medium, Promise, Space, SpaceError};

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum WriteBackChoice {
    /// On persistent memory, unless caches persist.
    Auto,
    /// In every file, also where it adds only time.
    Flush,
    /// Caches persist (eADR), or only a process can crash.
    None,
}

impl WriteBackChoice {
    pub fn parse(name: &[u8]) -> Option<Self> {
        Some(match name {
            b"auto" => Self::Auto,
            b"flush" => Self::Flush,
            b"none" => Self::None,
            _ => return None,
        })
    }
}

pub trait UseMedium {
    type Output;

    fn call<M: Medium + Space + 'static>(self, medium: M) -> Self::Output;
}

pub trait Durability: Send + Sync {
    const FLUSHES: bool;

    /// # Safety
    /// A mapped line that other threads access by atomics alone.
    unsafe fn store_line(&self, to: *mut u8, line: &Line);

    /// # Safety
    /// A mapped line.
    unsafe fn flush_at(&self, line: *mut u8);

    fn fence(&self);
}

#[derive(Clone, Copy, Debug)]
pub struct AtOnce;

#[derive(Debug)]
pub struct Mapped<D> {
    file: PersistentFile,
    durability: D,
}

pub type Flushed = Mapped<WriteBack>;
pub type Cached = Mapped<AtOnce>;

impl PersistentFile {
    pub fn flushes(&self, choice: WriteBackChoice) -> bool {
        match choice {
            WriteBackChoice::Auto => {
                self.promise() == Promise::PowerFailure && !has_persistent_caches(b"/sys", &self.file)
            }
            WriteBackChoice::Flush => true,
            WriteBackChoice::None => false,
        }
    }

    pub fn with_medium<F: UseMedium>(self, choice: WriteBackChoice, f: F) -> Result<F::Output, FileError> {
        let flushes = self.flushes(choice);
        Ok(if flushes { f.call(Flushed::new(self)?) } else { f.call(Cached::new(self)) })
    }
}

impl Flushed {
    /// Fails if the CPU has no instruction; the file is closed.
    pub fn new(file: PersistentFile) -> Result<Self, FileError> {
        let durability = WriteBack::detect().ok_or(FileError::NoWriteBack)?;
        Ok(Self { file, durability })
    }

    pub fn write_back(&self) -> WriteBack {
        self.durability
    }
}

impl Cached {
    pub fn new(file: PersistentFile) -> Self {
        Self { file, durability: AtOnce }
    }
}

impl<D> Mapped<D> {
    pub fn file(&self) -> &PersistentFile {
        &self.file
    }
}

#[inline(always)]
pub(crate) fn store_words(to: *mut u8, line: &Line) {
    // SAFETY: the caller checked that the line is mapped and aligned; atomics.
    let words = unsafe { &*to.cast::<[AtomicU64; craton_base::LINE_WORDS]>() };
    // ORDERING: pairs with the process's end: earlier stores come before these.
    fence(Ordering::Release);
    for (word, value) in words.iter().zip(line) {
        word.store(*value, Ordering::Relaxed);
    }
}

impl Durability for WriteBack {
    const FLUSHES: bool = true;

    /// Words in any order; later stores come after.
    #[inline(always)]
    unsafe fn store_line(&self, to: *mut u8, line: &Line) {
        // SAFETY: by the contract.
        unsafe { WriteBack::store_line(*self, to.cast(), line) };
    }

    #[inline(always)]
    unsafe fn flush_at(&self, line: *mut u8) {
        // SAFETY: by the contract.
        unsafe { WriteBack::flush_at(*self, line) };
    }

    #[inline(always)]
    fn fence(&self) {
        WriteBack::fence(*self);
    }
}

impl Durability for AtOnce {
    const FLUSHES: bool = false;

    #[inline(always)]
    unsafe fn store_line(&self, to: *mut u8, line: &Line) {
        store_words(to, line);
    }

    #[inline(always)]
    unsafe fn flush_at(&self, _line: *mut u8) {}

    #[inline(always)]
    fn fence(&self) {}
}

impl<D: Durability> Medium for Mapped<D> {
    const FLUSHES: bool = D::FLUSHES;

    #[inline(always)]
    fn len(&self) -> u64 {
        self.file.len()
    }

    #[inline(always)]
    fn word(&self, at: u64) -> &AtomicU64 {
        self.file.word(at)
    }

    #[inline(always)]
    fn store_line(&self, at: u64, line: &Line) {
        // SAFETY: mapped and aligned, as `at` checks; accessed by atomics.
        unsafe { self.durability.store_line(self.file.at(at, LINE_BYTES), line) };
    }

    #[inline(always)]
    fn flush(&self, at: u64) {
        if D::FLUSHES {
            // SAFETY: mapped, as `at` checks.
            unsafe { self.durability.flush_at(self.file.at(at / LINE_BYTES * LINE_BYTES, LINE_BYTES)) };
        }
    }

    #[inline(always)]
    fn fence(&self) {
        self.durability.fence();
    }

    fn words(&self, at: u64, words: usize) -> Option<&[AtomicU64]> {
        self.file.words(at, words)
    }

    fn copy(&self, at: u64, into: &mut [u64]) -> bool {
        self.file.copy(at, into)
    }

    fn half_array(&self, at: u64, words: usize) -> Option<&[AtomicU32]> {
        self.file.half_words(at, words)
    }
}

impl<D: Durability> Space for Mapped<D> {
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
