//! How changes of memory survive a crash.
//!
//! **What.** The lower level names the words that must be durable, and before what.
//! **From.** LLFree §3.2.3, which assumes persistent caches (eADR). A cache may evict a line at any
//! time: a word is whole, durable at the latest by its flush and fence; only a fence orders lines.
//! **Cost.** [`Volatile`]: none. Otherwise one flush and fence a request, two for a split.

pub trait Media {
    const PERSISTS: bool = true;

    /// Reports a change of a word to observers.
    #[inline(always)]
    fn changed<W>(&self, word: &W) {
        let _ = word;
    }

    /// Begins to make the word's line durable, as it is or becomes meanwhile.
    fn flush<W>(&self, word: &W);

    /// Waits for this thread's flushes.
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

/// Lost in a crash.
#[derive(Clone, Copy, Debug, Default)]
pub struct Volatile;

impl Media for Volatile {
    const PERSISTS: bool = false;

    #[inline(always)]
    fn flush<W>(&self, _: &W) {}

    #[inline(always)]
    fn fence(&self) {}
}

/// Persistent caches (eADR); or a file mapping, for process crashes.
#[derive(Clone, Copy, Debug, Default)]
pub struct Cached;

impl Media for Cached {
    #[inline(always)]
    fn flush<W>(&self, _: &W) {}

    #[inline(always)]
    fn fence(&self) {}
}
