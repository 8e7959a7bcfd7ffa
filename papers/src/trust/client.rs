//! A client of malloc that checks every object it holds.
//!
//! Threads write a pattern into each object, and compare it when the object is freed, moved by
//! `realloc`, or found in a forked child. Mostly another thread frees an object than allocated it.
//! Anything wrong but a refused request ends the process with status [`WRONG`].
//!
//! **Unsafe.** Calls malloc's family, accesses its objects, forks, and sends signals.

use craton_lab::rng::{Rng, mix};
use std::ffi::c_void;
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU64, Ordering::Relaxed};
use std::sync::{Mutex, MutexGuard, TryLockError};
use std::time::{Duration, Instant};

/// Exit status (`EX_SOFTWARE`).
pub const WRONG: i32 = 70;

const SLOTS: usize = 1 << 14;
const LARGEST: usize = 64 << 20;
const LIFE: u64 = 20_000;
const CHECKED_BY_CHILD: u32 = 400;
/// By the ledger's recent maximum; [`BASE_BYTES`] come on top.
const MOST_RSS: f64 = 2.0;
const BASE_BYTES: u64 = 64 << 20;
/// Free memory goes back after seconds.
const RECENT: Duration = Duration::from_secs(10);
const LOOK: Duration = Duration::from_millis(50);
/// The ledger's bound is whole and a quarter in turns.
const SWING: Duration = Duration::from_secs(5);

#[derive(Clone, Copy, Debug)]
pub struct Given {
    pub seconds: u64,
    pub operations: Option<u64>,
    pub threads: u64,
    pub live_bytes: u64,
    pub seed: u64,
    pub forks: bool,
    pub signals: bool,
}

#[derive(Debug, Default, serde::Serialize)]
pub struct Figures {
    pub operations: u64,
    pub refused: u64,
    pub forks: u64,
    pub signals: u64,
    pub peak_live_bytes: u64,
    pub peak_rss_bytes: u64,
    pub worst_rss_per_live: f64,
}

struct Object {
    at: *mut u8,
    bytes: usize,
    seed: u64,
}

// SAFETY: any thread may use and free malloc's objects.
unsafe impl Send for Object {}

static OPERATIONS: AtomicU64 = AtomicU64::new(0);
static REFUSED: AtomicU64 = AtomicU64::new(0);
static FORKS: AtomicU64 = AtomicU64::new(0);
static SIGNALS: AtomicU64 = AtomicU64::new(0);
static LIVE: AtomicI64 = AtomicI64::new(0);
static MOST_LIVE: AtomicI64 = AtomicI64::new(0);
static ENDS: AtomicBool = AtomicBool::new(false);

/// Nothing may allocate any more.
fn wrong(why: &str) -> ! {
    eprintln!("craton-client: wrong: {why}");
    // SAFETY: runs no handlers; nothing is used again.
    unsafe { libc::_exit(WRONG) }
}

/// All of a small object; of a large one its ends and a word of each page.
fn places(bytes: usize) -> impl Iterator<Item = usize> {
    const END: usize = 4096;
    let whole = bytes <= 4 * END;
    let step = move |at: &usize| {
        let next = if whole || *at < END || *at + END >= bytes {
            at + 8
        } else {
            ((at + END).min(bytes - END) & !7).max(at + 8)
        };
        (next < bytes).then_some(next)
    };
    std::iter::successors((bytes > 0).then_some(0), step)
}

impl Object {
    fn word(&self, at: usize) -> ([u8; 8], usize) {
        (mix(self.seed ^ at as u64).to_ne_bytes(), (self.bytes - at).min(8))
    }

    fn write(&self) {
        for at in places(self.bytes) {
            let (word, length) = self.word(at);
            // SAFETY: `at + length <= bytes`; live, and this thread's.
            unsafe { std::ptr::copy_nonoverlapping(word.as_ptr(), self.at.add(at), length) };
        }
    }

    fn check(&self, upto: usize, when: &str) {
        for at in places(self.bytes).take_while(|at| *at < upto) {
            let (word, length) = self.word(at);
            let length = length.min(upto - at);
            // SAFETY: as in `write`; these bytes were written.
            let found = unsafe { std::slice::from_raw_parts(self.at.add(at), length) };
            if found != &word[..length] {
                let (address, bytes) = (self.at, self.bytes);
                wrong(&format!("{when}: object of {bytes} bytes at {address:p} has {found:x?} at {at}, not {word:x?}"));
            }
        }
    }

    fn free(self, when: &str) {
        self.check(self.bytes, when);
        // SAFETY: live, and this thread alone has its address.
        unsafe { libc::free(self.at.cast()) };
        count(-(self.bytes as i64));
    }

