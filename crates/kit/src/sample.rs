//! The sampled form (GWP-ASan, arXiv 2311.09394): one object in N is a buffer on separate pages.
//!
//! **What.** A random count of objects leaves the slabs between two samples, as if a coin were
//! thrown for each: each has the chance 1 / N.
//!
//! **Units.** Objects handed to thread caches or past them; reuse within a cache is not counted.
//!
//! **Cost.** One load in each slow request when off; a subtraction when on.

use core::sync::atomic::{AtomicBool, AtomicI64, AtomicU64, Ordering::Relaxed};
use craton_heap::size_class::CLASSES;
use craton_os::process;

/// `N` for `guard_sample=auto`.
pub const AUTO: u64 = 20_000;
const MOST: u64 = 1 << 40;

pub(crate) struct Sample {
    /// One object in this number; 0 for none.
    every: AtomicU64,
    /// Objects that are handed out before the next sample; meaningless while `every` is 0.
    left: AtomicI64,
    /// The classes of which the next object is the sample.
    due: [AtomicBool; CLASSES + 1],
    seed: AtomicU64,
    taken: AtomicU64,
}

impl Sample {
    pub(crate) const fn new() -> Self {
        Self {
            every: AtomicU64::new(0),
            left: AtomicI64::new(0),
            due: [const { AtomicBool::new(false) }; CLASSES + 1],
            seed: AtomicU64::new(0),
            taken: AtomicU64::new(0),
        }
    }

    pub(crate) fn allows(every: u64) -> bool {
        every <= MOST
    }

    pub(crate) fn set(&self, every: u64) {
        // The count before the rate, so that no request meets the rate with an old count.
        if every > 0 {
            self.left.store(self.draw(every), Relaxed);
        }
        self.every.store(every, Relaxed);
    }

    pub(crate) fn every(&self) -> u64 {
        self.every.load(Relaxed)
    }

    pub(crate) fn taken(&self) -> u64 {
        self.taken.load(Relaxed)
    }

    /// Objects before the next sample, where each is one with the chance 1 / `every`.
    fn draw(&self, every: u64) -> i64 {
        // A generator of Marsaglia's kind; two threads that draw at once may draw the same.
        let mut x = self.seed.load(Relaxed);
        if x == 0 {
            x = process::random_seed() | 1;
        }
        x ^= x << 13;
        x ^= x >> 7;
        x ^= x << 17;
        self.seed.store(x, Relaxed);
        geometric(x, every) - 1
    }

    /// Whether the next object of a class is to be a sample. Counts large objects, class 0.
    #[inline]
    pub(crate) fn is_due(&self, class: usize) -> bool {
        if self.every.load(Relaxed) == 0 {
            return false;
        }
        if class == 0 {
            return self.left.fetch_sub(1, Relaxed) <= 0;
        }
        self.due[class].load(Relaxed) || self.left.load(Relaxed) <= 0
    }

    /// Counts objects of a class about to leave the slabs; returns how many of `want` may at once.
    /// A sample that falls between them is the class's next object.
    #[inline]
    pub(crate) fn bound(&self, class: usize, want: u32) -> u32 {
        let every = self.every.load(Relaxed);
        if every == 0 {
            return want;
        }
        let left = self.left.fetch_sub(want.into(), Relaxed);
        if left >= i64::from(want) {
            return want;
        }
        self.due[class].store(true, Relaxed);
        self.left.store(self.draw(every), Relaxed);
        left.max(1) as u32
    }

    /// Claims the due sample of a class; `false` if samples are off meanwhile.
    pub(crate) fn begin(&self, class: usize) -> bool {
        let every = self.every.load(Relaxed);
        if every > 0 && !self.due[class].swap(false, Relaxed) {
            self.left.store(self.draw(every), Relaxed);
        }
        every > 0
    }

    pub(crate) fn count(&self) {
        self.taken.fetch_add(1, Relaxed);
    }
}

/// Throws until the first success: ⌈ln u / ln(1 − 1/every)⌉; `core` has no ln, hence the series.
fn geometric(uniform: u64, every: u64) -> i64 {
    if every <= 1 {
        return 1;
    }
    // u in (0, 1]; ln u = (exponent · ln 2) + ln of a mantissa in [1, 2).
    let u = uniform | 1;
    let exponent = 63 - u.leading_zeros() as i64;
    let mantissa = u as f64 / (1u64 << exponent) as f64;
    let ln_u = (exponent - 64) as f64 * core::f64::consts::LN_2 + ln_near_one(mantissa);
    let p = 1.0 / every as f64;
    // ln(1 − p) = −2 artanh(p / (2 − p))
    let z = p / (2.0 - p);
    let ln_miss = -2.0 * artanh(z);
    ((ln_u / ln_miss) as i64 + 1).max(1)
}

/// ln x for x in [1, 2].
fn ln_near_one(x: f64) -> f64 {
    2.0 * artanh((x - 1.0) / (x + 1.0))
}

/// For |z| ≤ 1/3, to 10⁻⁹.
fn artanh(z: f64) -> f64 {
    let square = z * z;
    let mut term = z;
    let mut sum = 0.0;
    for n in 0..10 {
        sum += term / (2 * n + 1) as f64;
        term *= square;
    }
    sum
}

#[cfg(all(test, not(loom)))]
mod tests;
