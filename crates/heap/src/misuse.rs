//! The misuses of a pointer, of all layers, so that a report needs one text for each case.

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Misuse {
    /// The object's size differs from the caller's, `given`.
    WrongSize { given: usize, size: usize },
    /// The object is not aligned as the caller claims.
    WrongAlign { given: usize },
    /// An object of another heap than the caller's.
    OtherHeap,
    /// The heap never existed.
    NoHeap,
    /// The heap was destroyed.
    HeapDestroyed,
    /// The library's own heaps cannot be destroyed.
    HeapStays,
    /// The object cache never existed.
    NoCache,
    /// The object cache was destroyed.
    CacheDestroyed,
    /// An object of an object cache, which this call cannot free.
    OfCache { cache: u16 },
    /// An object of another object cache than the caller's, `given`.
    OtherCache { its: u16, given: u16 },
    /// An object of malloc or a heap, not of the caller's object cache.
    NotCached { given: u16 },
    /// A double free.
    Freed { size: usize },
    /// Points into an object, `offset` bytes behind its start.
    Inside { offset: usize, size: usize },
    /// Points into a large or huge object.
    InsideLarge { start: usize, size: usize },
    /// Points into the region, but into no object.
    Unallocated,
    /// Not an address of this library.
    Foreign,
}
