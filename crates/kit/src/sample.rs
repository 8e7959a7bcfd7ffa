//! Sampling (GWP-ASan, arXiv 2311.09394): one allocation in N is a buffer on separate pages. By
//! default, [`AUTO`], a sample comes when the process has used 700 times the processor time of the
//! one before: a bounded part, however deep stacks are.
//!
//! **Cost.** A load and a store of one line in each refill; a load in each slow request; a system
//! call for each `AUTO` allocations, at most one in 3 ms.

use core::sync::atomic::{AtomicBool, AtomicI64, AtomicU64, Ordering::Relaxed};
use craton_heap::size_class::{CLASSES, size_of_class};
use craton_os::{precise_ns, process, process_cpu_ns, processor_ns, thp};

pub const AUTO: u64 = 20_000;
const MOST: u64 = 1 << 40;
/// By default: least time between samples, also of the processor; and how often the last sample's
/// processor time must pass. A free takes as long again.
const PACE_NS: u64 = 3_000_000;
const PACE_PARTS: u64 = 700;
const LONGEST_NS: u64 = 1_000_000;
/// The largest sample by default.
const PACED_BYTES: usize = 32 << 10;
/// For each further page's first touch.
const TOUCH_NS: u64 = 500;

/// Samples out or waiting: at a requested rate; by default; and by default of more than a page, of
/// which at most half wait.
pub(crate) const MOST_OUT: usize = 2048;
pub(crate) const PACED_OUT: usize = 32;
pub(crate) const PACED_MAPPED: usize = 16;
pub(crate) const PLACES: usize = MOST_OUT + PACED_MAPPED;

pub(crate) struct Sample {
    /// Exclusive-or the default; 0: off.
    every: AtomicU64,
    /// Allocations before the next sample, less [`AUTO`]: a constant at first, so that small
    /// programs touch no code for samples.
    left: AtomicI64,
    /// Classes whose next object is the sample.
    due: [AtomicBool; CLASSES + 1],
    any_due: AtomicBool,
    /// Of the last default sample, also by processor time.
    last_ns: AtomicU64,
    last_at_ns: AtomicU64,
    cost_ns: AtomicU64,
    seed: AtomicU64,
    taken: AtomicU64,
}

impl Sample {
    pub(crate) const fn new() -> Self {
        Self {
            every: AtomicU64::new(0),
            left: AtomicI64::new(0),
            due: [const { AtomicBool::new(false) }; CLASSES + 1],
            any_due: AtomicBool::new(false),
            last_ns: AtomicU64::new(0),
            last_at_ns: AtomicU64::new(0),
            cost_ns: AtomicU64::new(0),
            seed: AtomicU64::new(0),
            taken: AtomicU64::new(0),
        }
    }

    pub(crate) fn allows(every: u64) -> bool {
        every <= MOST
    }

    pub(crate) fn set(&self, every: u64) {
        // Before the rate: no request meets the rate with an old count.
        if every > 0 {
            self.set_left(self.draw(every));
        }
        self.every.store(every ^ AUTO, Relaxed);
    }

    #[inline]
    pub(crate) fn every(&self) -> u64 {
        self.every.load(Relaxed) ^ AUTO
    }

    #[inline]
    fn left(&self) -> i64 {
        self.left.load(Relaxed) + AUTO as i64
    }

    #[inline]
    fn set_left(&self, left: i64) {
        self.left.store(left - AUTO as i64, Relaxed);
    }

    #[inline]
    pub(crate) fn is_asked(&self) -> bool {
        !matches!(self.every(), 0 | AUTO)
    }

    #[inline]
    pub(crate) fn is_busy(&self) -> bool {
        self.any_due.load(Relaxed) || self.is_asked()
    }

    pub(crate) fn taken(&self) -> u64 {
        self.taken.load(Relaxed)
    }

