//! The kit over a simulated floor.

use crate::ground::{Ground, ground};
use crate::pattern;
use crate::sample::PACED_MAPPED;
use crate::setting::{AUDIT, GUARD, LEAK, POISON, REDZONE, SAMPLED, UNMAP, VERIFY};
use crate::table::{Event, Kind, State};
use crate::*;
use craton_base::Pages;
use craton_heap::hooks::NoHooks;
use craton_heap::{Heap, Misuse};
use craton_os::fault::Fault;
use craton_pages::PageHeapExt;
use craton_sim::{FaultPlan, FaultRule, RealFloor, Rng, VirtualClock};
use std::boxed::Box;
use std::collections::BTreeMap;
use std::vec::Vec;

mod faults;

struct Alone;

impl Process for Alone {
    fn cache_name(_: u16) -> Option<[u8; NAME_MAX + 1]> {
        let mut name = [0; NAME_MAX + 1];
        name[..4].copy_from_slice(b"jobs");
        Some(name)
    }
}

type TestHeap = Heap<RealFloor, VirtualClock, NoHooks>;

struct World {
    heap: &'static TestHeap,
    kit: &'static Kit<Alone>,
    faults: FaultPlan,
}

fn world(hugepages: u32) -> World {
    let Ground { heap, faults, .. } = ground(hugepages, 1);
    let kit = Box::leak(Box::new(Kit::new()));
    kit.in_use.store(true, Relaxed);
    kit.watches.turn_off();
    World { heap, kit, faults }
}

const CHECKS: [u16; 6] = [REDZONE, POISON, REDZONE | POISON | AUDIT, GUARD, GUARD | UNMAP | POISON, SAMPLED | VERIFY];

impl World {
    fn alloc(&self, size: usize, align: usize, checks: u16) -> *mut u8 {
        self.kit.alloc(self.heap, size, align, Target::MALLOC, checks).unwrap_or_else(|f| panic!("{f:?}"))
    }

    fn free(&self, pointer: *mut u8, target: Target) -> Result<bool, Mistake> {
        // SAFETY: tests give up what they free.
        unsafe { self.kit.free(self.heap, pointer, target) }.map_err(|f| f.mistake)
    }

    fn pages_in_use(&self) -> Pages {
        self.heap.release(|| ());
        self.heap.pages().check().unwrap();
        self.heap.pages().in_use()
    }
}

fn mistake<T>(result: Result<T, Finding>) -> Option<Mistake> {
    result.err().map(|finding| finding.mistake)
}

#[test]
fn d1_buffers_have_exactly_their_sizes_at_their_alignments_and_go_back_whole() {
    for checks in CHECKS {
        let w = world(24);
        w.kit.set_quarantine(0);
        for align in [1, 16, 32, 512, 4096, 8192, 1 << 20] {
            for size in [0, 1, 15, 16, 17, 100, 4096, 4097, 40_000, 300_000] {
                let buffer = w.alloc(size, align, checks);
                if buffer.is_null() {
                    assert!(checks & SAMPLED != 0 && align > 4096, "{size} at {align}");
                    continue;
                }
                assert!(buffer.addr().is_multiple_of(align.max(16)), "{size} at {align}");
                assert_eq!(w.kit.size_for("test", buffer).ok(), Some(Some(size)));
                // SAFETY: ours, of `size` bytes.
                unsafe {
                    if checks & POISON != 0 {
                        assert!(pattern::check(buffer, size, pattern::FRESH).is_none());
                    }
                    buffer.write_bytes(1, size);
                }
                assert_eq!(w.free(buffer, Target::MALLOC), Ok(true), "{size} at {align} under {checks:#x}");
            }
        }
        assert_eq!(w.free(16 as *mut u8, Target::MALLOC), Ok(false), "no buffer");
        let counts = w.kit.counts(true);
        assert_eq!(counts.buffers, 0);
        assert_eq!(w.pages_in_use(), Pages(0));
    }
}

