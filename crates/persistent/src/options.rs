//! How a heap is made, and how it is opened.

use craton_pheap::Model;

/// How changes become durable.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub enum Durability {
    /// By what the file lies on: changes on persistent memory survive a power failure, those of
    /// other files the end of the process.
    #[default]
    Auto,
    /// Lines are written back in any case, also where that adds nothing but time.
    Flush,
    /// Lines are not written back: the caches persist (eADR), or only the process may end.
    NoFlush,
    /// On an ordinary disk: [`PersistentHeap::sync`](crate::PersistentHeap::sync) makes all changes
    /// up to then durable, all or none. A crash of any kind brings the last sync point back.
    SyncPoints,
}

/// How a heap is made and opened.
///
/// ```
/// # let folder = tempfile::tempdir()?;
/// # let path = folder.path().join("keys.heap");
/// use craton_persistent::{Durability, HeapOptions};
///
/// let heap = HeapOptions::new().durability(Durability::SyncPoints).limit(1 << 30).create(&path)?;
/// heap.sync()?;
/// heap.close()?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Copy, Debug)]
pub struct HeapOptions {
    pub(crate) durability: Durability,
    pub(crate) limit: u64,
    pub(crate) model: Model,
    pub(crate) most: u64,
    pub(crate) lanes: Option<u32>,
    pub(crate) stripes: Option<u32>,
}

impl Default for HeapOptions {
    fn default() -> Self {
        Self { durability: Durability::Auto, limit: 64 << 30, model: Model::Log, most: 0, lanes: None, stripes: None }
    }
}

impl HeapOptions {
    /// A log heap of up to 64 GiB whose changes are durable by what the file lies on.
    pub fn new() -> Self {
        Self::default()
    }

    /// How changes become durable.
    pub fn durability(self, durability: Durability) -> Self {
        Self { durability, ..self }
    }

    /// Bytes that the file may grow to while it is open, for which address space is reserved.
    /// 64 GiB at first.
    pub fn limit(self, bytes: u64) -> Self {
        Self { limit: bytes, ..self }
    }

    /// How small objects survive a crash. Counts when the heap is made.
    pub fn model(self, model: Model) -> Self {
        Self { model, ..self }
    }

    /// Bytes beyond which the heap never grows; 0: no such bound. Counts when the heap is made.
    pub fn most(self, bytes: u64) -> Self {
        Self { most: bytes, ..self }
    }

    /// Threads beyond this number share a lane, 1 to 64. Counts when the heap is made.
    pub fn lanes(self, lanes: u32) -> Self {
        Self { lanes: Some(lanes), ..self }
    }

    /// Stripes of bitmaps, 1 to 8. Counts when the heap is made.
    pub fn stripes(self, stripes: u32) -> Self {
        Self { stripes: Some(stripes), ..self }
    }
}
