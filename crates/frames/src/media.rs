//! How changes of memory survive a crash.
//!
//! LLFree §3.2.3 assumes persistent caches (eADR). A cache may evict a line at any time: a word is
//! whole, durable at the latest by its flush and fence; only a fence orders lines.

pub trait Media {
    const PERSISTS: bool = true;

    #[inline(always)]
    fn changed<W>(&self, word: &W) {
        let _ = word;
    }

    /// Begins to make the word's line durable, with later changes or without.
    fn flush<W>(&self, word: &W);

    fn fence(&self);
}

impl<M: Media> Media for &M {
    const PERSISTS: bool = M::PERSISTS;

    #[inline(always)]
    fn changed<W>(&self, word: &W) {
        (**self).changed(word);
    }

    #[inline(always)]
    fn flush<W>(&self, word: &W) {
        (**self).flush(word);
    }

    #[inline(always)]
    fn fence(&self) {
        (**self).fence();
    }
}

#[derive(Clone, Copy, Debug, Default)]
pub struct Volatile;

impl Media for Volatile {
    const PERSISTS: bool = false;

    #[inline(always)]
    fn flush<W>(&self, _: &W) {}

    #[inline(always)]
    fn fence(&self) {}
}

/// eADR; or a file mapping, for process crashes.
#[derive(Clone, Copy, Debug, Default)]
pub struct Cached;

impl Media for Cached {
    #[inline(always)]
    fn flush<W>(&self, _: &W) {}

    #[inline(always)]
    fn fence(&self) {}
}
