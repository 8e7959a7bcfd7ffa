//! The sampled form: one object in so many is a buffer on pages of its own.
//!
//! **What.** Objects that leave the slabs are counted; after a random number of them the next one is a sample. The numbers are those of a
//! coin thrown for each object, so that each has the same chance, 1 / N.
//!
//! **From.** GWP-ASan (arXiv 2311.09394).
//!
//! **Units.** Objects that are handed out to threads' caches or past them: an object that a thread frees and takes again from its own
//! cache was counted once.
//!
//! **Cost.** One load in each slow request when off; a subtraction when on.

use super::setting::SAMPLED;
use super::{kit, setting};
use crate::size_class::CLASSES;
use core::sync::atomic::{AtomicBool, AtomicI64, AtomicU64, Ordering::Relaxed};
use craton_os::process;

/// One in so many; 0 for none.
static EVERY: AtomicU64 = AtomicU64::new(0);
/// Objects that are handed out before the next sample.
static LEFT: AtomicI64 = AtomicI64::new(i64::MAX);
/// The classes of which the next object is the sample.
static DUE: [AtomicBool; CLASSES + 1] = [const { AtomicBool::new(false) }; CLASSES + 1];
static SEED: AtomicU64 = AtomicU64::new(0);
static TAKEN: AtomicU64 = AtomicU64::new(0);

/// What `guard_sample=auto` is.
pub(crate) const AUTO: u64 = 20_000;
/// Largest value.
const MOST: u64 = 1 << 40;

/// Sets the option `guard_sample`.
pub(crate) fn set(every: u64) -> bool {
    if every > MOST || every > 0 && !crate::front::set_up() {
        return false;
    }
    EVERY.store(every, Relaxed);
    LEFT.store(if every == 0 { i64::MAX } else { draw(every) }, Relaxed);
    if every > 0 {
        super::IN_USE.store(true, Relaxed);
        super::fault::watch();
    }
    true
}

/// The option.
pub(crate) fn every() -> u64 {
    EVERY.load(Relaxed)
}

/// Samples that were taken.
pub(crate) fn taken() -> u64 {
    TAKEN.load(Relaxed)
}

/// Objects before the next sample, where each is one with the chance 1 / `every`.
fn draw(every: u64) -> i64 {
    // A generator of Marsaglia's kind; two threads that draw at once may draw the same.
    let mut x = SEED.load(Relaxed);
    if x == 0 {
        x = process::random_seed() | 1;
    }
    x ^= x << 13;
    x ^= x >> 7;
    x ^= x << 17;
    SEED.store(x, Relaxed);
    geometric(x, every) - 1
}

/// The number of throws until the first success, by a uniform number: ⌈ln u / ln(1 − 1/every)⌉, with ln by its series, for want of a
/// library.
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

/// Whether the next object of a class that leaves the slabs is to be a sample; of what is large, for class 0, which is counted by this.
#[inline]
pub(crate) fn is_due(class: usize) -> bool {
    if EVERY.load(Relaxed) == 0 {
        return false;
    }
    if class == 0 {
        return LEFT.fetch_sub(1, Relaxed) <= 0;
    }
    DUE[class].load(Relaxed) || LEFT.load(Relaxed) <= 0
}

/// Counts objects of a class that are about to leave the slabs, and says how many of `want` may at once: where the sample falls between them, it
/// is the class's next one.
#[inline]
pub(crate) fn bound(class: usize, want: u32) -> u32 {
    let every = EVERY.load(Relaxed);
    if every == 0 {
        return want;
    }
    let left = LEFT.fetch_sub(want.into(), Relaxed);
    if left >= i64::from(want) {
        return want;
    }
    DUE[class].store(true, Relaxed);
    LEFT.store(draw(every), Relaxed);
    left.max(1) as u32
}

/// A sample of a class, which is due, if there are pages for it; null if not.
pub(super) fn alloc(class: usize, size: usize, align: usize) -> *mut u8 {
    let every = EVERY.load(Relaxed);
    if every == 0 {
        return core::ptr::null_mut();
    }
    if !DUE[class].swap(false, Relaxed) {
        LEFT.store(draw(every), Relaxed);
    }
    let sample = kit::alloc(size, align, super::MALLOC, SAMPLED | setting::VERIFY);
    if !sample.is_null() {
        TAKEN.fetch_add(1, Relaxed);
    }
    sample
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn samples_come_as_often_as_asked_for_on_average() {
        for every in [1, 2, 10, 1000, 20_000] {
            let (n, mut sum, mut x) = (20_000u64, 0u64, 88_172_645_463_325_252u64);
            for _ in 0..n {
                x ^= x << 13;
                x ^= x >> 7;
                x ^= x << 17;
                sum += geometric(x, every) as u64;
            }
            let mean = sum as f64 / n as f64;
            // The standard error of the mean is about `every` / 141.
            assert!((mean / every as f64 - 1.0).abs() < 0.04, "{mean} for {every}");
        }
    }

    #[test]
    fn the_logarithm_is_one() {
        for (x, ln) in [(1.0, 0.0), (1.5, 0.405_465_108_1), (2.0, core::f64::consts::LN_2)] {
            assert!((ln_near_one(x) - ln).abs() < 1e-8, "{x}");
        }
    }
}
