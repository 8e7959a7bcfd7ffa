//! Threads that stay on their processors if possible, and begin together ([`Member::time`]).
//!
//! **Unsafe.** Pins by the C library.

use crate::work::crew::each;
use craton_lab::machine::processors;
use std::sync::Barrier;
use std::time::{Duration, Instant};

pub struct Member<'a> {
    pub number: usize,
    together: &'a Barrier,
}

impl Member<'_> {
    pub fn wait(&self) {
        self.together.wait();
    }

    pub fn time<R>(&self, what: impl FnOnce() -> R) -> (Duration, R) {
        self.wait();
        let start = Instant::now();
        let done = what();
        (start.elapsed(), done)
    }
}

/// Results in order.
///
/// # Panics
/// If a member does.
pub fn crew<P: Send, R: Send>(parts: impl IntoIterator<Item = P>, work: impl Fn(Member<'_>, P) -> R + Sync) -> Vec<R> {
    let (parts, allowed): (Vec<P>, _) = (parts.into_iter().collect(), processors());
    let together = Barrier::new(parts.len());
    each(parts.into_iter().enumerate(), |(number, part)| {
        if let Some(processor) = allowed.get(number % allowed.len().max(1)) {
            stay_on(*processor);
        }
        work(Member { number, together: &together }, part)
    })
}

fn stay_on(processor: usize) {
    if processor >= libc::CPU_SETSIZE as usize {
        return;
    }
    // SAFETY: zeros are an empty cpu_set_t; the number fits.
    unsafe {
        let mut set: libc::cpu_set_t = std::mem::zeroed();
        libc::CPU_SET(processor, &mut set);
        libc::sched_setaffinity(0, size_of::<libc::cpu_set_t>(), &set);
    }
}

#[cfg(test)]
mod tests;
