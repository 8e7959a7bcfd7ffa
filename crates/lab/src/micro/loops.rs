//! The loops: each pattern, over any functions. Objects outlive a turn, so that later turns find a
//! warm heap.
//!
//! **Threads.** Workers share only the batches of [`Pattern::Remote`]: each allocates a batch,
//! frees the previous thread's last one, and waits for all. The time excludes waits.
//!
//! **Unsafe.** Writes to the returned objects, and frees them.

use super::calls::Calls;
use super::pattern::{LIVE_BYTES, Pattern, SLOTS};
use std::hint::black_box;
use std::marker::PhantomData;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::sync::{Barrier, Mutex};
use std::time::Instant;

#[derive(Clone, Copy, Debug, Default)]
pub struct Turn {
    pub ns: f64,
    pub operations: usize,
}

pub struct Shared {
    barrier: Barrier,
    /// By thread: the batches of its last two steps.
    batches: Vec<[Mutex<Vec<usize>>; 2]>,
    end: AtomicUsize,
}

impl Shared {
    pub fn new(threads: usize) -> Self {
        let batches = (0..threads).map(|_| Default::default()).collect();
        Self { barrier: Barrier::new(threads), batches, end: AtomicUsize::new(usize::MAX) }
    }

    pub fn wait(&self) {
        self.barrier.wait();
    }

    /// By one thread, before it waits for the others.
    pub fn end_before(&self, repetition: usize) {
        self.end.store(repetition, Relaxed);
    }

    /// After the wait. A slow thread may read a later call's value, with the same result.
    pub fn is_over(&self, repetition: usize) -> bool {
        repetition >= self.end.load(Relaxed)
    }
}

pub struct Worker<'a, C: Calls> {
    pattern: Pattern,
    size: usize,
    shared: &'a Shared,
    index: usize,
    slots: Vec<*mut u8>,
    random: u64,
    /// Of [`Pattern::Cold`]: objects, and nanoseconds since the start.
    pub steps: Vec<(usize, f64)>,
    calls: PhantomData<C>,
}

#[cold]
#[inline(never)]
fn refused(size: usize) -> ! {
    eprintln!("craton-micro: an allocation of {size} bytes was refused; take a smaller size or count");
    std::process::exit(1)
}

/// So that the compiler keeps the object.
#[inline(always)]
fn touch(address: *mut u8, size: usize) -> *mut u8 {
    if address.is_null() {
        refused(size);
    }
    // SAFETY: an object of a word or more, aligned to one.
    unsafe { address.cast::<usize>().write_volatile(size) };
    address
}

impl<'a, C: Calls> Worker<'a, C> {
    pub fn new(pattern: Pattern, size: usize, shared: &'a Shared, index: usize) -> Self {
        let slots = match pattern {
            Pattern::BatchLifo(objects) | Pattern::BatchFifo(objects) => vec![std::ptr::null_mut(); objects],
            Pattern::LiveRandom | Pattern::UsableSize => (0..SLOTS).map(|_| touch(C::malloc(size), size)).collect(),
            _ => Vec::new(),
        };
        let random = 0x9e37_79b9_7f4a_7c15 ^ ((index as u64) << 32);
        Self { pattern, size, shared, index, slots, random, steps: Vec::with_capacity(64), calls: PhantomData }
    }

    pub fn turn(&mut self, count: usize) -> Turn {
        let size = black_box(self.size);
        if self.pattern == Pattern::Remote {
            return self.remote(count, size);
        }
        let start = Instant::now();
        let operations = match self.pattern {
            Pattern::Pair => self.pair(count, size),
            Pattern::TouchedPair => self.touched_pair(count, size),
            Pattern::BatchLifo(_) => self.batch::<true>(count, size),
            Pattern::BatchFifo(_) => self.batch::<false>(count, size),
            Pattern::LiveRandom => self.live_random(count, size),
            Pattern::Cold => self.cold(count, size, start),
            Pattern::Calloc => self.calloc(count, size),
            Pattern::ReallocGrow => self.realloc_grow(count, size),
            Pattern::UsableSize | Pattern::Remote => self.usable_size(count),
        };
        Turn { ns: start.elapsed().as_nanos() as f64, operations }
    }

    fn pair(&self, count: usize, size: usize) -> usize {
        for _ in 0..count {
            let address = touch(C::malloc(size), size);
            // SAFETY: just allocated.
            unsafe { C::free(address) };
        }
        count
    }

    fn touched_pair(&self, count: usize, size: usize) -> usize {
        for _ in 0..count {
            let address = touch(C::malloc(size), size);
            for at in (4096..size - size_of::<usize>()).step_by(4096) {
                // SAFETY: an aligned word inside the object.
                unsafe { address.add(at).cast::<usize>().write_volatile(at) };
            }
            // SAFETY: just allocated.
            unsafe { C::free(address) };
        }
        count
    }

