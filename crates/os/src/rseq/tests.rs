//! No token is lost or duplicated, however threads are moved.

extern crate std;
use super::*;
use crate::guarded;
use core::ptr::null_mut;
use core::sync::atomic::{AtomicBool, AtomicU32, AtomicUsize, Ordering};
use std::boxed::Box;
use std::vec::Vec;
use std::{eprintln, vec};

#[repr(C)]
struct Memory {
    counts: [[AtomicU32; 2]; 2],
    slots: [[AtomicUsize; SLOTS]; 2],
}

const SLOTS: usize = 20;
const PLACES: [Place; 2] = [Place { counts: 0, slots: 16 }, Place { counts: 8, slots: 16 + 8 * SLOTS as u32 }];

impl Memory {
    fn fresh() -> *mut u8 {
        let memory = Memory {
            counts: [const { [AtomicU32::new(0), AtomicU32::new(SLOTS as u32)] }; 2],
            slots: [const { [const { AtomicUsize::new(0) }; SLOTS] }; 2],
        };
        Box::into_raw(Box::new(memory)).cast()
    }

    fn take_all(&self) -> Vec<usize> {
        let mut all = vec![];
        for (counts, slots) in self.counts.iter().zip(&self.slots) {
            let n = counts[0].swap(0, Ordering::Relaxed) as usize;
            all.extend(slots[..n].iter().map(|s| s.load(Ordering::Relaxed)));
        }
        all
    }
}

fn table() -> &'static Table {
    Box::leak(Box::new([const { AtomicPtr::new(null_mut()) }; PROCESSORS]))
}

fn find() -> Option<Rseq> {
    let found = Rseq::find();
    if found.is_none() {
        eprintln!("no restartable sequences here: not tested");
    }
    found
}

#[test]
fn an_array_is_a_stack_with_a_bound() {
    let Some(rseq) = find() else { return };
    let table = table();
    // SAFETY: only these functions use the arrays of the table's memory.
    unsafe {
        assert!(!rseq.push(table, PLACES[0], null_mut()), "a processor without memory takes nothing");
        assert!(rseq.pop(table, PLACES[0]).is_null());
        let memory = Memory::fresh();
        table.iter().for_each(|entry| entry.store(memory, Ordering::Relaxed));
        for (i, place) in PLACES.into_iter().enumerate() {
            let tokens: Vec<usize> = (1..).take_while(|t| rseq.push(table, place, (100 * i + t) as *mut u8)).collect();
            assert_eq!(tokens.len(), SLOTS);
        }
        for (i, place) in PLACES.into_iter().enumerate() {
            for token in (1..=SLOTS).rev() {
                assert_eq!(rseq.pop(table, place) as usize, 100 * i + token);
            }
            assert!(rseq.pop(table, place).is_null());
        }
    }
}

/// Every thread owns all.
fn counting(capacity: u32) -> (usize, impl Fn(usize) -> &'static Counting) {
    let base = guarded::reserve_zeros(AREA * 64).unwrap();
    let open = guarded::Opened::<1>::new();
    assert!((0..64).all(|processor| open.open(processor, base + processor * AREA, size_of::<Counting>())));
    // SAFETY: the mapping stays, and zeros are an array.
    let array = move |processor: usize| unsafe { &*((base + processor * AREA) as *const Counting) };
    for processor in 0..64 {
        array(processor).owner.store(OWNER, Ordering::Relaxed);
        array(processor).capacity.store(capacity, Ordering::Relaxed);
    }
    (base, array)
}

const OWNER: usize = 77;