    /// Each allocation has the chance 1 / `every`.
    fn draw(&self, every: u64) -> i64 {
        geometric(uniform(&self.seed), every) - 1
    }

    pub(crate) fn is_due(&self, class: usize) -> bool {
        match self.every() {
            0 => false,
            AUTO => self.due[class].load(Relaxed),
            _ if class == 0 => self.left.fetch_sub(1, Relaxed) <= -(AUTO as i64),
            _ => self.due[class].load(Relaxed) || self.left() <= 0,
        }
    }

    /// Returns how many of `want` objects may leave the slabs at once.
    #[inline]
    pub(crate) fn bound(&self, class: usize, want: u32) -> u32 {
        let every = self.every();
        if every == 0 {
            return want;
        }
        let left = self.left();
        self.set_left(left - i64::from(want));
        if left >= i64::from(want) || !self.falls_on(class, every) {
            return want;
        }
        left.max(1) as u32
    }

    #[cold]
    pub(crate) fn reused(&self, class: usize, allocations: u32) -> bool {
        let every = self.every();
        if every == 0 {
            return false;
        }
        let left = self.left() - i64::from(allocations);
        self.set_left(left);
        left <= 0 && self.falls_on(class, every)
    }

    #[cold]
    fn falls_on(&self, class: usize, every: u64) -> bool {
        // The next object that can be one.
        if every == AUTO && size_of_class(class) > PACED_BYTES {
            return false;
        }
        self.set_left(self.draw(every));
        if every == AUTO && !self.comes_now(precise_ns()) {
            return false;
        }
        self.due[class].store(true, Relaxed);
        self.any_due.store(true, Relaxed);
        true
    }

    fn comes_now(&self, now_ns: u64) -> bool {
        // A program's filter may forbid the system call.
        let is_due = now_ns.wrapping_sub(self.last_at_ns.load(Relaxed)) >= PACE_NS
            && thp::may_query()
            && self.is_time(process_cpu_ns());
        if is_due {
            self.last_at_ns.store(now_ns, Relaxed);
        }
        is_due
    }

    fn is_time(&self, now_ns: u64) -> bool {
        let last = self.last_ns.load(Relaxed);
        let pace = (PACE_PARTS * self.cost_ns.load(Relaxed)).max(PACE_NS);
        let is_time = last > 0 && now_ns.wrapping_sub(last) >= pace;
        if last == 0 || is_time {
            self.last_ns.store(now_ns.max(1), Relaxed);
        }
        is_time
    }

    /// `false`: samples are off.
    pub(crate) fn begin(&self, class: usize) -> bool {
        let every = self.every();
        let was_due = self.due[class].swap(false, Relaxed);
        if was_due {
            let others = self.due.iter().any(|due| due.load(Relaxed));
            self.any_due.store(others, Relaxed);
        } else if self.is_asked() {
            self.set_left(self.draw(every));
        }
        if every == AUTO { was_due } else { every > 0 }
    }

    pub(crate) fn count(&self, size: usize, began_ns: u64) {
        self.taken.fetch_add(1, Relaxed);
        let touches = (size / process::page_size()) as u64 * TOUCH_NS;
        self.cost_ns.store(processor_ns().saturating_sub(began_ns).min(LONGEST_NS) + touches, Relaxed);
    }
}

/// The next word of Marsaglia's generator, whose state is in `seed`; 0 there: it has not begun. Two
/// threads at once may draw the same.
pub fn uniform(seed: &AtomicU64) -> u64 {
    let mut x = seed.load(Relaxed);
    if x == 0 {
        x = process::random_seed() | 1;
    }
    x ^= x << 13;
    x ^= x >> 7;
    x ^= x << 17;
    seed.store(x, Relaxed);
    x
}

/// Throws until the first success: ⌈ln u / ln(1 − 1/every)⌉; `core` has no ln, hence the series.
pub fn geometric(uniform: u64, every: u64) -> i64 {
    if every <= 1 {
        return 1;
    }
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