#[test]
fn a_byte_past_either_end_is_found_by_free_and_by_a_check_of_all() {
    for (size, align) in [(1, 1), (24, 16), (100, 64), (5000, 16), (300_000, 4096)] {
        for offset in [-1isize, -16, size as isize, size as isize + 7] {
            let w = world(8);
            let buffer = w.alloc(size, align, REDZONE);
            assert_eq!(w.kit.check_all("test").ok(), Some(1));
            // SAFETY: redzones have at least 16 bytes.
            let was = unsafe { buffer.offset(offset).replace(0x55) };
            for found in [mistake(w.kit.check_all("test")), w.free(buffer, Target::MALLOC).err()] {
                assert!(matches!(found, Some(Mistake::Written { offset: o, .. }) if o == offset), "{found:?}");
            }
            assert_eq!(w.kit.table.get(buffer as usize).map(|b| b.size), Some(size), "the record is there still");
            // SAFETY: as above.
            unsafe { buffer.offset(offset).write(was) };
        }
    }
}

#[test]
fn a_write_into_a_free_buffer_is_found_when_its_memory_is_to_serve_again() {
    let w = world(8);
    let buffer = w.alloc(100, 1, POISON | REDZONE);
    assert_eq!(w.free(buffer, Target::MALLOC), Ok(true));
    // SAFETY: waits, and is written on purpose.
    unsafe { buffer.add(40).write(1) };
    let found = mistake(w.kit.check_all("test"));
    assert!(matches!(found, Some(Mistake::WrittenFree { wrong, found_by: "test" }) if wrong.offset == 40));
    w.kit.set_quarantine(0);
    w.kit.set_quarantine(300);
    let next = w.alloc(100, 1, POISON);
    let found = w.free(next, Target::MALLOC);
    assert!(matches!(found, Err(Mistake::WrittenFree { wrong, found_by: "alloc" }) if wrong.offset == 40), "{found:?}");
}

#[test]
fn a_second_free_is_one_whatever_became_of_the_buffer() {
    for checks in CHECKS {
        let w = world(8);
        let buffer = w.alloc(100, 16, checks);
        assert_eq!(w.free(buffer, Target::MALLOC), Ok(true));
        assert!(matches!(w.free(buffer, Target::MALLOC), Err(Mistake::DoubleFree)));
        assert!(matches!(mistake(w.kit.size_for("realloc", buffer)), Some(Mistake::UsedFree { call: "realloc" })));
        assert!(matches!(mistake(w.kit.check_claim(buffer, None, 1)), Some(Mistake::DoubleFree)));
        assert!(matches!(mistake(w.kit.is_buffer_of(buffer, Target::MALLOC)), Some(Mistake::DoubleFree)));
    }
}

#[test]
fn buffers_go_back_to_their_owner_alone() {
    let w = world(8);
    let (one, two) = (Target::cache(0), Target::cache(1));
    let plain = w.alloc(64, 16, REDZONE);
    let cached = w.kit.alloc(w.heap, 64, 16, one, REDZONE).unwrap_or_else(|_| unreachable!());
    assert!(matches!(w.free(cached, Target::MALLOC), Err(Mistake::WrongCache { given: Target::MALLOC })));
    assert!(matches!(w.free(cached, two), Err(Mistake::WrongCache { given }) if given == two));
    assert!(matches!(w.free(plain, one), Err(Mistake::WrongCache { given }) if given == one));
    assert!(matches!(mistake(w.kit.size_for("x", cached)), Some(Mistake::WrongCache { .. })));
    assert!(w.kit.is_buffer_of(cached, one).is_ok_and(|is| is));
    assert!(w.kit.is_buffer_of(32 as *mut u8, one).is_ok_and(|is| !is));
    assert_eq!((w.free(cached, one), w.free(plain, Target::MALLOC)), (Ok(true), Ok(true)));
}

#[test]
fn a_claim_must_be_what_was_asked_for() {
    let w = world(8);
    let buffer = w.alloc(100, 64, REDZONE);
    for (size, align, right) in
        [(Some(100), 64, true), (None, 1, true), (Some(112), 1, false), (Some(100), 1 << 21, false)]
    {
        let claimed = w.kit.check_claim(buffer, size, align);
        assert_eq!(claimed.is_ok_and(|is| is), right, "{size:?} {align}");
    }
    assert!(w.kit.check_claim(48 as *mut u8, Some(1), 1).is_ok_and(|is| !is), "no buffer");
}

