//! Programs whose time counts: Larson and Krishnan 1998 with C++'s sized `delete`; rpmalloc's
//! benchmark; servers with deadlines.
//!
//! **Unsafe.** Reads the thread's use of the processor.

use super::memory::Object;
use super::{Figures, Given};
use crate::work::crew::{each, ring};
use craton_lab::rng::Rng;
use std::thread;
use std::time::Instant;

pub struct Replaced {
    pub threads: usize,
    pub slots: usize,
    pub operations: u64,
    pub size: fn(&mut Rng) -> usize,
    /// A fixed odd distance apart, 150 times.
    pub strides: bool,
    /// Then a new thread inherits the slots.
    pub each: u64,
}

pub fn small(rng: &mut Rng) -> usize {
    (8 + rng.below(993)) as usize
}

pub fn mixed(rng: &mut Rng) -> usize {
    let half = 16u32 << rng.below(9);
    (half + rng.below(half)) as usize
}

pub fn large(rng: &mut Rng) -> usize {
    ((32 << 10) + rng.below(480 << 10)) as usize
}

/// First and last bytes are written. `CXX`: by the operators.
pub fn replace<const CXX: bool>(given: &Given, kind: &Replaced) -> Figures {
    let threads = kind.threads;
    let (slots, share) = (kind.slots / threads, given.of(kind.operations) / threads as u64);
    let new = |rng: &mut Rng| {
        let object = Object::<CXX>::new((kind.size)(rng));
        object.write(object.bytes() - 1);
        object
    };
    let mut figures = Figures::start();
    let lives = each(0..threads as u64, |number| {
        let mut rng = Rng::new(given.seed, number);
        let mut objects: Vec<_> = (0..slots).map(|_| new(&mut rng)).collect();
        let start = Instant::now();
        for done in 0..share.div_ceil(kind.each) {
            let count = kind.each.min(share - done * kind.each);
            let life = || {
                let mut at = 0;
                for i in 0..count {
                    at = match (kind.strides, i % 150) {
                        (true, 1..) => (at + 97) % slots,
                        _ => rng.below(slots as u32) as usize,
                    };
                    drop(std::mem::replace(&mut objects[at], new(&mut rng)));
                }
            };
            thread::scope(|scope| scope.spawn(life).join().expect("no thread panics"));
        }
        (start.elapsed().as_secs_f64(), objects)
    });
    figures.done(lives.iter().flat_map(|(_, objects)| objects).map(|object| object.bytes() as u64).sum());
    let slowest = lives.iter().map(|(time, _)| *time).fold(0.0, f64::max);
    let millions = (share * threads as u64) as f64 / 1e6;
    figures.add("million_ops_per_s", millions / slowest);
    figures.add("million_ops_per_cpu_s", millions / figures.number("cpu_s"));
    figures
}

/// In percent.
type Timed<'a> = &'a [(usize, u32)];

pub const MIXED: Timed<'_> = &[(16, 55), (1 << 10, 30), (64 << 10, 13), (1 << 20, 2)];

#[derive(Default)]
struct Times {
    malloc: Vec<f64>,
    free: Vec<f64>,
    /// Not interrupted: malloc with the first write, and malloc.
    longest_written: f64,
    longest: f64,
}

/// Two threads; one free in 16 is of the other's objects.
pub fn pauses(given: &Given, sizes: Timed<'_>, (slots, operations): (usize, u64)) -> Figures {
    let (mut figures, operations) = (Figures::start(), given.of(operations));
    let mut threads = each(ring::<Object>(2, 64), |(number, own, next)| {
        let mut rng = Rng::new(given.seed, number);
        let mut times: Vec<Times> = sizes.iter().map(|_| Times::default()).collect();
        let mut objects: Vec<Option<(usize, Object)>> = (0..slots).map(|_| None).collect();
        let mut switches = interruptions();
        for _ in 0..operations {
            let mut part = rng.below(100);
            let which = sizes.iter().position(|(_, of)| part < *of || (part -= of, false).1).unwrap_or(0);
            let start = Instant::now();
            let object = Object::<false>::new(sizes[which].0);
            let got = start.elapsed().as_nanos() as f64;
            object.write(usize::MAX);
            let written = start.elapsed().as_nanos() as f64;
            let of = &mut times[which];
            of.malloc.push(got);
            if written > of.longest_written.min(of.longest) {
                let now = interruptions();
                if std::mem::replace(&mut switches, now) == now {
                    of.longest = of.longest.max(got);
                    of.longest_written = of.longest_written.max(written);
                }
            }
            let old = objects[rng.below(slots as u32) as usize].replace((which, object));
            let Some((which, old)) = old else { continue };
            let old = match rng.one_in(16) {
                true => next.try_send(old).err().map(|full| full.into_inner()),
                false => Some(old),
            };
            let start = Instant::now();
            let timed = old.is_some();
            drop(old);
            if timed {
                times[which].free.push(start.elapsed().as_nanos() as f64);
            }
            drop(own.try_recv());
        }
        let live = objects.iter().flatten().map(|(_, object)| object.bytes() as u64).sum::<u64>();
        (times, live)
    });
    figures.done(threads.iter().map(|(_, live)| live).sum());
    for (i, (bytes, _)) in sizes.iter().enumerate() {
        let mut all = Times::default();
        for (times, _) in &mut threads {
            all.malloc.append(&mut times[i].malloc);
            all.free.append(&mut times[i].free);
            all.longest = all.longest.max(times[i].longest);
            all.longest_written = all.longest_written.max(times[i].longest_written);
        }
        for (name, times) in [("malloc", &mut all.malloc), ("free", &mut all.free)] {
            times.sort_unstable_by(f64::total_cmp);
            for (rank, part) in [("p50", 0.5), ("p999", 0.999), ("max", 1.0)] {
                let at = ((times.len() - 1) as f64 * part) as usize;
                figures.add(&format!("{name}_{bytes}_{rank}_ns"), times[at]);
            }
        }
        figures.add(&format!("malloc_{bytes}_longest_ns"), all.longest);
        figures.add(&format!("written_{bytes}_longest_ns"), all.longest_written);
    }
    figures
}

fn interruptions() -> i64 {
    // SAFETY: zeros are valid.
    unsafe {
        let mut usage: libc::rusage = std::mem::zeroed();
        libc::getrusage(libc::RUSAGE_THREAD, &raw mut usage);
        usage.ru_nivcsw
    }
}
