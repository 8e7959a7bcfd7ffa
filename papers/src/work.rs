//! The workloads: small programs that any allocator can be preloaded into.
//!
//! **What.** Each [`Workload`] follows a published description and does a fixed amount of work, so
//! that its wall time compares allocators. `craton-work` runs one by name, on the C library's
//! `malloc` or what is preloaded in its place; [`craton_lab::measure`] measures from outside.
//!
//! **State.** The result is a checksum over the data that went through memory. It depends on the
//! [`Load`] alone, not on the allocator or on timing. Another sum means that memory was
//! overwritten.
//!
//! **Units.** Percent of the full load, which takes about a second on glibc and two processors.

pub mod alloc_test;
pub mod arguments;
pub mod barnes;
mod block;
pub mod cfrac;
pub(crate) mod crew;
pub mod espresso;
pub mod false_sharing;
pub mod fragbench;
pub mod glibc_simple;
pub mod glibc_thread;
pub mod interpreter;
pub mod json_dom;
pub mod larson;
pub mod lru_cache;
pub mod malloc_large;
pub mod mleak;
pub mod mstress;
pub mod prod_con;
pub mod rptest;
pub mod server;
pub mod shbench;
pub mod threadtest;

/// What a workload is asked to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Load {
    /// Threads that share the work, at least 1; a workload whose description has one thread ignores it.
    pub threads: usize,
    /// Amount of work in percent of the full one, at least 1.
    pub percent: u64,
    /// Where the random numbers start.
    pub seed: u64,
}

/// The amount of a quick run, in percent.
pub const QUICK: u64 = 5;
/// The amount of a full run, in percent.
pub const FULL: u64 = 100;
/// The seed of the standard loads.
pub const SEED: u64 = 1;

impl Load {
    /// The numbers of the threads.
    fn numbers(&self) -> std::ops::Range<u64> {
        0..self.threads as u64
    }

    /// The share of each thread in `full` units of work.
    fn share(&self, full: u64) -> u64 {
        self.of(full).div_ceil(self.threads as u64)
    }

    /// The part of `full` units of work that this load asks for: at least 1.
    pub fn of(&self, full: u64) -> u64 {
        u64::try_from(u128::from(full) * u128::from(self.percent) / 100).unwrap_or(u64::MAX).max(1)
    }
}

/// A workload and what is known of it.
pub struct Workload {
    /// What it is called by: lower case, digits and hyphens.
    pub name: &'static str,
    /// What it does, in one line.
    pub about: &'static str,
    /// Where its description was published.
    pub from: &'static str,
    /// Threads of the standard loads.
    pub threads: usize,
    /// Does the work, and returns the checksum.
    pub run: fn(&Load) -> u64,
    /// The checksums of the quick and of the full standard load.
    pub known: [u64; 2],
}

impl Workload {
    /// The standard load of so many percent.
    pub fn load(&self, percent: u64) -> Load {
        Load { threads: self.threads, percent, seed: SEED }
    }

    /// The checksum that `load` must have, if that is known.
    pub fn expected(&self, load: &Load) -> Option<u64> {
        let known = [self.load(QUICK), self.load(FULL)].iter().position(|standard| standard == load);
        known.map(|i| self.known[i])
    }
}

/// Every workload.
pub const WORKLOADS: &[&Workload] = &[
    &alloc_test::WORKLOAD,
    &barnes::WORKLOAD,
    &cfrac::WORKLOAD,
    &crate::empirical::WORKLOAD,
    &espresso::WORKLOAD,
    &false_sharing::SCRATCH,
    &false_sharing::THRASH,
    &fragbench::WORKLOAD_1,
    &fragbench::WORKLOAD_2,
    &fragbench::WORKLOAD_3,
    &fragbench::WORKLOAD_4,
    &glibc_simple::WORKLOAD,
    &glibc_thread::WORKLOAD,
    &interpreter::WORKLOAD,
    &json_dom::WORKLOAD,
    &larson::LARGE,
    &larson::SMALL,
    &lru_cache::WORKLOAD,
    &malloc_large::WORKLOAD,
    &mleak::WORKLOAD,
    &mstress::WORKLOAD,
    &prod_con::WORKLOAD,
    &rptest::WORKLOAD,
    &server::WORKLOAD,
    &shbench::SH6,
    &shbench::SH8,
    &threadtest::WORKLOAD,
    &prod_con::XMALLOC,
];

/// The workload of that name.
pub fn find(name: &str) -> Option<&'static Workload> {
    WORKLOADS.iter().copied().find(|workload| workload.name == name)
}

#[cfg(test)]
mod tests;
