//! Ticks, releases, collapses and forks.

use super::recorder::{spans, watched};
use super::world::{World, world};
use crate::census::InFront;
use crate::hooks::SpanEvent;
use crate::size_class;
use craton_base::{CollapseError, HugePageId, HugePages, PageRange, Pages};
use craton_pages::{Components, HugeBacking, PageHeapExt, SLOW_NS, Took};
use craton_sim::{Call, FaultRule, ThpMode};
use std::sync::atomic::Ordering::Relaxed;
use std::vec::Vec;

const MIB: usize = 1 << 20;
const SECOND: u64 = 1_000_000_000;

/// 20 hugepages with one object each.
fn thinned() -> World {
    let w = world(32, 0);
    let all: Vec<_> = (0..120).map(|_| w.large(300 << 10)).collect();
    let (kept, gone): (Vec<_>, Vec<_>) = all.into_iter().partition(|object| *object as usize % (2 * MIB) < 300 << 10);
    assert!(kept.len() >= 15 && !gone.is_empty());
    w.give_all(gone);
    let _ = w.heap.tick();
    (0..60).for_each(|_| {
        w.clock.advance(120 * SECOND);
        let _ = w.heap.tick();
    });
    w
}

#[test]
fn memory_goes_back_at_the_rate_that_was_set_and_not_without_one() {
    let w = thinned();
    let free = |w: &World| w.heap.pages().backed_pages().0 - w.heap.in_use().0;
    let before = free(&w);
    assert!(before > 2000, "{before} free pages");
    assert_eq!(w.heap.tick().0.released, 0);
    w.heap.set_release_rate(4 * MIB as u64);
    let mut released = 0;
    for second in 1..=4 {
        w.clock.advance(SECOND);
        let (tick, in_use) = w.heap.tick();
        released += tick.released;
        assert_eq!(in_use, w.heap.in_use());
        assert!(released <= second * 512 + 256, "{released} pages in {second} s");
        assert!(released >= second * 512 - 256, "{released} pages in {second} s");
    }
    assert_eq!(u64::from(before - free(&w)), released);
    w.clock.advance(1000 * SECOND);
    let late = w.heap.tick().0.released;
    assert!(late <= 512 + 256, "what was not asked for in time is not due at once: {late}");
    w.heap.set_release_rate(0);
    w.clock.advance(100 * SECOND);
    assert_eq!(w.heap.tick().0.released, 0);
}

#[test]
fn a_release_without_regard_to_demand_keeps_a_32nd_and_breaks_so_much_at_a_time() {
    let w = thinned();
    let free = |w: &World| w.heap.pages().backed_pages().0 - w.heap.in_use().0;
    let kept = w.heap.in_use().0 / 32;
    let mut last = free(&w);
    assert!(last > 3000, "{last} free pages");
    w.heap.release_now();
    assert!(last - free(&w) >= 2048 && last - free(&w) < 2048 + 256, "from hugepages in use, one call breaks 16 MiB");
    while free(&w) < last {
        last = free(&w);
        w.heap.release_now();
    }
    assert!(last <= kept, "{last} free pages");
    // Whole hugepages go at once.
    let whole: Vec<_> = (0..20).map(|_| w.large(2 * MIB)).collect();
    w.give_all(whole);
    w.heap.release_now();
    assert!(free(&w) <= kept + 256, "{} free pages", free(&w));
    w.faults.set_only(Call::Unback, FaultRule::From(1));
    w.heap.release_now();
    w.heap.pages().check().unwrap();
}

#[test]
fn a_tick_ends_where_the_system_takes_nothing_back() {
    let w = thinned();
    w.heap.set_release_rate(64 * MIB as u64);
    w.clock.advance(SECOND);
    w.faults.set_only(Call::Unback, FaultRule::From(1));
    assert_eq!(w.heap.tick().0.released, 0);
    w.faults.set(FaultRule::Never);
    w.clock.advance(SECOND);
    assert!(w.heap.tick().0.released > 512, "more than a step: it goes on while more is due");
    w.heap.pages().check().unwrap();
}

#[test]
fn a_release_takes_what_layers_above_return_in_it() {
    let w = world(8, 1 << 20);
    let class = size_class::class_of(64);
    w.give_all(w.take_all(class, 100));
    assert_eq!(w.heap.release(|| ()), 0, "the cache's objects hold their slab, and that its hugepage");
    // SAFETY: the cache is ours.
    let released = w.heap.release(|| unsafe { w.heap.empty_cache(w.cache) });
    assert!(released > 0);
    assert_eq!((w.heap.in_use(), w.heap.pages().backed_pages()), (Pages(0), Pages(0)));
    assert_eq!(w.heap.release(|| ()), 0);
}

