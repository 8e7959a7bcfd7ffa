//! The seam below the tree: words that survive, objects, and changes that happen together.
//!
//! **What.** A [`Store`] is a range of bytes in which objects are reserved, written, and then
//! published by [`commit`](Store::commit), the only call that changes what a restart finds.
//!
//! **Units.** Offsets and sizes in bytes; a *slot* is the offset of an aligned word that holds the
//! offset of an object, or 0.
//!
//! **Threads.** Any thread may call all methods. Two commits never share a slot: the tree holds the
//! lock of the node that contains it.
//!
//! **Failure.** A refused commit changes nothing, and its reserved objects are free again.

/// Why a store refuses. Nothing has changed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum StoreError {
    /// No room in the file, on the disk or in memory.
    NoMemory,
    /// More bytes than an object may have.
    TooLarge(u64),
    /// The file contradicts itself at this offset.
    Damaged(u64),
    /// The system refused, with this `errno`.
    System(i32),
}

impl StoreError {
    /// Whether room on the disk, or within a quota or limit, would end the error.
    pub fn is_full(self) -> bool {
        use std::io::ErrorKind::{FileTooLarge, QuotaExceeded, StorageFull};
        let Self::System(errno) = self else { return false };
        matches!(std::io::Error::from_raw_os_error(errno).kind(), StorageFull | QuotaExceeded | FileTooLarge)
    }
}

impl std::fmt::Display for StoreError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::NoMemory => write!(f, "no room in the heap"),
            Self::TooLarge(bytes) => write!(f, "an object of {bytes} bytes is too large for the heap"),
            Self::Damaged(at) => write!(f, "the heap is damaged at offset {at}"),
            Self::System(errno) => write!(f, "{}", std::io::Error::from_raw_os_error(*errno)),
        }
    }
}

impl std::error::Error for StoreError {}

/// A part of a commit.
#[derive(Debug)]
pub enum Change<R> {
    /// Publishes the object and stores its offset in the slot. A stale offset there is lost.
    Attach { slot: u64, object: R },
    /// As `Attach`, and frees the slot's object.
    Replace { slot: u64, object: R },
    /// Frees the slot's object, and stores 0.
    Free { slot: u64 },
    /// Stores a word.
    Set { slot: u64, value: u64 },
}

/// An object that a crash frees: reserved, not yet published.
pub trait Reservation {
    /// A multiple of 16.
    fn at(&self) -> u64;
}

/// A crash-consistent heap, as the tree sees it.
pub trait Store: Send + Sync {
    type Reserved: Reservation;

    /// Loads a word with acquire ordering; `None` beyond the end or if `at` is not a multiple of 8.
    /// Safe for an offset whose object another thread has freed.
    fn load(&self, at: u64) -> Option<u64>;

    /// Stores with release ordering; [`persist`](Self::persist) makes it durable. `at` lies in an
    /// object of the caller.
    fn store(&self, at: u64, value: u64);

    /// Reserves an uninitialised object.
    fn reserve(&self, bytes: u64) -> Result<Self::Reserved, StoreError>;

    /// Frees an object that will not be published.
    fn cancel(&self, object: Self::Reserved);

    /// Makes plain stores to this range durable no later than the next commit of this thread.
    fn persist(&self, at: u64, bytes: u64);

    /// Makes all changes or, if refused or cut short by a crash, none. Slots inside of an object
    /// that the same commit attaches come after it. At most [`MOST_CHANGES`].
    fn commit<I: IntoIterator<Item = Change<Self::Reserved>>>(&self, changes: I) -> Result<(), StoreError>;
}

pub const MOST_CHANGES: usize = 15;

/// The offset came from the store.
#[inline]
pub fn load<S: Store>(store: &S, at: u64) -> Result<u64, StoreError> {
    store.load(at).ok_or(StoreError::Damaged(at))
}

/// Reserves all objects, or none.
pub fn reserve_all<S: Store, const N: usize>(store: &S, sizes: [u64; N]) -> Result<[S::Reserved; N], StoreError> {
    let mut objects = Vec::with_capacity(N);
    for bytes in sizes {
        match store.reserve(bytes) {
            Ok(object) => objects.push(object),
            Err(error) => {
                objects.into_iter().for_each(|object| store.cancel(object));
                return Err(error);
            }
        }
    }
    Ok(objects.try_into().unwrap_or_else(|_| unreachable!("an object of each size")))
}

/// Rounds up to whole words.
#[inline]
pub fn padded(len: usize) -> u64 {
    (len as u64).next_multiple_of(8)
}

/// Up to eight bytes as a word, the rest zero.
#[inline]
pub fn word_of(bytes: &[u8]) -> u64 {
    match bytes.first_chunk() {
        Some(chunk) => u64::from_le_bytes(*chunk),
        None => {
            let mut word = [0; 8];
            word[..bytes.len()].copy_from_slice(bytes);
            u64::from_le_bytes(word)
        }
    }
}

/// Writes whole words, the last one padded with zeros.
pub fn write<S: Store>(store: &S, at: u64, bytes: &[u8]) {
    for (i, part) in bytes.chunks(8).enumerate() {
        store.store(at + 8 * i as u64, word_of(part));
    }
}

/// Appends to `out`. A reader without the lock checks `len` first.
pub fn read<S: Store>(store: &S, at: u64, len: usize, out: &mut Vec<u8>) -> Result<(), StoreError> {
    let mut at = at;
    let mut left = len;
    out.reserve(len);
    while left >= 8 {
        out.extend_from_slice(&load(store, at)?.to_le_bytes());
        at += 8;
        left -= 8;
    }
    if left > 0 {
        out.extend_from_slice(&load(store, at)?.to_le_bytes()[..left]);
    }
    Ok(())
}

/// Compares a padded string of equal length.
#[inline]
pub fn equals<S: Store>(store: &S, at: u64, bytes: &[u8]) -> Result<bool, StoreError> {
    for (i, part) in bytes.chunks(8).enumerate() {
        if load(store, at + 8 * i as u64)? != word_of(part) {
            return Ok(false);
        }
    }
    Ok(true)
}
