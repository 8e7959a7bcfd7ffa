//! Programs whose memory counts.
//!
//! **Unsafe.** Calls the malloc family, and `fork`.

use super::memory::{Meter, Object, PAGE, Sample};
use super::{Figures, Given};
use craton_lab::rng::Rng;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::thread;
use std::time::{Duration, Instant};

/// A byte is written every `step`.
pub fn sparse(given: &Given, (count, bytes, step): (usize, usize, usize), zeroed: bool) -> Figures {
    let mut figures = Figures::start();
    let count = given.of(count as u64) as usize;
    let mut objects = Vec::with_capacity(count);
    for _ in 0..count {
        let object = if zeroed { Object::zeroed(bytes) } else { Object::new(bytes) };
        object.write(step);
        objects.push(object);
    }
    figures.done((count * bytes.div_ceil(step) * PAGE) as u64);
    drop(objects);
    let freed = figures.meter.sample().rss_bytes;
    figures.add("freed_rss_bytes", freed as f64);
    figures
}

/// `stress-ng --malloc`'s defaults: a free slot gets an object of up to `most` bytes; a used one is
/// freed, as in version 0.15, or half of them reallocated, as in later ones; one time of eight,
/// `malloc_trim`.
pub fn stress(given: &Given, (operations, most): (u64, u32), reallocates: bool) -> Figures {
    const SLOTS: usize = 1 << 16;
    let mut figures = Figures::start();
    let mut rng = Rng::new(given.seed, 0);
    let mut slots = vec![std::ptr::null_mut::<libc::c_void>(); SLOTS];
    let (mut done, mut live, mut bytes) = (0, 0u64, vec![0u32; SLOTS]);
    while done < given.of(operations) {
        let (bits, len) = (rng.next(), rng.below(most).max(8) as usize);
        let (i, align) = (bits as usize % SLOTS, 8 << (bits & 7));
        let old = slots[i];
        let keep = reallocates && bits & (1 << 20) != 0;
        let free = !old.is_null() && !keep;
        // SAFETY: each slot is null or has a pointer of the family, freed or replaced once.
        unsafe {
            slots[i] = match (old.is_null(), (bits >> 24) & 31) {
                _ if free => std::ptr::null_mut(),
                (false, _) => libc::realloc(old, len),
                (true, 0) => libc::calloc(len.div_ceil(8), 8),
                (true, 1) => {
                    let mut at = std::ptr::null_mut();
                    if libc::posix_memalign(&raw mut at, align, len) == 0 { at } else { std::ptr::null_mut() }
                }
                (true, 2) => libc::aligned_alloc(align, len.next_multiple_of(align)),
                (true, 3) => libc::memalign(align, len),
                (true, _) => libc::malloc(len),
            };
            if free {
                libc::free(old);
            } else {
                assert!(!slots[i].is_null(), "a request of {len} bytes is refused");
                slots[i].cast::<usize>().write_volatile(i);
            }
            if bits & 0x7000_0000_0000 == 0 {
                libc::malloc_trim(0);
            }
        }
        live -= u64::from(bytes[i] > 0);
        bytes[i] = if free { 0 } else { len as u32 };
        live += u64::from(bytes[i] > 0);
        done += 1;
    }
    figures.done(live * PAGE as u64);
    // SAFETY: as above.
    slots.into_iter().for_each(|at| unsafe { libc::free(at) });
    figures
}

#[derive(Clone, Copy, PartialEq)]
pub enum Helper {
    None,
    Sleeps,
    /// Allocates and frees 20 times a second.
    Works,
}

/// A random 60 % of 13,000 objects is freed; then the resident set each second.
pub fn idle(given: &Given, helper: Helper) -> Figures {
    const BYTES: usize = 40_000;
    let (mut figures, over) = (Figures::start(), AtomicBool::new(false));
    thread::scope(|scope| {
        if helper != Helper::None {
            scope.spawn(|| {
                while !over.load(Relaxed) {
                    let _object = (helper == Helper::Works).then(|| Object::<false>::new(BYTES));
                    thread::sleep(Duration::from_millis(50));
                }
            });
        }
        let count = given.of(13_000) as usize;
        let mut objects: Vec<Option<Object>> = (0..count).map(|_| Some(Object::written(BYTES))).collect();
        figures.meter.sample();
        shuffle(&mut Rng::new(given.seed, 0), &mut objects);
        let freed = count * 6 / 10;
        objects[..freed].fill_with(|| None);
        let live = (count - freed) * BYTES;
        figures.done(live as u64);
        figures.watch(given.seconds.unwrap_or(15), live as f64, || thread::sleep(Duration::from_secs(1)));
        over.store(true, Relaxed);
    });
    figures
}

