//! A path that an option gives: `%p` stands for the process's number, `%n` for the file's.
//!
//! **Threads.** A lock, which a fork takes.
//!
//! **Unsafe.** Releases a lock that a fork took.

use crate::observe::text::Text;
use crate::observe::trace::PATH_MAX;
use craton_os::{Mutex, Rank};

pub(crate) struct NumberedPath(Mutex<([u8; PATH_MAX], usize)>);

/// Ends by 0.
pub(crate) struct Ended {
    text: [u8; PATH_MAX],
    len: usize,
}

impl Ended {
    pub(crate) fn of(path: &[u8]) -> Option<Self> {
        let mut text = [0; PATH_MAX];
        let is_fit = path.len() < PATH_MAX && !path.contains(&0);
        is_fit.then(|| text[..path.len()].copy_from_slice(path))?;
        Some(Self { text, len: path.len() })
    }

    pub(crate) fn text(&self) -> &[u8] {
        &self.text[..self.len]
    }

    pub(crate) fn with_end(&self) -> &[u8] {
        &self.text[..=self.len]
    }
}

impl NumberedPath {
    pub(crate) const fn new(rank: Rank) -> Self {
        Self(Mutex::ranked(rank, ([0; PATH_MAX], 0)))
    }

    /// `false`: too long.
    pub(crate) fn set(&self, path: &[u8]) -> bool {
        // A number has at most 20 digits.
        let numbers = path.windows(2).filter(|two| is_number(two)).count();
        if path.len() + 20 * numbers >= PATH_MAX || path.contains(&0) {
            return false;
        }
        let mut own = self.0.lock();
        own.0[..path.len()].copy_from_slice(path);
        own.1 = path.len();
        true
    }

    pub(crate) fn show(&self, into: &mut Text<'_>) {
        let own = self.0.lock();
        into.bytes(&own.0[..own.1]);
    }

    pub(crate) fn is_set(&self) -> bool {
        self.0.lock().1 > 0
    }

    /// `None` without a path. `number`: of the file.
    pub(crate) fn named(&self, pid: u32, number: impl FnMut() -> u64) -> Option<Ended> {
        let own = self.0.lock();
        named(&own.0[..own.1], pid, number)
    }

    /// Likewise where another thread may hold the lock for ever: then `None`, too.
    pub(crate) fn try_named(&self, pid: u32) -> Option<Ended> {
        let own = self.0.try_lock()?;
        named(&own.0[..own.1], pid, || 1)
    }

    pub(crate) fn lock_for_fork(&self, nested: bool) {
        self.0.lock_for_fork(nested);
    }

    /// # Safety
    /// As [`Mutex::release_after_fork`].
    pub(crate) unsafe fn release_after_fork(&self) {
        // SAFETY: by the contract.
        unsafe { self.0.release_after_fork() };
    }
}

pub(crate) fn named(path: &[u8], pid: u32, mut number: impl FnMut() -> u64) -> Option<Ended> {
    let mut whole = [0; PATH_MAX];
    let (mut text, mut at) = (Text::new(&mut whole), 0);
    while at < path.len() {
        match path[at..].get(..2) {
            Some(b"%p") => text.number(pid.into()),
            Some(b"%n") => text.number(number()),
            _ => text.bytes(&path[at..=at]),
        };
        at += if is_number(&path[at..]) { 2 } else { 1 };
    }
    let len = text.end();
    Ended::of(whole.get(..len)?).filter(|_| !path.is_empty())
}

fn is_number(path: &[u8]) -> bool {
    path.starts_with(b"%p") || path.starts_with(b"%n")
}

#[cfg(all(test, not(loom)))]
mod tests;