#[test]
fn a_bad_pointer_is_told_by_the_buffer_that_it_points_into() {
    let w = world(8);
    let buffer = w.alloc(100, 16, REDZONE);
    let inside = w.kit.find_place("free", buffer as usize + 10).map(|f| f.mistake);
    assert!(matches!(inside, Some(Mistake::Inside { call: "free", offset: 10 })));
    let before = w.kit.find_place("free", buffer as usize - 16).map(|f| f.mistake);
    assert!(matches!(before, Some(Mistake::Inside { offset: -16, .. })), "the object of the heap under it");
    let itself = w.kit.find_place("free", buffer as usize).map(|f| f.mistake);
    assert!(matches!(itself, Some(Mistake::Elsewhere { .. })));
    assert!(w.kit.find_place("free", buffer as usize + 4096).is_none());
    w.free(buffer, Target::MALLOC).unwrap();
    let free = w.kit.find_place("realloc", buffer as usize).map(|f| f.mistake);
    assert!(matches!(free, Some(Mistake::UsedFree { call: "realloc" })));
    for misuse in [Misuse::NoCache, Misuse::HeapDestroyed, Misuse::HeapStays] {
        w.kit.report_misuse("craton_heap_free", buffer, misuse);
    }
    w.kit.report_misuse("free", 8 as *mut u8, Misuse::Foreign);
}

#[test]
fn what_was_audited_is_in_the_log_after_its_memory_has_gone() {
    let w = world(8);
    assert_eq!(w.kit.setting.set(b"audit"), Some(true));
    w.kit.set_quarantine(0);
    let buffer = w.alloc(100, 16, AUDIT);
    let record = w.kit.table.get(buffer as usize).unwrap();
    assert!(record.taken.thread != 0 && record.taken.time_ns > 0);
    assert!(!w.kit.stacks.frames(record.taken.stack).is_empty(), "from where");
    assert!(w.kit.logged(buffer as usize).is_none(), "it is live");
    assert_eq!(w.free(buffer, Target::MALLOC), Ok(true));
    assert!(w.kit.table.get(buffer as usize).is_none());
    let logged = w.kit.logged(buffer as usize + 99).unwrap();
    assert_eq!((logged.address, logged.size, logged.taken.thread), (buffer as usize, 100, record.taken.thread));
    assert!(w.kit.logged(buffer as usize + 100).is_none());
    let counts = w.kit.counts(true);
    assert_eq!((counts.transactions, counts.transactions_kept, counts.buffers), (2, 2, 0));
    assert_eq!(counts.numbers()[4], ("transactions", 2));
}

#[test]
fn live_audited_buffers_are_summed_by_their_stacks() {
    let w = world(8);
    assert!(w.kit.audited().is_none(), "no audit yet");
    assert_eq!(w.kit.setting.set(b"audit"), Some(true));
    let freed = w.alloc(1000, 16, AUDIT);
    let kept: Vec<_> = (0..10).map(|_| w.alloc(100, 16, AUDIT)).collect();
    let other = w.alloc(7, 16, AUDIT);
    w.alloc(50, 16, REDZONE);
    assert_eq!(w.free(freed, Target::MALLOC), Ok(true));
    let mut sums = Vec::new();
    let audited = w.kit.audited().unwrap();
    let read: Result<(), ()> = audited.each(|frames, sum| {
        sums.push((frames.len(), sum));
        Ok(())
    });
    assert_eq!(read, Ok(()));
    assert!(sums.iter().all(|(frames, _)| *frames > 0), "{sums:?}");
    let all = sums.iter().fold((0, 0), |(bytes, objects), (_, sum)| (bytes + sum.bytes, objects + sum.objects));
    assert_eq!(all, (10 * 100 + 7, 11), "{sums:?}");
    assert!(sums.contains(&(sums[0].0, Sum { bytes: 1000, objects: 10 })), "{sums:?}");
    assert_eq!(audited.each(|_, _| Err(5)), Err(5));
    for buffer in kept.into_iter().chain([other]) {
        assert_eq!(w.free(buffer, Target::MALLOC), Ok(true));
    }
}

#[test]
fn without_audit_nothing_is_noted() {
    let w = world(8);
    let buffer = w.alloc(100, 16, REDZONE);
    let Event { time_ns, stack, thread } = w.kit.table.get(buffer as usize).unwrap().taken;
    assert_eq!((time_ns, stack, thread), (0, 0, 0));
}

