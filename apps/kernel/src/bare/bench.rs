//! The paper's benchmarks on the machine's own memory (LLFree §5.2, §5.6), in ticks: instructions
//! of all CPUs where the emulator counts them.
//!
//! Each CPU gets half of its share, then frees it in the same order (bulk) or a random one
//! (random); or gets and frees one block again and again (repeat).

use super::checks::Random;
use super::cpus::{self, Barrier};
use super::machine::ticks;
use super::physical::Memory;
use super::serial::{fail, report};
use core::sync::atomic::{AtomicU64, Ordering};
use craton_frames::{Kind, Request};

const ORDERS: [u32; 3] = [0, 4, 9];
const PAIRS: usize = 20_000;
/// An order-10 block of numbers of 4 bytes.
const MOST: usize = (4 << 20) / 4;
const LIST_ORDER: u32 = 10;
const TURNS: usize = 100;

fn request(order: u32, cpu: usize) -> Request {
    Request { order, kind: Kind::Movable, processor: cpu }
}

fn get(memory: &Memory, order: u32, cpu: usize) -> u32 {
    match memory.zone.get(request(order, cpu)) {
        Ok(frame) => frame as u32,
        Err(error) => fail!("CPU {cpu} gets order {order}: {error}"),
    }
}

fn put(memory: &Memory, frame: u32, order: u32, cpu: usize) {
    if let Err(error) = memory.zone.put(frame as usize, request(order, cpu)) {
        fail!("CPU {cpu} frees {frame}, order {order}: {error}");
    }
}

pub fn run(memory: &Memory, count: usize, held: usize) {
    for cpus in [1, 2, 4, 8].into_iter().filter(|cpus| *cpus <= count) {
        for order in ORDERS {
            bulk(memory, cpus, order, false);
            bulk(memory, cpus, order, true);
            repeat(memory, cpus, order);
        }
    }
    memory.check(count, held, "the benchmarks");
    fragmentation(memory);
    memory.check(count, held, "fragmentation");
}

struct Span {
    begin: AtomicU64,
    end: AtomicU64,
}

impl Span {
    const fn new() -> Self {
        Self { begin: AtomicU64::new(u64::MAX), end: AtomicU64::new(0) }
    }

    fn measure(&self, work: impl FnOnce()) {
        let begin = ticks();
        work();
        self.end.fetch_max(ticks(), Ordering::Relaxed);
        self.begin.fetch_min(begin, Ordering::Relaxed);
    }

    fn ticks_for(self, operations: usize) -> f64 {
        (self.end.into_inner() - self.begin.into_inner()) as f64 / operations as f64
    }
}

/// In a block, which the caller frees after the numbers' last use.
fn list(memory: &Memory, cpu: usize) -> (u32, &'static mut [u32]) {
    let home = get(memory, LIST_ORDER, cpu);
    // SAFETY: the block is held, mapped to itself, and this CPU's alone; words have any contents.
    (home, unsafe { core::slice::from_raw_parts_mut(memory.pointer(home as usize).cast(), MOST) })
}

fn bulk(memory: &Memory, cpus: usize, order: u32, is_random: bool) {
    let usable = memory.zone.free_frames().saturating_sub(cpus << LIST_ORDER) / 2;
    let blocks = ((usable / cpus) >> order).min(MOST);
    if blocks == 0 {
        return;
    }
    let (gets, puts) = (Span::new(), Span::new());
    let barriers = [const { Barrier::new() }; 3];
    cpus::run(cpus, &|cpu| {
        let (home, blocks) = {
            let (home, list) = list(memory, cpu);
            (home, &mut list[..blocks])
        };
        barriers[0].wait(cpus);
        gets.measure(|| blocks.iter_mut().for_each(|block| *block = get(memory, order, cpu)));
        if is_random {
            let mut random = Random::new(cpu as u64 + 1);
            for at in (1..blocks.len()).rev() {
                blocks.swap(at, random.below(at + 1));
            }
        }
        barriers[1].wait(cpus);
        puts.measure(|| blocks.iter().for_each(|block| put(memory, *block, order, cpu)));
        barriers[2].wait(cpus);
        put(memory, home, LIST_ORDER, cpu);
    });
    let operations = blocks * cpus;
    let (gets, puts) = (gets.ticks_for(operations), puts.ticks_for(operations));
    let name = if is_random { "\"random\"" } else { "\"bulk\"" };
    report!("bench", "name": name, "order": order, "cpus": cpus, "blocks": operations,
        "get": format_args!("{gets:.1}"), "put": format_args!("{puts:.1}"));
}

fn repeat(memory: &Memory, cpus: usize, order: u32) {
    let pairs = Span::new();
    let barrier = Barrier::new();
    cpus::run(cpus, &|cpu| {
        put(memory, get(memory, order, cpu), order, cpu);
        barrier.wait(cpus);
        pairs.measure(|| (0..PAIRS).for_each(|_| put(memory, get(memory, order, cpu), order, cpu)));
    });
    report!("bench", "name": "\"repeat\"", "order": order, "cpus": cpus, "blocks": PAIRS * cpus,
        "pair": format_args!("{:.1}", pairs.ticks_for(PAIRS * cpus)));
}

/// 90 % taken, half of it freed at random; each turn moves a tenth of the rest, and counts the free
/// huge frames, of those that could be (§5.6).
fn fragmentation(memory: &Memory) {
    let (home, numbers) = list(memory, 0);
    let all = memory.zone.free_frames();
    let fill = (all * 9 / 10).min(numbers.len());
    let (taken, _) = numbers.split_at_mut(fill);
    taken.iter_mut().for_each(|block| *block = get(memory, 0, 0));
    let mut random = Random::new(3);
    for at in (1..fill).rev() {
        taken.swap(at, random.below(at + 1));
    }
    let (freed, live) = taken.split_at_mut(fill / 2);
    freed.iter().for_each(|block| put(memory, *block, 0, 0));
    let possible = (all - live.len()) / 512;
    for turn in 0..=TURNS {
        if let Err(error) = memory.zone.drain(0) {
            fail!("{error}");
        }
        if turn % 20 == 0 {
            report!("fragmentation", "turn": turn, "free_huge_frames": memory.zone.free_huge_frames(), "possible": possible);
        }
        let moved = live.len() / 10;
        for at in 0..moved {
            live.swap(at, at + random.below(live.len() - at));
            put(memory, live[at], 0, 0);
        }
        live[..moved].iter_mut().for_each(|block| *block = get(memory, 0, 0));
    }
    live.iter().for_each(|block| put(memory, *block, 0, 0));
    put(memory, home, LIST_ORDER, 0);
}
