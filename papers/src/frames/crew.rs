//! Threads that stay on their processors, and begin together.
//!
//! **What.** [`crew`] runs each member on a thread pinned to one of this process's processors.
//! [`Member::time`] waits for all others before it begins.
//!
//! **Failure.** With too few processors members share; a thread that cannot be pinned runs
//! anywhere.
//!
//! **Unsafe.** Pins by a call of the C library, for which std has none.

use craton_lab::machine::processors;
use std::sync::Barrier;
use std::time::{Duration, Instant};

/// One of the threads.
pub struct Member<'a> {
    /// Its number, from 0.
    pub number: usize,
    together: &'a Barrier,
}

impl Member<'_> {
    /// Waits until all are here.
    pub fn wait(&self) {
        self.together.wait();
    }

    /// How long it takes, from when all are here.
    pub fn time<R>(&self, what: impl FnOnce() -> R) -> (Duration, R) {
        self.wait();
        let start = Instant::now();
        let done = what();
        (start.elapsed(), done)
    }
}

/// Does it with a member for each of `parts`, at once; what came of it, in their order.
///
/// # Panics
/// If one of them does.
pub fn crew<P: Send, R: Send>(parts: impl IntoIterator<Item = P>, each: impl Fn(Member<'_>, P) -> R + Sync) -> Vec<R> {
    let (parts, allowed): (Vec<P>, _) = (parts.into_iter().collect(), processors());
    let together = Barrier::new(parts.len());
    std::thread::scope(|scope| {
        let start = |(number, part)| {
            let (each, together, allowed) = (&each, &together, &allowed);
            scope.spawn(move || {
                if let Some(processor) = allowed.get(number % allowed.len().max(1)) {
                    stay_on(*processor);
                }
                each(Member { number, together }, part)
            })
        };
        let threads: Vec<_> = parts.into_iter().enumerate().map(start).collect();
        threads.into_iter().map(|thread| thread.join().expect("a member of the crew panicked")).collect()
    })
}

fn stay_on(processor: usize) {
    if processor >= libc::CPU_SETSIZE as usize {
        return;
    }
    // SAFETY: zeros are an empty cpu_set_t, and the number fits. A failure changes nothing.
    unsafe {
        let mut set: libc::cpu_set_t = std::mem::zeroed();
        libc::CPU_SET(processor, &mut set);
        libc::sched_setaffinity(0, size_of::<libc::cpu_set_t>(), &set);
    }
}

#[cfg(test)]
mod tests;