#[test]
fn buffers_of_one_size_wait_and_are_counted() {
    let w = world(8);
    let buffers: Vec<_> = (0..50).map(|_| w.alloc(200, 16, POISON)).collect();
    buffers[..20].iter().for_each(|b| assert_eq!(w.free(*b, Target::MALLOC), Ok(true)));
    let counts = w.kit.counts(true);
    assert_eq!((counts.buffers, counts.buffer_bytes, counts.waiting), (30, 30 * 200, 20));
    assert_eq!(w.kit.counts(false).buffers, 0, "not where locks may be held");
    w.kit.report_live(Target::cache(3), "test");
}

#[test]
fn samples_are_taken_when_they_are_due_and_counted() {
    let w = world(8);
    assert!(w.kit.alloc_sample(w.heap, 3, 40, 16).is_ok_and(|b| b.is_null()), "none is due");
    w.kit.sample.set(1);
    assert!(w.kit.is_sample_due(3) && w.kit.bound(3, 16) == 1);
    let sample = w.kit.alloc_sample(w.heap, 3, 40, 16).unwrap_or_else(|_| unreachable!());
    let record = w.kit.table.get(sample as usize).unwrap();
    assert_eq!((record.kind, record.checks, w.kit.counts(true).samples), (Kind::Slot, SAMPLED | VERIFY, 1));
    assert_eq!(w.free(sample, Target::MALLOC), Ok(true));
    assert_eq!(w.kit.table.get(sample as usize).map(|b| b.state), Some(State::Closed));
}

#[test]
fn samples_of_several_pages_come_again_by_default_while_few_wait() {
    let w = world(8);
    for _ in 0..5 * PACED_MAPPED {
        let sample = w.alloc(3 * craton_os::process::page_size(), 16, SAMPLED | VERIFY);
        assert_eq!(w.kit.table.get(sample as usize).map(|b| b.kind), Some(Kind::Mapped));
        assert_eq!(w.free(sample, Target::MALLOC), Ok(true));
    }
    assert_eq!(w.kit.counts(true).waiting, PACED_MAPPED as u64 / 2);
}

#[test]
fn what_the_floor_refuses_is_null_and_leaves_no_record() {
    for nth in 0..12 {
        let w = world(4);
        w.kit.set_quarantine(0);
        w.faults.set(FaultRule::From(nth));
        let mut live = Vec::new();
        for i in 0..400usize {
            let buffer = w.alloc([40, 3000, 200_000][i % 3], 16, REDZONE | POISON);
            if buffer.is_null() {
                break;
            }
            live.push(buffer);
        }
        assert_eq!(w.kit.counts(true).buffers, live.len() as u64);
        w.faults.set(FaultRule::Never);
        live.into_iter().for_each(|b| assert_eq!(w.free(b, Target::MALLOC), Ok(true)));
        assert_eq!((w.kit.counts(true).buffers, w.pages_in_use()), (0, Pages(0)));
    }
    let w = world(4);
    for impossible in [usize::MAX, isize::MAX as usize, usize::MAX - 40] {
        assert!(w.alloc(impossible, 16, REDZONE).is_null() && w.alloc(impossible, 16, GUARD).is_null());
    }
}

#[test]
fn buffers_never_overlap_whatever_their_checks() {
    let w = world(48);
    w.kit.set_quarantine(1 << 20);
    let (mut rng, mut live) = (Rng::new(11), BTreeMap::<usize, (usize, u8)>::new());
    for turn in 0..8000u32 {
        if live.len() < 100 || rng.below(2) == 0 && live.len() < 300 {
            let most = [300, 5000, 60_000][rng.below(3) as usize];
            let (size, checks) = (rng.below(most) as usize, CHECKS[rng.below(6) as usize] | POISON);
            let at = w.alloc(size, 1 << rng.below(8), checks & !LEAK) as usize;
            if at == 0 {
                continue;
            }
            let before = live.range(..=at).next_back();
            assert!(before.is_none_or(|(start, (bytes, _))| start + bytes <= at), "overlaps the one before it");
            assert!(live.range(at..).next().is_none_or(|(start, _)| at + size <= *start), "overlaps the one behind it");
            // SAFETY: ours.
            unsafe { (at as *mut u8).write_bytes(turn as u8, size) };
            live.insert(at, (size, turn as u8));
        } else {
            let at = *live.keys().nth(rng.below(live.len() as u64) as usize).unwrap();
            let (size, byte) = live.remove(&at).unwrap();
            // SAFETY: ours until freed.
            unsafe { assert!((0..size).all(|i| *(at as *const u8).add(i) == byte), "written by another") };
            assert_eq!(w.free(at as *mut u8, Target::MALLOC), Ok(true));
        }
    }
    assert!(w.kit.check_all("test").is_ok());
    live.into_keys().for_each(|at| assert_eq!(w.free(at as *mut u8, Target::MALLOC), Ok(true)));
}

