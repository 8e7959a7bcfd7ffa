use craton_pheap::Model;

#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub enum Durability {
    /// On persistent memory changes survive a power failure, elsewhere the end of the process.
    #[default]
    Auto,
    /// Always writes lines back.
    Flush,
    /// Never writes lines back: the caches persist (eADR), or only the process may end.
    NoFlush,
    /// For an ordinary disk: a crash of any kind restores the last
    /// [`sync`](crate::PersistentHeap::sync).
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
    pub fn new() -> Self {
        Self::default()
    }

    pub fn durability(self, durability: Durability) -> Self {
        Self { durability, ..self }
    }

    /// The most bytes of the file while open, reserved as address space.
    pub fn limit(self, bytes: u64) -> Self {
        Self { limit: bytes, ..self }
    }

    /// Only a new heap reads it.
    pub fn model(self, model: Model) -> Self {
        Self { model, ..self }
    }

    /// In bytes; 0: no bound. Only a new heap reads it.
    pub fn most(self, bytes: u64) -> Self {
        Self { most: bytes, ..self }
    }

    /// 1 to 64; further threads share them. Only a new heap reads it.
    pub fn lanes(self, lanes: u32) -> Self {
        Self { lanes: Some(lanes), ..self }
    }

    /// Of bitmaps, 1 to 8. Only a new heap reads it.
    pub fn stripes(self, stripes: u32) -> Self {
        Self { stripes: Some(stripes), ..self }
    }
}