#[test]
fn a_release_that_the_system_refuses_says_so_and_loses_nothing() {
    let w = world(8, 0);
    let object = w.large(300 << 10);
    w.give(object).unwrap();
    w.faults.set_only(Call::Unback, FaultRule::From(1));
    assert_eq!(w.heap.release(|| ()), 0);
    assert!(w.heap.used() > 0);
    w.faults.set(FaultRule::Never);
    assert!(w.heap.release(|| ()) >= 300 << 10);
    assert_eq!(w.heap.used(), 0);
}

/// Hugepages in use, but on small pages.
fn collapsible() -> World {
    let w = world(16, 0);
    w.floor.sim().set_thp(ThpMode::Madvise);
    w.floor.sim().set_free_frames(Some(0));
    w.heap.pages().set_backing(HugeBacking::ALWAYS);
    let class = size_class::class_of(1024);
    w.take_all(class, 6 * 2048);
    let granted = w.heap.pages().granted();
    w.floor
        .sim()
        .touch(PageRange::new(HugePageId(0).run(HugePages(5)).first, HugePages(5).pages().min(granted.pages())));
    w.floor.sim().set_free_frames(None);
    // Tells the heap which ones came in parts.
    let _ = w.heap.tick();
    w
}

#[test]
fn a_hugepage_is_chosen_once_for_a_collapse_and_no_more_when_it_is_whole() {
    let w = collapsible();
    assert!(w.heap.collapse_is_due());
    let id = w.heap.begin_collapse().expect("one that is in use and not whole");
    assert_eq!(w.heap.collapsing.load(Relaxed), id.0 + 1);
    let mut ids = std::vec![id];
    assert!(w.heap.end_collapse(id, Ok(()), Took::busy(1000)));
    assert_eq!(w.heap.collapsing.load(Relaxed), 0);
    while let Some(id) = w.heap.begin_collapse() {
        assert!(!ids.contains(&id), "{id:?} twice");
        assert!(w.heap.end_collapse(id, Ok(()), Took::busy(1000)));
        ids.push(id);
    }
    assert!(ids.len() >= 4, "{} hugepages", ids.len());
    assert!(!w.heap.end_collapse(id, Ok(()), Took::busy(1000)), "none was begun");
}

#[test]
fn a_refused_or_long_collapse_ends_the_round_and_rests_the_next() {
    for (result, took_ns, rests) in [(Err(CollapseError::NoMemory), 0, 1), (Ok(()), SECOND, 9)] {
        let w = collapsible();
        let id = w.heap.begin_collapse().unwrap();
        assert!(!w.heap.end_collapse(id, result, Took::busy(took_ns)));
        let skipped = (0..).take_while(|_| !w.heap.collapse_is_due()).count();
        assert_eq!(skipped, rests, "a tenth of a processor");
    }
}

#[test]
fn a_forked_child_ends_a_collapse_that_it_cannot_finish() {
    let w = collapsible();
    w.heap.forked();
    let id = w.heap.begin_collapse().unwrap();
    w.heap.forked();
    assert_eq!(w.heap.collapsing.load(Relaxed), 0);
    assert!(!w.heap.end_collapse(id, Ok(()), Took::default()), "it is over");
    let again = (0..16).find_map(|_| {
        w.heap.begin_collapse().filter(|next| *next == id).or_else(|| {
            w.heap.forked();
            None
        })
    });
    assert_eq!(again, Some(id), "and can be begun once more");
    w.heap.forked();
    w.heap.pages().check().unwrap();
}

/// Two classes', the morphs', the pages' and the huge objects'.
fn free_locks(w: &World) -> [bool; 5] {
    let heap = w.heap;
    std::thread::scope(|scope| {
        let locks = scope.spawn(|| {
            [
                heap.try_slabs(0, 1).is_some(),
                heap.try_slabs(1, 9).is_some(),
                heap.morphs.try_lock().is_some(),
                heap.pages.try_lock().is_some(),
                heap.huge.try_lock().is_some(),
            ]
        });
        locks.join().unwrap()
    })
}

#[test]
fn a_fork_holds_every_lock_and_gives_it_up() {
    let w = world(8, 0);
    w.heap.use_shards(2);
    assert_eq!(free_locks(&w), [true; 5]);
    w.heap.lock_for_fork(false);
    assert_eq!(free_locks(&w), [false; 5]);
    // SAFETY: this thread holds the locks.
    unsafe { w.heap.release_after_fork() };
    assert_eq!(free_locks(&w), [true; 5]);
}