#[test]
fn of_two_threads_that_free_one_buffer_one_finds_it_free() {
    let w = world(8);
    for _ in 0..200 {
        let buffer = w.alloc(64, 16, POISON) as usize;
        let free = || {
            // SAFETY: the kit has to find out.
            unsafe { w.kit.free(w.heap, buffer as *mut u8, Target::MALLOC) }.is_ok()
        };
        let (one, two) = std::thread::scope(|s| {
            let other = s.spawn(free);
            (free(), other.join().unwrap())
        });
        assert!(one != two);
    }
}

#[test]
fn the_copy_of_a_process_checks_what_it_has_freed_itself() {
    let w = world(8);
    let [theirs, ours] = core::array::from_fn(|_| w.alloc(100, 16, POISON));
    assert_eq!(w.free(theirs, Target::MALLOC), Ok(true));
    w.kit.lock_for_fork(false);
    // SAFETY: taken just now.
    unsafe {
        w.kit.forked();
        w.kit.release_after_fork();
    }
    // SAFETY: both wait, and are written on purpose.
    unsafe { theirs.write(1) };
    assert!(w.kit.check_own("exit").is_ok() && w.kit.check_all("x").is_err());
    assert!(w.kit.at_exit(true).is_ok());
    assert_eq!(w.free(ours, Target::MALLOC), Ok(true));
    // SAFETY: as above.
    unsafe { ours.write(1) };
    assert!(matches!(mistake(w.kit.check_own("exit")), Some(Mistake::WrittenFree { found_by: "exit", .. })));
    assert!(w.kit.at_exit(false).is_err());
}

#[test]
fn options_are_what_they_were_set_to() {
    fn ignore(_: &Fault) {}
    let kit = Box::new(Kit::<Alone>::new());
    assert_eq!((kit.in_use(), kit.checks_of(48), kit.checks_of_cache(b"jobs")), (false, 0, 0));
    assert_eq!((kit.quarantine(), kit.sample(), kit.log_entries()), (16 << 20, AUTO, 1 << 16));
    assert_eq!(kit.set_option(b"none", true, ignore), Some(true));
    assert!(!kit.in_use(), "no check, no kit");
    assert_eq!(kit.set_option(b"redzone:48", false, ignore), Some(true));
    assert!(kit.in_use() && kit.may_be_on_heap() && kit.checks_of(48) == REDZONE && kit.checks_of_class(0) == 0);
    assert_eq!(kit.set_option(b"redzones", false, ignore), None);
    kit.show_option(|text| assert_eq!(text, b"redzone:48"));
    kit.set_sample(100);
    kit.set_quarantine(0);
    assert_eq!((kit.sample(), kit.quarantine(), kit.allows_sample(u64::MAX)), (100, 0, false));
    assert!(kit.set_log_entries(b"10") && kit.log_entries() == 10);
    kit.trust();
    assert!(kit.check_option(b"all").is_err());
}

#[test]
fn a_kit_that_was_never_used_is_all_zeros() {
    // Its padding is zero too.
    static UNUSED: Kit<Alone> = Kit::new();
    let bytes = (&raw const UNUSED).cast::<u8>();
    // SAFETY: bytes of a static.
    let some = (0..size_of::<Kit<Alone>>()).filter(|i| unsafe { bytes.add(*i).read_volatile() } != 0).count();
    // Debug builds keep the locks' ranks.
    let ranks = if cfg!(debug_assertions) { 19 } else { 0 };
    assert_eq!(some, ranks, "a static kit takes no room in the file");
}

#[test]
fn parts_for_readers_of_the_process_lie_in_the_kit() {
    let mut names = std::collections::HashSet::new();
    for (name, at) in Kit::<Alone>::PARTS {
        assert!(name.starts_with("kit.") && at < size_of::<Kit<Alone>>() && names.insert(name));
    }
    for (name, _) in SHAPE {
        assert!(names.insert(name), "{name} twice");
    }
}
