//! A file mapped as a persistent heap's memory.
//!
//! **From.** NVAlloc §2.1, §6.4 (eADR); mmap(2): `MAP_SYNC` succeeds only on persistent memory, and
//! makes the file's blocks durable before a store.
//! ```text
//! memory of                      promise         medium by default
//! persistent memory              power failure   Flushed
//! persistent memory, eADR        power failure   Cached
//! tmpfs, or a disk's page cache  process crash   Cached
//! any, opened to be read         process crash   Cached, of private memory
//! ```
//! **State.** `len` of the mapping may be touched. A reader's mapping is private, so that recovery
//! leaves the file alone.
//! **Threads.** A lock orders changes of length. A caller that shrinks ends all uses of the end.
//! **Failure.** A store to a sparse page raises a signal when the disk is full, and so does one
//! beyond the end if another process shortens the file.
//! **Unsafe.** Maps and unmaps the file.

pub(crate) mod descriptor;
mod domain;
mod error;
pub(crate) mod media;

use crate::{Mutex, process};
use core::ffi::CStr;
use core::ops::Range;
use core::ptr::null_mut;
use core::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use craton_base::{Promise, SpaceError};
pub use descriptor::Access;
use descriptor::{Descriptor, Kind};
pub use error::FileError;
pub use media::{Cached, Flushed, UseMedium, WriteBackChoice};