#[test]
fn a_fork_in_a_signal_handler_leaves_what_it_interrupted_its_lock() {
    let w = world(8, 0);
    w.heap.use_shards(2);
    let held = w.heap.slabs(0, 1);
    w.heap.lock_for_fork(true);
    // SAFETY: this thread holds the locks.
    unsafe { w.heap.release_after_fork() };
    assert_eq!(free_locks(&w), [false, true, true, true, true]);
    drop(held);
    assert_eq!(free_locks(&w), [true; 5]);
}

#[test]
fn sums_for_statistics_tell_small_from_large_and_full_from_empty() {
    let w = world(16, 0);
    let class = size_class::class_of(64);
    let each = usize::from(size_class::geometry(class).capacity);
    let large = w.large(3 * MIB);
    let (kept, gone) = (w.large(300 << 10), w.large(400 << 10));
    w.give(gone).unwrap();
    assert_eq!(w.heap.large_bytes(), (3 * MIB + 38 * 8192) as u64, "without what waits in front");
    let objects = w.take_all(class, each + 1);
    assert_eq!(w.heap.large_bytes(), (3 * MIB + 38 * 8192) as u64);
    assert_eq!(w.heap.fullness(class), (1, 0));
    assert!(w.heap.bytes_out() >= ((each + 1) * 64) as u64);
    w.give_all(objects.into_iter().chain([large, kept]));
    w.empty();
    assert_eq!((w.heap.large_bytes(), w.heap.bytes_out(), w.heap.fullness(class)), (0, 0, (0, 0)));
}

#[test]
fn statistics_show_where_spans_lie_what_is_kept_in_front_and_what_went_back() {
    let w = world(64, 0);
    let all: Vec<_> = (0..12).map(|_| w.large(300 << 10)).collect();
    let long = w.large(9 * MIB);
    let agree = |w: &World| {
        let ((figures, parts), census) = (w.heap.components(), w.heap.census());
        let used = parts.dense.used.0 + parts.sparse.used.0 + census.region_used.0 + census.large.pages().0;
        let free = parts.dense.free.0 + parts.sparse.free.0 + parts.region_free.0 + parts.cached.0;
        assert_eq!((used, used + free), (figures.in_use.0, figures.backed_pages.0), "{parts:?} {census:?}");
        assert_eq!(w.heap.granted(), figures.granted.pages());
        (figures, parts, census)
    };
    let (before, parts, census) = agree(&w);
    assert!(parts.sparse.used >= Pages(12 * 38) && census.large >= HugePages(4), "{parts:?} {census:?}");
    assert_eq!(w.heap.in_front(), InFront::default());
    w.give_all(all);
    let front = w.heap.in_front();
    assert!(front.large > Pages(0) && front.spans == Pages(0), "{front:?}");
    let in_spans = agree(&w).0.in_use;
    assert!(in_spans >= Pages(front.large.0 + 9 * 128), "to the page heap they are in use");
    w.give_all([long]);
    w.heap.release(|| ());
    let (after, parts, census) = agree(&w);
    assert_eq!((after.in_use, parts, census.large), (Pages(0), Components::default(), HugePages(0)));
    assert!(after.released_total >= before.released_total + 12 * 38 + 9 * 128);
    assert_eq!(w.heap.in_front(), InFront::default());
}

#[test]
fn a_tick_gives_all_long_spans_in_front_back() {
    let w = watched(512);
    let objects: Vec<_> = (0..100).map(|i| w.large((40 + i) * 8192)).collect();
    w.give_all(objects);
    let (kept, _) = (w.heap.large.pages(), spans());
    assert!(kept > Pages(200), "{kept:?}");
    let _ = w.heap.tick();
    let freed: u32 =
        spans().iter().map(|event| if let SpanEvent::Free { range, .. } = event { range.len.0 } else { 0 }).sum();
    assert_eq!((freed, w.heap.large.pages(), w.heap.in_use()), (kept.0, Pages(0), Pages(0)));
}

#[test]
fn a_slow_first_touch_of_a_hugepage_stops_requests_for_more() {
    let w = world(64, 0);
    w.floor.sim().set_thp(ThpMode::Madvise);
    w.heap.pages().set_backing(HugeBacking::ALWAYS);
    let class = size_class::class_of(256);
    let hugepages = |n: usize| _ = w.take_all(class, n * 8192);
    let paused = || w.heap.pages.lock().is_paused();
    hugepages(2);
    assert!(!paused());
    w.system.set_touch_ns(SLOW_NS - 1);
    hugepages(2);
    assert!(!paused(), "it takes that long where the host has to find the memory");
    w.system.set_touch_ns(SLOW_NS);
    w.take_all(size_class::class_of(64), 1);
    assert!(!paused(), "a span within a hugepage is no first touch");
    hugepages(2);
    assert!(paused());
    w.system.set_touch_ns(0);
    w.clock.advance(2_000_000_000);
    w.heap.tick();
    assert!(!paused());
}