#[test]
fn many_pointers_go_into_a_counting_array_in_order_as_far_as_there_is_room_and_the_last_come_out() {
    let Some(rseq) = find() else { return };
    let (base, array) = counting(10);
    let tokens: Vec<*mut u8> = (1..=16).map(|t| t as *mut u8).collect();
    let mut into = [null_mut(); 20];
    let Some(here) = rseq.processor().filter(|here| *here < 64) else { return };
    move_to(here);
    // SAFETY: a permanent mapping; this thread is registered.
    unsafe {
        // A move between two calls is seen.
        let at = rseq.processor();
        let put = rseq.push_many(base, &tokens[..4]) + rseq.push_many(base, &tokens[4..]);
        let refused = rseq.pop_many(base, OWNER + 1, &mut into);
        let some = rseq.pop_many(base, OWNER, &mut into[..3]);
        let rest = rseq.pop_many(base, OWNER, &mut into[3..]);
        let none = rseq.pop_many(base, OWNER, &mut into);
        if at != rseq.processor() {
            return eprintln!("moved to another processor: not tested");
        }
        assert_eq!((put, refused, some, rest, none), (10, 0, 3, 7, 0));
        assert_eq!(into[..10], [&tokens[7..10], &tokens[..7]].concat());
        let word = (0..64).map(|processor| array(processor).word.load(Ordering::Relaxed)).max();
        assert_eq!(word, Some(10 << 8), "none there, ten taken");
        (0..64).for_each(|processor| array(processor).capacity.store(0, Ordering::Relaxed));
        assert_eq!(rseq.push_many(base, &tokens), 0, "a closed one has no room");
    }
}

#[test]
fn no_token_of_counting_arrays_is_lost_or_doubled_under_preemption_and_migration() {
    const THREADS: usize = 12;
    let Some(rseq) = find() else { return };
    let rounds = if std::env::var_os("CRATON_FULL").is_some() { 20_000_000 } else { 60_000 };
    let (base, array) = counting(COUNTING as u32);
    let mut seen: Vec<usize> = std::thread::scope(|scope| {
        let workers: Vec<_> = (0..THREADS)
            .map(|me| {
                scope.spawn(move || {
                    let mut own: Vec<*mut u8> = (0..30).map(|t| (1 + me * 30 + t) as *mut u8).collect();
                    for round in 0..rounds {
                        if rseq.processor().is_none_or(|here| here >= 64) {
                            break;
                        }
                        let mut into = [null_mut(); 25];
                        // SAFETY: as above.
                        let n = unsafe {
                            let part = own.len() * (round % 4) / 3;
                            let put = rseq.push_many(base, &own[..part.min(own.len())]);
                            own.drain(..put);
                            if own.pop_if(|token| rseq.push_counted(base, *token)).is_some() {
                                own.extend(Some(rseq.pop_counted(base, OWNER)).filter(|token| !token.is_null()));
                            }
                            rseq.pop_many(base, OWNER, &mut into[..1 + round % 25])
                        };
                        own.extend_from_slice(&into[..n]);
                        if round % 5_000 == 0 {
                            move_to(round / 5_000 + me);
                        }
                    }
                    own.into_iter().map(|token| token as usize).collect::<Vec<_>>()
                })
            })
            .collect();
        workers.into_iter().flat_map(|w| w.join().unwrap()).collect()
    });
    for processor in 0..64 {
        let count = array(processor).word.load(Ordering::Relaxed) as usize & 255;
        seen.extend(array(processor).slots[..count].iter().map(|slot| slot.load(Ordering::Relaxed) as usize));
    }
    seen.sort_unstable();
    assert_eq!(seen, (1..=THREADS * 30).collect::<Vec<_>>());
}

