//! How changes of memory survive a crash.
//!
//! **What.** The lower level names the words that must be durable, and before what. A [`Media`]
//! does nothing for volatile memory or persistent caches; elsewhere it writes back and fences.
//! **From.** LLFree §3.2.3, which assumes persistent caches (eADR). A cache may evict a line at any
//! time: a word is whole, durable at the latest by its flush and fence; words of several lines are
//! ordered only by a fence.
//! **Cost.** [`Volatile`]: none. Otherwise one flush and fence a request, two for a split.

/// Memory that outlasts a crash, or does not.
pub trait Media {
    /// Whether anything does.
    const PERSISTS: bool = true;

    /// Called after a change of a word, for observers.
    #[inline(always)]
    fn changed<W>(&self, word: &W) {
        let _ = word;
    }

    /// Begins to make the cache line of a word durable, as it is now or becomes meanwhile.
    fn flush<W>(&self, word: &W);

    /// Returns when what this thread has begun to flush is durable.
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

/// Memory that no crash leaves anything of.
#[derive(Clone, Copy, Debug, Default)]
pub struct Volatile;

impl Media for Volatile {
    const PERSISTS: bool = false;

    #[inline(always)]
    fn flush<W>(&self, _: &W) {}

    #[inline(always)]
    fn fence(&self) {}
}

/// Memory durable once visible: persistent caches (eADR); or a file mapping, for process crashes.
#[derive(Clone, Copy, Debug, Default)]
pub struct Cached;

impl Media for Cached {
    #[inline(always)]
    fn flush<W>(&self, _: &W) {}

    #[inline(always)]
    fn fence(&self) {}
}