    fn new(bytes: usize, rng: &mut Rng) -> Option<Self> {
        let kind = rng.below(8);
        let align = if kind < 2 { 16usize << rng.below(9) } else { 16.min(bytes.next_power_of_two()) };
        // SAFETY: sizes above 0, alignments that are powers of two.
        let at: *mut c_void = unsafe {
            match kind {
                0 => libc::memalign(align, bytes),
                1 => {
                    let mut at = std::ptr::null_mut();
                    if libc::posix_memalign(&raw mut at, align, bytes) == 0 { at } else { std::ptr::null_mut() }
                }
                2 => libc::calloc(1, bytes),
                3 => libc::realloc(std::ptr::null_mut(), bytes),
                _ => libc::malloc(bytes),
            }
        };
        if at.is_null() {
            REFUSED.fetch_add(1, Relaxed);
            return None;
        }
        if !at.addr().is_multiple_of(align) {
            wrong(&format!("an object of {bytes} bytes at {at:p} has not the alignment {align}"));
        }
        count(bytes as i64);
        let object = Self { at: at.cast(), bytes, seed: rng.next() };
        if kind == 2 {
            object.is_clear();
        }
        object.write();
        Some(object)
    }

    fn is_clear(&self) {
        for at in places(self.bytes) {
            let length = (self.bytes - at).min(8);
            // SAFETY: live; calloc wrote these bytes.
            let found = unsafe { std::slice::from_raw_parts(self.at.add(at), length) };
            if found.iter().any(|byte| *byte != 0) {
                wrong(&format!("calloc of {} bytes returned {:p} with {found:x?} at {at}", self.bytes, self.at));
            }
        }
    }

    fn resize(mut self, bytes: usize, rng: &mut Rng) -> Self {
        self.check(self.bytes, "before realloc");
        // Both exist while realloc copies.
        count(bytes as i64);
        // SAFETY: live, and this thread's.
        let at = unsafe { libc::realloc(self.at.cast(), bytes) };
        if at.is_null() {
            REFUSED.fetch_add(1, Relaxed);
            count(-(bytes as i64));
            self.check(self.bytes, "after a refused realloc");
            return self;
        }
        let kept = self.bytes.min(bytes);
        count(-(self.bytes as i64));
        self.at = at.cast();
        // The length decides which places were written.
        self.check(kept, "after realloc");
        let object = Self { at: self.at, bytes, seed: rng.next() };
        object.write();
        object
    }
}

fn count(bytes: i64) {
    let live = LIVE.fetch_add(bytes, Relaxed) + bytes;
    MOST_LIVE.fetch_max(live, Relaxed);
}

fn size(rng: &mut Rng) -> usize {
    let below = match rng.below(4000) {
        0 => LARGEST as u32,
        1..40 => 2 << 20,
        40..200 => 256 << 10,
        200..1200 => 8 << 10,
        _ => 512,
    };
    1 + rng.below(below) as usize
}

type Slots = [Mutex<Option<Object>>];

fn slot<'a>(slots: &'a Slots, rng: &mut Rng) -> Option<MutexGuard<'a, Option<Object>>> {
    match slots[rng.below(slots.len() as u32) as usize].try_lock() {
        Ok(guard) => Some(guard),
        Err(TryLockError::WouldBlock) => None,
        Err(TryLockError::Poisoned(_)) => wrong("a thread panicked"),
    }
}

fn turn(slots: &Slots, rng: &mut Rng, bound: i64) {
    let Some(mut slot) = slot(slots, rng) else { return };
    let bytes = size(rng);
    let is_full = LIVE.load(Relaxed) + bytes as i64 > bound;
    *slot = match slot.take() {
        Some(object) if !is_full && rng.one_in(4) => Some(object.resize(bytes, rng)),
        Some(object) => {
            object.free("before free");
            None
        }
        None if is_full => None,
        None => Object::new(bytes, rng),
    };
    OPERATIONS.fetch_add(1, Relaxed);
}

/// The child uses unlocked slots only, and may fork again.
fn fork(slots: &Slots, rng: &mut Rng, bound: i64, depth: u32) {
    // SAFETY: the child uses unlocked slots only, and ends by `_exit`.
    let child = unsafe { libc::fork() };
    match child {
        -1 => return,
        0 => {
            for _ in 0..CHECKED_BY_CHILD {
                if let Some(object) = slot(slots, rng).and_then(|mut slot| slot.take()) {
                    object.free("in a child");
                }
                turn(slots, rng, bound);
            }
            if depth > 0 {
                fork(slots, rng, bound, depth - 1);
            }
            // SAFETY: without the parent's handlers.
            unsafe { libc::_exit(0) };
        }
        _ => {}
    }
    let mut status = 0;
    // SAFETY: the child from above; a local variable.
    while unsafe { libc::waitpid(child, &raw mut status, 0) } == -1 {}
    if status != 0 {
        wrong(&format!("a child ended with status {status:#x}"));
    }
    FORKS.fetch_add(1, Relaxed);
}

