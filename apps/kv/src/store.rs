//! The seam below the tree: objects are reserved, written, and published by
//! [`commit`](Store::commit), the only call that changes what a restart finds.
//!
//! **Units.** Bytes; a *slot* is the offset of a word that holds an object's offset, or 0. Two
//! commits never share one: the tree holds the lock of its node.

/// Nothing has changed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum StoreError {
    /// In the file or in memory.
    NoMemory,
    /// The object's bytes.
    TooLarge(u64),
    /// The offset.
    Damaged(u64),
    /// The `errno`.
    System(i32),
}

impl StoreError {
    /// Whether more room would help.
    pub fn is_full(self) -> bool {
        use std::io::ErrorKind::{FileTooLarge, QuotaExceeded, StorageFull};
        let Self::System(errno) = self else { return false };
        matches!(std::io::Error::from_raw_os_error(errno).kind(), StorageFull | QuotaExceeded | FileTooLarge)
    }
}

impl std::fmt::Display for StoreError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::NoMemory => write!(f, "no room in the heap: it has reached --most, or the disk is full"),
            Self::TooLarge(bytes) => write!(f, "an object of {bytes} bytes is too large for the heap"),
            Self::Damaged(at) => write!(f, "the heap is damaged at offset {at}"),
            Self::System(errno) => write!(f, "{}", std::io::Error::from_raw_os_error(*errno)),
        }
    }
}

impl std::error::Error for StoreError {}

#[derive(Debug)]
pub enum Change<R> {
    /// Publishes the object. The slot's old value is lost.
    Attach { slot: u64, object: R },
    /// As `Attach`, and frees the slot's old object.
    Replace { slot: u64, object: R },
    /// Also stores 0.
    Free { slot: u64 },
    /// A word.
    Set { slot: u64, value: u64 },
    /// As `Attach` of an object that was filled and never changes, and sets a word. Commits alone
    /// change slot and word. It is the only change.
    Link { slot: u64, object: R, word: u64, value: u64 },
}

/// A crash frees it.
pub trait Reservation {
    /// A multiple of 16.
    fn at(&self) -> u64;
}

/// A crash-consistent heap.
pub trait Store: Send + Sync {
    type Reserved: Reservation;

    /// With acquire ordering; `None` beyond the end or if `at` is not a multiple of 8. The object
    /// there may be freed.
    fn load(&self, at: u64) -> Option<u64>;

    /// With release ordering, in an object of the caller. Not durable before
    /// [`persist`](Self::persist).
    fn store(&self, at: u64, value: u64);

    /// Uninitialised.
    fn reserve(&self, bytes: u64) -> Result<Self::Reserved, StoreError>;

    fn cancel(&self, object: Self::Reserved);

    /// Writes all of a new object, durable as after [`persist`](Self::persist).
    #[inline]
    fn fill(&self, object: &mut Self::Reserved, words: impl Iterator<Item = u64>) {
        let at = object.at();
        let mut bytes = 0;
        for word in words {
            self.store(at + bytes, word);
            bytes += 8;
        }
        self.persist(at, bytes);
    }

    /// The range is durable no later than this thread's next commit.
    fn persist(&self, at: u64, bytes: u64);

    /// All changes or none; then reserved objects are free. A slot inside of an attached object
    /// comes after it. At most [`MOST_CHANGES`].
    fn commit<I: IntoIterator<Item = Change<Self::Reserved>>>(&self, changes: I) -> Result<(), StoreError>;

    /// Gives memory back that has been free for a while. Called by one thread; `now_ms` never goes
    /// back.
    fn maintain(&self, _now_ms: u64) {}
}

pub const MOST_CHANGES: usize = 15;

#[inline]
pub fn load<S: Store>(store: &S, at: u64) -> Result<u64, StoreError> {
    store.load(at).ok_or(StoreError::Damaged(at))
}

/// All, or none.
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

#[inline]
pub fn padded(len: usize) -> u64 {
    (len as u64).next_multiple_of(8)
}

/// Up to eight bytes, padded with zeros.
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

/// Pads the last one.
#[inline]
pub fn words_of(bytes: &[u8]) -> impl Iterator<Item = u64> {
    bytes.chunks(8).map(word_of)
}

/// Pads the last word.
pub fn write<S: Store>(store: &S, at: u64, bytes: &[u8]) {
    for (i, word) in words_of(bytes).enumerate() {
        store.store(at + 8 * i as u64, word);
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

/// Of equal, padded length.
#[inline]
pub fn equals<S: Store>(store: &S, at: u64, bytes: &[u8]) -> Result<bool, StoreError> {
    for (i, part) in bytes.chunks(8).enumerate() {
        if load(store, at + 8 * i as u64)? != word_of(part) {
            return Ok(false);
        }
    }
    Ok(true)
}
