//! The misuses of a pointer, of all layers.

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Misuse {
    /// The caller's size is `given`.
    WrongSize { given: usize, size: usize },
    /// The caller's claim is `given`.
    WrongAlign { given: usize },
    /// Another heap than the caller's.
    OtherHeap,
    /// It never existed.
    NoHeap,
    /// It existed before.
    HeapDestroyed,
    /// The library's own heaps cannot be destroyed.
    HeapStays,
    /// It never existed.
    NoCache,
    /// It existed before.
    CacheDestroyed,
    /// This call cannot free the cache's object.
    OfCache { cache: u16 },
    /// The caller's is `given`.
    OtherCache { its: u16, given: u16 },
    /// Of malloc or a heap, not of the caller's object cache.
    NotCached { given: u16 },
    /// A double free.
    Freed { size: usize },
    /// `offset` bytes behind an object's start.
    Inside { offset: usize, size: usize },
    /// The object is large or huge.
    InsideLarge { start: usize, size: usize },
    /// In the region, but in no object.
    Unallocated,
    /// Not an address of this library.
    Foreign,
}