extern "C" fn handle(_: libc::c_int) {
    SIGNALS.fetch_add(1, Relaxed);
}

/// System calls are not restarted.
fn storm() {
    // SAFETY: the handler only adds to an atomic; zeros are valid.
    unsafe {
        let mut action: libc::sigaction = std::mem::zeroed();
        action.sa_sigaction = handle as *const () as usize;
        libc::sigaction(libc::SIGUSR1, &raw const action, std::ptr::null_mut());
    }
    while !ENDS.load(Relaxed) {
        // SAFETY: this process handles it.
        unsafe { libc::kill(libc::getpid(), libc::SIGUSR1) };
        std::thread::sleep(Duration::from_micros(20));
    }
}

fn rss_bytes() -> u64 {
    let text = std::fs::read_to_string("/proc/self/statm").unwrap_or_default();
    let pages: u64 = text.split(' ').nth(1).and_then(|field| field.parse().ok()).unwrap_or(0);
    pages << 12
}

fn watch(given: &Given, bound: &AtomicI64) -> Figures {
    let (start, base) = (Instant::now(), rss_bytes());
    let mut recent: Vec<(Instant, i64)> = Vec::new();
    let (mut worst, mut peak, mut peak_live) = (0.0_f64, 0, 0);
    while start.elapsed() < Duration::from_secs(given.seconds) {
        std::thread::sleep(LOOK);
        let is_low = (start.elapsed().as_secs() / SWING.as_secs()) % 2 == 1;
        bound.store((given.live_bytes / if is_low { 4 } else { 1 }) as i64, Relaxed);
        let rss = rss_bytes();
        recent.push((Instant::now(), MOST_LIVE.swap(LIVE.load(Relaxed), Relaxed)));
        recent.retain(|(when, _)| when.elapsed() < RECENT);
        let most = recent.iter().map(|(_, live)| *live).max().unwrap_or(0).max(1) as u64;
        if most > BASE_BYTES {
            worst = worst.max(rss.saturating_sub(base) as f64 / most as f64);
        }
        (peak, peak_live) = (peak.max(rss), peak_live.max(most));
        if rss as f64 > base as f64 + BASE_BYTES as f64 + MOST_RSS * most as f64 {
            wrong(&format!("a resident set of {rss} bytes where at most {most} were out in the last 10 s"));
        }
    }
    ENDS.store(true, Relaxed);
    Figures { peak_live_bytes: peak_live, peak_rss_bytes: peak, worst_rss_per_live: worst, ..Figures::default() }
}

fn generations(given: &Given, slots: &Slots, number: u64, bound: &AtomicI64) {
    let mut generation = 0;
    while !ENDS.load(Relaxed) {
        let mut rng = Rng::new(given.seed, number << 32 | generation);
        let live = |rng: &mut Rng| {
            for _ in 0..LIFE {
                if ENDS.load(Relaxed) {
                    break;
                }
                turn(slots, rng, bound.load(Relaxed));
                if given.forks && rng.one_in(2000) {
                    fork(slots, rng, bound.load(Relaxed), 1);
                }
            }
        };
        std::thread::scope(|scope| {
            scope.spawn(|| live(&mut rng));
        });
        generation += 1;
    }
}

pub fn run(given: &Given) -> Figures {
    let slots: Vec<Mutex<Option<Object>>> = (0..SLOTS).map(|_| Mutex::new(None)).collect();
    let bound = AtomicI64::new(given.live_bytes as i64);
    let mut figures = match given.operations {
        Some(operations) => {
            let mut rng = Rng::new(given.seed, 0);
            (0..operations).for_each(|_| turn(&slots, &mut rng, given.live_bytes as i64));
            Figures::default()
        }
        None => std::thread::scope(|scope| {
            let (slots, bound) = (&slots, &bound);
            for number in 0..given.threads {
                scope.spawn(move || generations(given, slots, number, bound));
            }
            if given.signals {
                scope.spawn(storm);
            }
            watch(given, bound)
        }),
    };
    for slot in slots {
        if let Some(object) = slot.into_inner().unwrap_or_else(|_| wrong("a thread panicked")) {
            object.free("at the end");
        }
    }
    if LIVE.load(Relaxed) != 0 {
        wrong(&format!("the ledger ends with {} bytes", LIVE.load(Relaxed)));
    }
    figures.operations = OPERATIONS.load(Relaxed);
    figures.refused = REFUSED.load(Relaxed);
    figures.forks = FORKS.load(Relaxed);
    figures.signals = SIGNALS.load(Relaxed);
    figures
}