    fn calloc(&self, count: usize, size: usize) -> usize {
        for _ in 0..count {
            let address = touch(C::calloc(size), size);
            // SAFETY: just allocated.
            unsafe { C::free(address) };
        }
        count
    }

    fn batch<const LAST_FIRST: bool>(&mut self, count: usize, size: usize) -> usize {
        let rounds = count.div_ceil(self.slots.len());
        for _ in 0..rounds {
            for slot in &mut self.slots {
                *slot = touch(C::malloc(size), size);
            }
            if LAST_FIRST {
                for slot in self.slots.iter().rev() {
                    // SAFETY: filled above, freed once.
                    unsafe { C::free(*slot) };
                }
            } else {
                for slot in &self.slots {
                    // SAFETY: filled above, freed once.
                    unsafe { C::free(*slot) };
                }
            }
        }
        rounds * self.slots.len()
    }

    fn live_random(&mut self, count: usize, size: usize) -> usize {
        let (least, range) = ((size / 2).max(8), size as u64);
        let mut random = self.random;
        for _ in 0..count {
            random ^= random << 13;
            random ^= random >> 7;
            random ^= random << 17;
            let slot = &mut self.slots[(random % SLOTS as u64) as usize];
            let size = least + (((random >> 32) * range) >> 32) as usize;
            // SAFETY: each slot holds an object, and gets another at once.
            unsafe { C::free(*slot) };
            *slot = touch(C::malloc(size), size);
        }
        self.random = random;
        count
    }

    /// The process's first objects, never freed.
    fn cold(&mut self, count: usize, size: usize, start: Instant) -> usize {
        let count = count.min(LIVE_BYTES / size).max(1);
        for done in 1..=count {
            let address = touch(C::malloc(size), size);
            for offset in (4096..size).step_by(4096) {
                // SAFETY: inside the object.
                unsafe { address.add(offset).write_volatile(1) };
            }
            if done.is_power_of_two() {
                self.steps.push((done, start.elapsed().as_nanos() as f64));
            }
        }
        count
    }

    fn realloc_grow(&self, count: usize, size: usize) -> usize {
        for _ in 0..count {
            let mut bytes = size.min(16);
            let mut address = touch(C::malloc(bytes), bytes);
            while bytes < size {
                bytes = (2 * bytes).min(size);
                // SAFETY: the last step's object.
                address = touch(unsafe { C::realloc(address, bytes) }, bytes);
            }
            // SAFETY: the last step's object.
            unsafe { C::free(address) };
        }
        count
    }

    fn usable_size(&self, count: usize) -> usize {
        let rounds = count.div_ceil(self.slots.len());
        let mut sum = 0usize;
        for _ in 0..rounds {
            for slot in &self.slots {
                // SAFETY: the slots hold objects.
                sum = sum.wrapping_add(unsafe { C::usable_size(*slot) });
            }
        }
        black_box(sum);
        rounds * self.slots.len()
    }

    fn remote(&self, count: usize, size: usize) -> Turn {
        let objects = Pattern::remote_batch(size);
        let before = (self.index + self.shared.batches.len() - 1) % self.shared.batches.len();
        let rounds = count.div_ceil(objects);
        let mut turn = Turn { ns: 0.0, operations: rounds * objects };
        // The last step frees only.
        for step in 0..=rounds {
            if step < rounds {
                let mut own = lock(&self.shared.batches[self.index][step % 2]);
                own.reserve(objects);
                let start = Instant::now();
                for _ in 0..objects {
                    own.push(touch(C::malloc(size), size) as usize);
                }
                turn.ns += start.elapsed().as_nanos() as f64;
            }
            if step > 0 {
                let mut theirs = lock(&self.shared.batches[before][(step - 1) % 2]);
                let start = Instant::now();
                for address in theirs.drain(..) {
                    // SAFETY: passed on by the thread that allocated it.
                    unsafe { C::free(address as *mut u8) };
                }
                turn.ns += start.elapsed().as_nanos() as f64;
            }
            self.shared.wait();
        }
        turn
    }
}

fn lock(batch: &Mutex<Vec<usize>>) -> std::sync::MutexGuard<'_, Vec<usize>> {
    batch.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
}

impl<C: Calls> Drop for Worker<'_, C> {
    fn drop(&mut self) {
        if matches!(self.pattern, Pattern::LiveRandom | Pattern::UsableSize) {
            for slot in &self.slots {
                // SAFETY: these slots hold objects between turns.
                unsafe { C::free(*slot) };
            }
        }
    }
}
