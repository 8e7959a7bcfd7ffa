//! The number of CPUs that the process may use.
//!
//! **Cost.** [`usable`] is a load after the first call; [`refresh`] makes 20 system calls or more.
//! **Unsafe.** Calls `sched_getaffinity`.

use crate::{cgroup, process, thp};
use core::sync::atomic::{AtomicUsize, Ordering::Relaxed};

static USABLE: AtomicUsize = AtomicUsize::new(0);

/// 8,192 CPUs.
const MASK_WORDS: usize = 128;

/// By affinity and quota (rounded up), as of the last [`refresh`].
pub fn usable() -> usize {
    match USABLE.load(Relaxed) {
        0 => refresh(),
        cpus => cpus,
    }
}

/// At most one system call, with little stack; may omit the quota until [`refresh`].
pub fn known() -> usize {
    match USABLE.load(Relaxed) {
        0 if thp::may_query() => affinity().unwrap_or(1),
        cpus => cpus.max(1),
    }
}

/// After a change of affinity or quota; keeps `errno`.
pub fn refresh() -> usize {
    if !thp::may_query() {
        return USABLE.load(Relaxed).max(1);
    }
    let saved = process::errno();
    let cpus = set_quota(cgroup::limits().cpu_thousandths);
    process::set_errno(saved);
    cpus
}

pub fn set_quota(thousandths: Option<u64>) -> usize {
    let cpus = fewest(affinity(), thousandths);
    USABLE.store(cpus, Relaxed);
    cpus
}

fn fewest(affinity: Option<usize>, thousandths: Option<u64>) -> usize {
    let quota = thousandths.map(|t| usize::try_from(t.div_ceil(1000)).unwrap_or(usize::MAX));
    affinity.into_iter().chain(quota).min().unwrap_or(1).max(1)
}

pub fn affinity() -> Option<usize> {
    let mut mask = [0u64; MASK_WORDS];
    // SAFETY: the mask has this length.
    let bytes = unsafe { libc::syscall(libc::SYS_sched_getaffinity, 0, size_of_val(&mask), mask.as_mut_ptr()) };
    let words = usize::try_from(bytes).ok()?.div_ceil(8);
    Some(mask[..words.min(MASK_WORDS)].iter().map(|w| w.count_ones() as usize).sum())
}

#[cfg(test)]
mod tests;