#[test]
fn no_token_is_lost_or_doubled_under_preemption_migration_and_theft() {
    const THREADS: usize = 12;
    const TOKENS: usize = 6;
    let Some(rseq) = find() else { return };
    let rounds = if std::env::var_os("CRATON_FULL").is_some() { 40_000_000 } else { 150_000 };
    let table = table();
    let memories: Vec<usize> = (0..64).map(|_| Memory::fresh() as usize).collect();
    for (entry, memory) in table.iter().zip(&memories) {
        entry.store(*memory as *mut u8, Ordering::Relaxed);
    }
    let done = AtomicBool::new(false);
    let mut seen: Vec<usize> = std::thread::scope(|scope| {
        let workers: Vec<_> = (0..THREADS)
            .map(|me| {
                scope.spawn(move || {
                    let mut own: Vec<usize> = (0..TOKENS).map(|t| 1 + me * TOKENS + t).collect();
                    for round in 0..rounds {
                        let place = PLACES[round % 2];
                        // SAFETY: as above.
                        unsafe {
                            if let Some(token) = own.pop()
                                && !rseq.push(table, place, token as *mut u8)
                            {
                                own.push(token);
                            }
                            let token = rseq.pop(table, place) as usize;
                            if token != 0 {
                                own.push(token);
                            }
                        }
                        if round % 5_000 == 0 {
                            move_to(round / 5_000 + me);
                        }
                    }
                    own
                })
            })
            .collect();
        let thief = scope.spawn(|| {
            let (mut stolen, mut turns) = (vec![], 0);
            while !done.load(Ordering::Relaxed) {
                for entry in &table[..8] {
                    // ORDERING: the kernel's barrier orders the arrays, here and below.
                    let memory = entry.swap(null_mut(), Ordering::Relaxed);
                    if !memory.is_null() && rseq.interrupt() {
                        // SAFETY: out of the table, and `interrupt` ended all sections in it.
                        stolen.extend(unsafe { (*memory.cast::<Memory>()).take_all() });
                        turns += 1;
                    }
                    entry.store(memory, Ordering::Relaxed);
                }
                std::thread::sleep(std::time::Duration::from_millis(1));
            }
            assert!(turns > 0, "membarrier serves restartable sequences");
            stolen
        });
        let mut all: Vec<usize> = workers.into_iter().flat_map(|w| w.join().unwrap()).collect();
        done.store(true, Ordering::Relaxed);
        all.extend(thief.join().unwrap());
        all
    });
    for memory in memories {
        // SAFETY: the threads have ended.
        seen.extend(unsafe { (*(memory as *mut Memory)).take_all() });
    }
    seen.sort_unstable();
    assert_eq!(seen, (1..=THREADS * TOKENS).collect::<Vec<_>>());
}

fn move_to(n: usize) {
    let cpus = std::thread::available_parallelism().map_or(1, |n| n.get());
    // SAFETY: plain data, which the call reads.
    unsafe {
        let mut set: libc::cpu_set_t = core::mem::zeroed();
        libc::CPU_SET(n % cpus, &mut set);
        libc::sched_setaffinity(0, size_of_val(&set), &set);
    }
}

#[test]
fn only_threads_with_an_area_of_their_own_are_registered() {
    let Some(rseq) = find() else { return };
    assert!(rseq.is_registered());
    assert!(std::thread::spawn(move || rseq.is_registered()).join().unwrap());
    assert!(rseq.is_registered(), "a question changes nothing");
    let elsewhere = Rseq { offset: rseq.offset - 4096, number: rseq.number };
    assert!(!elsewhere.is_registered());
    let mut status = 0;
    // SAFETY: the child asks and leaves.
    unsafe {
        let child = libc::fork();
        if child == 0 {
            libc::_exit(rseq.is_registered().into());
        }
        assert_eq!(libc::waitpid(child, &mut status, 0), child);
    }
    assert_eq!(libc::WEXITSTATUS(status), 1, "the child of a fork is registered as its parent is");
}

#[test]
fn of_the_area_nothing_but_the_pointer_to_the_section_is_written() {
    let Some(rseq) = find() else { return };
    let table = table();
    let memory = Memory::fresh();
    table.iter().for_each(|entry| entry.store(memory, Ordering::Relaxed));
    let area = thread::pointer().wrapping_add_signed(rseq.offset) as *const u32;
    // SAFETY: the thread's area, of 32 bytes; its fields are words.
    let read = || unsafe { core::array::from_fn::<u32, 8, _>(|i| area.add(i).read_volatile()) };
    let mut same = 0;
    for _ in 0..1000 {
        let before = read();
        // SAFETY: as above.
        unsafe {
            rseq.push(table, PLACES[0], 0x10 as *mut u8);
            rseq.pop(table, PLACES[0]);
            rseq.pop(table, PLACES[1]);
        }
        let after = read();
        // The kernel writes the other words when it moves the thread.
        let others = |words: [u32; 8]| [words[0], words[1], words[4], words[5], words[6], words[7]];
        same += u32::from(others(before) == others(after));
        assert!(
            after[2] != 0 || after[3] != 0 || others(before) != others(after),
            "the pointer is set, or was taken back"
        );
    }
    assert!(same > 900, "only {same} of 1000 times all other words were as before");
}