fn shuffle<T>(rng: &mut Rng, all: &mut [T]) {
    (1..all.len()).for_each(|i| all.swap(i, rng.below(i as u32 + 1) as usize));
}

struct Session {
    _small: [Object; 8],
    buffer: Object,
}

impl Session {
    fn new(rng: &mut Rng) -> Self {
        let small = std::array::from_fn(|_| Object::filled(rng.size()));
        Self { _small: small, buffer: Object::filled((32 << 10) + rng.below(224 << 10) as usize) }
    }

    fn bytes(&self) -> usize {
        self.buffer.bytes() + self._small.iter().map(Object::bytes).sum::<usize>()
    }
}

/// Sessions of 256 MiB for half of a period, of an eighth for the other; 200 a second are replaced.
/// Ends of troughs count, and rises after the first.
pub fn swing(given: &Given, period_s: u64) -> Figures {
    let high = given.of(256 << 20) as usize;
    let (mut figures, mut rng) = (Figures::start(), Rng::new(given.seed, 0));
    let (mut sessions, mut live): (Vec<Session>, usize) = (Vec::new(), 0);
    let (mut rises, mut ratios) = (Vec::new(), Vec::new());
    let seconds = given.seconds.unwrap_or(20.max(3 * period_s.min(20)).max(2 * period_s));
    let half = Duration::from_millis(period_s * 500);
    for _ in 0..(seconds / period_s).max(1) {
        for level in [high, high / 8] {
            let start = Instant::now();
            while live < level {
                sessions.push(Session::new(&mut rng));
                live += sessions.last().map_or(0, Session::bytes);
            }
            if level == high {
                rises.push(start.elapsed().as_secs_f64());
            }
            while live > level {
                live -= sessions.swap_remove(rng.below(sessions.len() as u32) as usize).bytes();
            }
            let mut next = Duration::ZERO;
            while start.elapsed() < half {
                let at = rng.below(sessions.len() as u32) as usize;
                live -= sessions[at].bytes();
                sessions[at] = Session::new(&mut rng);
                live += sessions[at].bytes();
                thread::sleep(Duration::from_millis(5));
                if start.elapsed() >= next {
                    figures.meter.sample();
                    next += half / 10;
                }
            }
            if level != high {
                ratios.push(figures.meter.sample().rss_bytes as f64 / live as f64);
            }
        }
    }
    figures.done(live as u64);
    figures.add("first_rise_s", rises.remove(0));
    figures.add_median("rise_s", &mut rises);
    figures.add("last_trough_ratio", ratios[ratios.len() - 1]);
    figures.add_median("trough_ratio", &mut ratios);
    figures
}

/// 1 GiB, all written; then the hugepages each second.
pub fn dense(given: &Given, bytes: usize) -> Figures {
    let mut figures = Figures::start();
    let objects: Vec<Object> = (0..given.of(1 << 30) / bytes as u64).map(|_| Object::written(bytes)).collect();
    let live = objects.len() as f64 * bytes as f64;
    figures.done(live as u64);
    figures.watch(given.seconds.unwrap_or(5), live, || thread::sleep(Duration::from_secs(1)));
    let samples = &figures.meter.samples;
    let part = |sample: Option<&Sample>| sample.map_or(0.0, |s| s.huge_bytes as f64 / s.rss_bytes as f64);
    let (at_once, later) = (part(samples.iter().find(|s| s.rss_bytes as f64 >= live)), part(samples.last()));
    figures.add("coverage_at_once", at_once);
    figures.add("coverage_later", later);
    figures
}

