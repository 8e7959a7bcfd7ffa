//! Thread modes: who serves a thread's requests when the fast path fails.
//!
//! **State.** The thread's word ([`crate::thread::tls`]) points at its cache, or at one of four
//! places on which fast paths fail. A second word is set while a request takes locks.
//! ```text
//!                 ┌ earns a cache ─────────────────────────► Own ─ the thread ends ─► Ending (Alone without rseq)
//! Fresh ─ first ──┼ the kernel restarts its sequences ► PerCpu ─ earns a cache ─► Own
//!         request └ it does not ───────────────────────► Alone
//!
//! Own                   ─ makes a concurrent task that shares its words ─► Alone (cache given up)
//! Fresh, PerCpu, Ending ─ makes a task that shares its words, also by vfork ─► Alone, until it is over
//! any but Alone         ─ a signal handler interrupts a part that takes locks ─► Nested, until it returns
//! ```
//! In a child of vfork Own uses its parent's cache: the parent waits. Alone is never Nested: the
//! other task may have set the second word.

use crate::thread::tls;
use craton_heap::thread_cache::ThreadCache;

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum ThreadMode {
    /// Has a cache.
    Own(*mut ThreadCache),
    /// No request yet.
    Fresh,
    /// On per-CPU caches.
    PerCpu,
    /// The thread gets no other cache.
    Ending,
    /// The kernel does not restart its sequences, or another task shares its words.
    Alone,
    /// A signal handler that interrupted a request.
    Nested { per_cpu: bool },
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Server<R> {
    Cache(*mut ThreadCache),
    /// Without memory the central list.
    NewCache,
    PerCpu(R),
    /// If the kernel, asked now, restarts its sequences; else the central list.
    PerCpuIfRegistered(R),
    Central,
    /// No lock may be taken.
    Apart,
}

impl ThreadMode {
    #[inline]
    pub(crate) fn now() -> Self {
        Self::of(tls::get(), tls::is_inside())
    }

    #[inline]
    fn of(cache: *mut ThreadCache, is_inside: bool) -> Self {
        if is_inside && cache != tls::alone() {
            return Self::Nested { per_cpu: cache == tls::visitor() || cache == tls::gone() };
        }
        match cache {
            _ if !tls::is_none(cache) => Self::Own(cache),
            _ if cache == tls::none() => Self::Fresh,
            _ if cache == tls::visitor() => Self::PerCpu,
            _ if cache == tls::gone() => Self::Ending,
            _ => Self::Alone,
        }
    }

    /// `rseq`: the thread's area, if per-CPU caches are on. `earns_cache` counts the request.
    #[inline]
    pub(crate) fn server<R>(self, rseq: impl FnOnce() -> Option<R>, earns_cache: impl FnOnce() -> bool) -> Server<R> {
        match self {
            Self::Own(cache) => Server::Cache(cache),
            Self::Fresh => match rseq() {
                Some(rseq) if !earns_cache() => Server::PerCpuIfRegistered(rseq),
                _ => Server::NewCache,
            },
            Self::PerCpu => match rseq() {
                Some(rseq) if !earns_cache() => Server::PerCpu(rseq),
                _ => Server::NewCache,
            },
            Self::Ending => rseq().map_or(Server::Central, Server::PerCpu),
            Self::Alone => Server::Central,
            Self::Nested { per_cpu: true } => rseq().map_or(Server::Apart, Server::PerCpu),
            Self::Nested { per_cpu: false } => Server::Apart,
        }
    }
}

#[cfg(all(test, not(loom)))]
mod tests;
