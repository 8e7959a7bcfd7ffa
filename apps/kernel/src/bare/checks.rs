//! All memory at once, by all CPUs: no frame serves twice, none is missing, all come back.
//!
//! **State.** A CPU's blocks form a list; each frame names itself and its owner:
//! ```text
//! a block's first frame   next block | order | …      each frame, last 16 bytes   number | owner
//! ```

use super::cpus;
use super::physical::Memory;
use super::serial::{fail, report};
use core::sync::atomic::{AtomicUsize, Ordering};
use craton_frames::{Error, Kind, Request};

const MAX_ORDER: u32 = 10;
const NONE: usize = usize::MAX;
const WORDS: usize = 512;

pub struct Random(u64);

impl Random {
    pub fn new(seed: u64) -> Self {
        Self(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1)
    }

    pub fn below(&mut self, bound: usize) -> usize {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        ((u128::from(self.0.wrapping_mul(0x2545_f491_4f6c_dd1d)) * bound as u128) >> 64) as usize
    }
}

pub fn run(memory: &Memory, count: usize, held: usize, plant: bool) {
    let free = memory.zone.free_frames();
    let taken = AtomicUsize::new(0);
    let barrier = [const { cpus::Barrier::new() }; 2];
    cpus::run(count, &|cpu| {
        let blocks = alloc_all(memory, cpu, &taken);
        barrier[0].wait(count);
        if plant && cpu == 0 {
            // SAFETY: a planted bug: another owner's mark in a frame of this CPU.
            unsafe { word(memory, blocks, WORDS - 1).write(u64::MAX) };
        }
        verify(memory, cpu, blocks);
        barrier[1].wait(count);
        free_all(memory, cpu, blocks);
    });
    let taken = taken.into_inner();
    if taken != free {
        fail!("{free} frames were free, and {taken} could be taken before memory ended");
    }
    memory.check(count, held, "all memory was taken and freed");
    report!("exhaust", "frames": taken, "cpus": count);
}

fn word(memory: &Memory, frame: usize, at: usize) -> *mut u64 {
    memory.pointer(frame).cast::<u64>().wrapping_add(at)
}

fn alloc_all(memory: &Memory, cpu: usize, taken: &AtomicUsize) -> usize {
    let mut random = Random::new(cpu as u64 + 1);
    let (mut list, mut most, mut frames) = (NONE, MAX_ORDER, 0);
    loop {
        let order = random.below(most as usize + 1) as u32;
        let kind = if random.below(2) == 0 { Kind::Movable } else { Kind::Unmovable };
        match memory.zone.get(Request { order, kind, processor: cpu }) {
            Ok(first) => {
                for frame in first..first + (1 << order) {
                    // SAFETY: the frame is this CPU's alone, as the check itself shows.
                    unsafe {
                        word(memory, frame, WORDS - 2).write(frame as u64);
                        word(memory, frame, WORDS - 1).write(cpu as u64);
                    }
                }
                // SAFETY: as above.
                unsafe {
                    word(memory, first, 0).write(list as u64);
                    word(memory, first, 1).write(u64::from(order));
                }
                list = first;
                frames += 1 << order;
            }
            Err(Error::NoMemory) if order == 0 => break,
            Err(Error::NoMemory) => most = order - 1,
            Err(error) => fail!("CPU {cpu}, order {order}: {error}"),
        }
    }
    taken.fetch_add(frames, Ordering::Relaxed);
    list
}

fn read(memory: &Memory, frame: usize, at: usize) -> u64 {
    // SAFETY: a word of memory.
    unsafe { word(memory, frame, at).read() }
}

fn verify(memory: &Memory, cpu: usize, list: usize) {
    let mut first = list;
    while first != NONE {
        let order = read(memory, first, 1);
        for frame in first..first + (1 << order) {
            let found = (read(memory, frame, WORDS - 2), read(memory, frame, WORDS - 1));
            if found != (frame as u64, cpu as u64) {
                fail!("frame {frame} of CPU {cpu} was written to by CPU {} as frame {}", found.1, found.0);
            }
        }
        first = read(memory, first, 0) as usize;
    }
}

fn free_all(memory: &Memory, cpu: usize, list: usize) {
    let mut first = list;
    while first != NONE {
        let (next, order) = (read(memory, first, 0) as usize, read(memory, first, 1) as u32);
        if let Err(error) = memory.zone.put(first, Request { order, kind: Kind::Movable, processor: cpu }) {
            fail!("CPU {cpu} frees {first}, order {order}: {error}");
        }
        first = next;
    }
}