/// 512 MiB; a child lives for 4 s while the parent writes; then the hugepages each second.
pub fn fork(given: &Given, busy: bool) -> Figures {
    let (mut figures, mut rng) = (Figures::start(), Rng::new(given.seed, 0));
    let count = given.of(131_072);
    let mut objects: Vec<Object> = (0..count).map(|_| Object::written(PAGE)).collect();
    let live = count as f64 * PAGE as f64;
    figures.done(live as u64);
    let before = figures.meter.sample().huge_bytes as f64 / live;
    // SAFETY: one thread; the child makes only calls allowed after fork.
    let child = unsafe { libc::fork() };
    if child == 0 {
        // SAFETY: runs no exit handlers.
        unsafe {
            libc::sleep(4);
            libc::_exit(0)
        };
    }
    assert!(child > 0, "cannot fork");
    let start = Instant::now();
    while start.elapsed() < Duration::from_secs(4) {
        (0..1000).for_each(|_| objects[rng.below(count as u32) as usize].write(PAGE));
        thread::sleep(Duration::from_millis(5));
    }
    // SAFETY: its status does not matter.
    unsafe { libc::waitpid(child, std::ptr::null_mut(), 0) };
    let after = figures.meter.sample().huge_bytes as f64 / live;
    let from = figures.meter.samples.len();
    figures.watch(given.seconds.unwrap_or(12), live, || {
        let start = Instant::now();
        while busy && start.elapsed() < Duration::from_secs(1) {
            objects[rng.below(count as u32) as usize] = Object::written(PAGE);
        }
        thread::sleep(Duration::from_secs(1).saturating_sub(start.elapsed()));
    });
    let later = figures.meter.samples[from..].iter().take(11).next_back().map_or(0, |sample| sample.huge_bytes);
    for (name, part) in [("before", before), ("after_fork", after), ("after_10_s", later as f64 / live)] {
        figures.add(&format!("coverage_{name}"), part);
    }
    figures
}

const SIZES: [usize; 12] = [32, 64, 100, 200, 300, 500, 700, 900, 1500, 2000, 3000, 6000];

/// For each pair, in a new process: 12 MB of the first, 90 % freed, as much of the second.
pub fn pairs(given: &Given) -> Figures {
    let mut figures = Figures::start();
    let bytes = given.of(12_000_000) as usize;
    let (mut all, mut worst) = (Vec::new(), (0.0, 0, 0));
    for (a, b) in SIZES.iter().flat_map(|a| SIZES.map(|b| (*a, b))) {
        let grown = in_child(|| growth(bytes, (a, b), given.seed));
        worst = if grown > worst.0 { (grown, a, b) } else { worst };
        all.push(grown);
    }
    figures.done(bytes as u64);
    figures.add("mean_growth_bytes", all.iter().sum::<f64>() / all.len() as f64);
    figures.add("worst_growth_bytes", worst.0);
    figures.add("worst_first", worst.1 as f64);
    figures.add("worst_second", worst.2 as f64);
    figures.add("over_4_mib", all.iter().filter(|grown| **grown > f64::from(4 << 20)).count() as f64);
    figures
}

fn growth(bytes: usize, (a, b): (usize, usize), seed: u64) -> f64 {
    let mut objects: Vec<Option<Object>> = Vec::new();
    // Written once: the list does not grow later.
    objects.resize_with(bytes / a.min(b) + 1, || None);
    let (first, second) = (bytes / a, bytes / b * 9 / 10);
    objects[..first].fill_with(|| Some(Object::written(a)));
    let mut meter = Meter::start();
    let before = meter.sample().rss_bytes;
    shuffle(&mut Rng::new(seed, 0), &mut objects[..first]);
    objects[..first * 9 / 10].fill_with(|| None);
    let places = objects.iter_mut().filter(|place| place.is_none());
    places.take(second).for_each(|place| *place = Some(Object::written(b)));
    (meter.sample().rss_bytes as f64 - before as f64).max(0.0)
}

fn in_child(work: impl FnOnce() -> f64) -> f64 {
    let mut ends = [0; 2];
    let mut bits = 0u64.to_ne_bytes();
    // SAFETY: one thread; the buffers have 8 bytes.
    unsafe {
        assert!(libc::pipe(ends.as_mut_ptr()) == 0, "cannot make a pipe");
        let child = libc::fork();
        assert!(child >= 0, "cannot fork");
        if child == 0 {
            bits = work().to_bits().to_ne_bytes();
            let written = libc::write(ends[1], bits.as_ptr().cast(), 8);
            libc::_exit(i32::from(written != 8));
        }
        libc::close(ends[1]);
        let read = libc::read(ends[0], bits.as_mut_ptr().cast(), 8);
        libc::close(ends[0]);
        libc::waitpid(child, std::ptr::null_mut(), 0);
        assert!(read == 8, "a child ended early");
    }
    f64::from_bits(u64::from_ne_bytes(bits))
}

/// 5 to 25 MB; a new one is written before the old one is freed.
pub fn slots(given: &Given) -> Figures {
    let (mut figures, mut rng) = (Figures::start(), Rng::new(given.seed, 0));
    let mut slots: [Option<Object>; 5] = [const { None }; 5];
    let mut most = 0;
    for _ in 0..given.of(300) {
        let new = Object::written(5_000_000 + rng.below(20_000_000) as usize);
        most = most.max(slots.iter().flatten().chain([&new]).map(Object::bytes).sum());
        slots[rng.below(5) as usize] = Some(new);
    }
    figures.done(most as u64);
    figures
}