pub(crate) const PAGE_BYTES: u64 = 4096;

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Room {
    /// Pages get their place at the first store, or by [`allocate`](craton_base::Space::allocate).
    Sparse,
    /// As the file grows: a full disk refuses growth. Released pages lose their place.
    Reserved,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct FileOptions {
    /// Most bytes of the file, reserved in address space.
    pub limit: u64,
    pub access: Access,
    pub room: Room,
}

impl FileOptions {
    pub const fn new(limit: u64) -> Self {
        Self { limit, access: Access::ReadWrite, room: Room::Reserved }
    }
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Sharing {
    Shared,
    Private,
}

impl Sharing {
    fn of(access: Access) -> Self {
        if access == Access::ReadOnly { Self::Private } else { Self::Shared }
    }
}

#[derive(Debug)]
pub struct PersistentFile {
    pub(crate) file: Descriptor,
    base: *mut u8,
    limit: u64,
    len: AtomicU64,
    room: Room,
    access: Access,
    /// Stores need no sync of the file system.
    is_synchronous: bool,
    pub(crate) resizing: Mutex<()>,
}

// SAFETY: owns the mapping, accessed by atomics.
unsafe impl Send for PersistentFile {}
// SAFETY: as above.
unsafe impl Sync for PersistentFile {}

impl PersistentFile {
    /// A failure leaves no file behind.
    pub fn create(path: &CStr, len: u64, options: FileOptions) -> Result<Self, FileError> {
        check_len(len)?;
        if options.access == Access::ReadOnly {
            return Err(FileError::ReadOnly);
        }
        if len > options.limit {
            return Err(FileError::TooLong(len));
        }
        let file = Descriptor::create(path)?;
        let sized = file.set_size(len).and_then(|()| match options.room {
            Room::Reserved => file.allocate(0, len),
            Room::Sparse => Ok(()),
        });
        let mapped = sized.and_then(|()| Self::map(file, len, options, Sharing::of(options.access)));
        if mapped.is_err() {
            // SAFETY: the caller's path, of the file just made.
            unsafe { libc::unlink(path.as_ptr()) };
        }
        mapped
    }

    pub fn open(path: &CStr, options: FileOptions) -> Result<Self, FileError> {
        let file = Descriptor::open(path, options.access)?;
        let len = file.size()?;
        check_len(len)?;
        if len > options.limit {
            return Err(FileError::TooLong(len));
        }
        if file.kind == Kind::File && crate::disk_file::is_left_open(&file)? {
            return Err(FileError::LeftOpen);
        }
        Self::map(file, len, options, Sharing::of(options.access))
    }

    pub(crate) fn map(file: Descriptor, len: u64, options: FileOptions, sharing: Sharing) -> Result<Self, FileError> {
        let FileOptions { access, room, limit } = options;
        let limit = if file.kind == Kind::File { limit } else { len };
        let refused = FileError::AddressSpace(limit);
        let bytes = limit.checked_next_multiple_of(process::page_size() as u64).ok_or(refused)?;
        let bytes = usize::try_from(bytes).map_err(|_| refused)?;
        let map = |flags| {
            let access = libc::PROT_READ | libc::PROT_WRITE;
            // SAFETY: a new mapping where the kernel chooses.
            match unsafe { libc::mmap(null_mut(), bytes, access, flags, file.fd(), 0) } {
                libc::MAP_FAILED => Err(process::errno()),
                at => Ok(at.cast()),
            }
        };
        let (mapped, is_synchronous) = match sharing {
            Sharing::Private => (map(libc::MAP_PRIVATE | libc::MAP_NORESERVE), false),
            Sharing::Shared => match map(libc::MAP_SHARED_VALIDATE | libc::MAP_SYNC) {
                Ok(at) => (Ok(at), true),
                Err(_) => (map(libc::MAP_SHARED), file.kind == Kind::DaxDevice),
            },
        };
        let base = mapped.map_err(|errno| match errno {
            libc::ENOMEM => refused,
            errno => FileError::of("mmap", errno),
        })?;
        let (len, resizing) = (AtomicU64::new(len), Mutex::new(()));
        Ok(Self { file, base, limit, len, room, access, is_synchronous, resizing })
    }

    pub fn promise(&self) -> Promise {
        if self.is_synchronous { Promise::PowerFailure } else { Promise::ProcessCrash }
    }

    /// Whether syncs survive a power failure: not on a file system in memory.
    pub fn is_on_disk(&self) -> bool {
        !self.file.is_in_memory()
    }

    pub fn base(&self) -> *mut u8 {
        self.base
    }

    pub(crate) fn limit(&self) -> u64 {
        self.limit
    }

    pub(crate) fn room(&self) -> Room {
        self.room
    }

    pub(crate) fn mapped(&self) -> Range<usize> {
        self.mapped_part(self.limit.next_multiple_of(process::page_size() as u64))
    }

    pub(crate) fn mapped_part(&self, len: u64) -> Range<usize> {
        self.base as usize..self.base as usize + len as usize
    }

    /// Under the length's lock; the file is as long.
    pub(crate) fn set_len(&self, len: u64) {
        // ORDERING: pairs with `len`.
        self.len.store(len, Ordering::Release);
    }

    #[inline(always)]
    pub(crate) fn len(&self) -> u64 {
        // ORDERING: pairs with `resize`: new pages are in the file before use.
        self.len.load(Ordering::Acquire)
    }

    /// `at` is a multiple of `bytes`, at most a page.
    #[inline(always)]
    pub(crate) fn at(&self, at: u64, bytes: u64) -> *mut u8 {
        let len = self.len();
        if at >= len || !at.is_multiple_of(bytes) {
            outside(at, bytes, len);
        }
        // SAFETY: below `len`, a multiple of the page: all bytes are mapped.
        unsafe { self.base.add(at as usize) }
    }

    #[inline(always)]
    pub(crate) fn word(&self, at: u64) -> &AtomicU64 {
        // SAFETY: mapped, aligned, as long as `self`; accessed by atomics.
        unsafe { &*self.at(at, 8).cast() }
    }

    fn array<T>(&self, at: u64, words: usize) -> Option<&[T]> {
        let (size, len) = (size_of::<T>() as u64, self.len());
        let end = size.checked_mul(words as u64).and_then(|bytes| bytes.checked_add(at));
        if words == 0 || !at.is_multiple_of(size) || end.is_none_or(|end| end > len) {
            return None;
        }
        // SAFETY: mapped, aligned, as long as `self`; atomics, of any bits.
        Some(unsafe { core::slice::from_raw_parts(self.base.add(at as usize).cast(), words) })
    }

    /// A system call costs less than page faults.
    fn copy(&self, at: u64, into: &mut [u64]) -> bool {
        // Private pages may differ from the file's.
        let is_shared = self.access == Access::ReadWrite && self.file.kind == Kind::File && !self.is_synchronous;
        let bytes = size_of_val(into);
        // SAFETY: the words' own bytes; any bits are words.
        let bytes = unsafe { core::slice::from_raw_parts_mut(into.as_mut_ptr().cast::<u8>(), bytes) };
        is_shared && self.file.read(at, bytes).is_ok()
    }

    pub(crate) fn words(&self, at: u64, words: usize) -> Option<&[AtomicU64]> {
        self.array(at, words)
    }

    pub(crate) fn half_words(&self, at: u64, words: usize) -> Option<&[AtomicU32]> {
        self.array(at, words)
    }

    pub(crate) fn is_whole_pages(at: u64, len: u64) -> Result<(), FileError> {
        let is_aligned = at.is_multiple_of(PAGE_BYTES) && len.is_multiple_of(PAGE_BYTES);
        if is_aligned { Ok(()) } else { Err(FileError::Length(len)) }
    }

    fn can_change(&self) -> Result<(), FileError> {
        match (self.access, self.file.kind) {
            (Access::ReadOnly, _) => Err(FileError::ReadOnly),
            (_, Kind::File) => Ok(()),
            _ => Err(FileError::Fixed),
        }
    }

    fn resize(&self, len: u64) -> Result<(), FileError> {
        self.can_change()?;
        check_len(len)?;
        if len > self.limit {
            return Err(FileError::TooLong(len));
        }
        let _guard = self.resizing.lock();
        let old = self.len();
        if len < old {
            // ORDERING: pairs with `len`: the end is refused before it is gone.
            self.len.store(len, Ordering::Release);
        }
        let sized = self.file.set_size(len).and_then(|()| self.keep_size(old, len));
        match sized {
            Ok(()) => {
                // ORDERING: pairs with `len`.
                self.len.store(len, Ordering::Release);
                Ok(())
            }
            Err(error) => {
                // The part beyond was zero and unused, or is still there.
                let _ = self.file.set_size(old);
                // ORDERING: as above.
                self.len.store(old, Ordering::Release);
                Err(error)
            }
        }
    }

    /// Makes room, and the length durable where stores are.
    fn keep_size(&self, old: u64, len: u64) -> Result<(), FileError> {
        if len > old && self.room == Room::Reserved {
            self.file.allocate(old, len - old)?;
        }
        if self.is_synchronous { self.file.sync() } else { Ok(()) }
    }

    fn allocate(&self, at: u64, len: u64) -> Result<(), FileError> {
        Self::is_whole_pages(at, len)?;
        match self.can_change() {
            Ok(()) => self.file.allocate(at, len),
            // A device has its place; a reader's stores go to memory.
            Err(_) => Ok(()),
        }
    }

    fn discard(&self, at: u64, len: u64) -> Result<(), FileError> {
        Self::is_whole_pages(at, len)?;
        self.can_change()?;
        if at.checked_add(len).is_none_or(|end| end > self.len()) {
            return Err(FileError::TooLong(at.saturating_add(len)));
        }
        self.file.punch(at, len)
    }
}

impl Drop for PersistentFile {
    fn drop(&mut self) {
        let bytes = (self.limit as usize).next_multiple_of(process::page_size());
        crate::mapping::unmap(self.base as usize, bytes);
    }
}

pub(crate) fn check_len(len: u64) -> Result<(), FileError> {
    if len == 0 || !len.is_multiple_of(PAGE_BYTES) { Err(FileError::Length(len)) } else { Ok(()) }
}

#[cold]
#[inline(never)]
pub(crate) fn outside(at: u64, bytes: u64, len: u64) -> ! {
    panic!("no {bytes} aligned bytes at {at} of a medium of {len} bytes");
}

pub(crate) fn space(result: Result<(), FileError>) -> Result<(), SpaceError> {
    result.map_err(SpaceError::from)
}

#[cfg(all(test, not(loom)))]
pub(crate) mod tests;
