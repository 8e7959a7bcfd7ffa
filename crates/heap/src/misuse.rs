//! What can be wrong with a pointer that a program hands in.
//!
//! **What.** One list for all layers, so that a report needs one text for each case. The core finds the cases about objects;
//! those about heaps with names and object caches come from the layer above.

/// What is wrong with a pointer.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Misuse {
    /// The object is of another size than the caller says.
    WrongSize {
        /// What the caller says.
        given: usize,
        /// Bytes of the object.
        size: usize,
    },
    /// The object does not lie at a multiple of the alignment that the caller says.
    WrongAlign {
        /// What the caller says.
        given: usize,
    },
    /// It is an object, but not of the heap that it was said to be of.
    OtherHeap,
    /// No heap was ever there.
    NoHeap,
    /// The heap was destroyed.
    HeapDestroyed,
    /// The heap is one of the library's own, which stay.
    HeapStays,
    /// No object cache was ever there.
    NoCache,
    /// The object cache was destroyed.
    CacheDestroyed,
    /// It is an object of an object cache, by its number, and not to be had by this call.
    OfCache {
        /// The cache's number.
        cache: u16,
    },
    /// It is an object of another object cache than the one that it was said to be of.
    OtherCache {
        /// Whose it is.
        its: u16,
        /// Whose it was said to be.
        given: u16,
    },
    /// It is an object of malloc or of a heap, and not of the object cache that it was said to be of.
    NotCached {
        /// Whose it was said to be.
        given: u16,
    },
    /// The object is free already.
    Freed {
        /// Bytes of the object.
        size: usize,
    },
    /// It points into an object.
    Inside {
        /// Bytes from the object's start.
        offset: usize,
        /// Bytes of the object.
        size: usize,
    },
    /// It points into a large or huge object.
    InsideLarge {
        /// Where the object starts.
        start: usize,
        /// Bytes of the object.
        size: usize,
    },
    /// It points into the region where nothing is allocated.
    Unallocated,
    /// It is none of ours.
    Foreign,
}
