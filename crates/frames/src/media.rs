//! What a change of memory needs so that it outlasts a crash.
//!
//! **What.** The lower level says which words it has changed, which must be durable, and before what. A [`Media`] does
//! that: nothing in volatile memory, nothing where caches are persistent, a write-back and a fence elsewhere.
//!
//! **From.** LLFree §3.2.3, which assumes persistent caches (eADR) and notes that weaker persistency would do. A line
//! may also become durable at any time by itself, when a cache evicts it: so a word may be older than its flush only,
//! never half-written, and no order among words of several lines holds without a fence between.
//!
//! **Cost.** Of [`Volatile`] none: its calls are empty, and its zone has no page. Otherwise one flush and one fence for
//! a request of any order, two of each for a split.

/// Memory that outlasts a crash, or does not.
pub trait Media {
    /// Whether anything does.
    const PERSISTS: bool = true;

    /// A word has been changed. Only who watches needs to do something.
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

/// Memory in which whatever a processor can see is durable: with persistent caches (eADR), or a shared mapping of a
/// file that is to outlast the process, but not the system.
#[derive(Clone, Copy, Debug, Default)]
pub struct Cached;

impl Media for Cached {
    #[inline(always)]
    fn flush<W>(&self, _: &W) {}

    #[inline(always)]
    fn fence(&self) {}
}
