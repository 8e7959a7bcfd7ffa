//! The process's implementation of [`Hooks`]; nothing here allocates from the heap.

use crate::govern;
use crate::govern::background::Chore;
use crate::here::Here;
use crate::observe::report;
use crate::observe::segment;
use crate::sampling;
use crate::statics::{BACKGROUND, HEAP, KIT, PROFILE, SEGMENT, SHARED, TRACE};
use crate::thread::nested;
use core::sync::atomic::Ordering::Relaxed;
use craton_base::{PageRange, Pages};
use craton_heap::hooks::{Countdown, Damage, Ended, Event, Hooks, SpanEvent, Usage};
use craton_os::probe;

/// Large allocations between two reads of the clock.
const LARGE_ALLOCS: u64 = 64;

impl Hooks for Here {
    #[inline(always)]
    fn span(event: SpanEvent) {
        TRACE.span(event);
        let place = |range: PageRange| (HEAP.address(range.first) as usize, range.len.bytes().0);
        match event {
            SpanEvent::Alloc { range, .. } => {
                let (at, bytes) = place(range);
                probe::span_alloc(at, bytes);
            }
            SpanEvent::Free { range, .. } => {
                let (at, bytes) = place(range);
                probe::span_free(at, bytes);
            }
            SpanEvent::Resize { .. } => {}
        }
    }

    #[inline(always)]
    fn usage(usage: Usage, releasable: impl FnOnce() -> Pages) {
        BACKGROUND.record_use(usage.backed, usage.in_use, releasable);
        SEGMENT.metadata_bytes.store(usage.metadata_bytes, Relaxed);
        let in_use_bytes = usage.in_use.bytes().0 as u64;
        SEGMENT.heap_in_use_bytes.store(in_use_bytes, Relaxed);
        if SHARED.wants_copy(in_use_bytes) {
            BACKGROUND.want(Chore::Publish);
        }
        SEGMENT.heap_backed_bytes.store(usage.backed_bytes, Relaxed);
    }

    #[inline(always)]
    fn event(event: Event) -> u64 {
        match event {
            Event::Refills { chains, objects } => {
                segment::add(&SEGMENT.objects_out, objects);
                return segment::add(&SEGMENT.refills, chains.into()) + u64::from(chains);
            }
            // Large objects from kept spans bypass the page heap and its periodic work.
            Event::LargeAllocs(objects) => {
                let before = segment::add(&SEGMENT.large_allocs, objects.into());
                let now = before + u64::from(objects);
                if before == 0 || before / LARGE_ALLOCS != now / LARGE_ALLOCS {
                    govern::record_time();
                }
                return now;
            }
            Event::SlabsReused => govern::record_time(),
            Event::HugeAlloc => _ = segment::add(&SEGMENT.huge_allocs, 1),
            Event::HugeBytes { more, less } => _ = segment::add(&SEGMENT.huge_bytes, more.wrapping_sub(less)),
            Event::LimitPassed => BACKGROUND.want(Chore::Limits),
            Event::Grows => BACKGROUND.want_refill(),
            Event::MappingKept | Event::DenseSmall => BACKGROUND.want_thread(),
            Event::CpuCacheMode(mode) => SEGMENT.cache_mode.store(mode, Relaxed),
            Event::CpuCaches(caches) => SEGMENT.processor_caches.store(caches, Relaxed),
        }
        0
    }

    #[inline(always)]
    fn bound(class: usize, want: u32) -> u32 {
        KIT.bound(class, want)
    }

    fn reused(class: usize, allocations: u32) -> bool {
        KIT.count_reuse(class, allocations)
    }

    #[cold]
    fn count_ended(class: usize, ended: Countdown, among: u32) -> Ended {
        sampling::count_ended(class, ended, among)
    }

    #[cold]
    fn forgone(class: usize, bytes: u64) {
        PROFILE.add_pending(class, bytes);
    }

    #[cold]
    fn handlers_allocate() -> bool {
        nested::was_said()
    }

    #[inline(always)]
    fn keeps_mappings() -> bool {
        BACKGROUND.life.is_running()
    }

    #[cold]
    fn corrupt(damage: Damage) -> ! {
        match damage {
            Damage::Object { object, misuse } => report::misuse("free", object, misuse),
            Damage::NotFree { class, at } => report::not_free(class, at),
            Damage::GivenTwice { class, objects } => report::given_twice(class, objects),
            Damage::Lost { class, objects } => report::lost(class, objects),
        }
    }
}
