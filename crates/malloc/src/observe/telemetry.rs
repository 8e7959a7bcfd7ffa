//! The page heap's numbers in the segment.
//!
//! **From.** TEMERAIRE §4: a number for each component of Figure 7; §5: hugepage coverage.
//!
//! **Threads.** Numbers of one step agree; the walk over hugepages is another step. A signal
//! handler may interrupt a holder of the page heap's lock: the last numbers stay.

use crate::observe::segment;
use crate::statics::{HEAP, SEGMENT, SHARED};
use crate::thread::nested;
use core::sync::atomic::{AtomicU64, Ordering::Relaxed};
use craton_base::{HugePages, PAGE_SHIFT, PageId, Pages};
use craton_heap::size_class::{CLASSES, geometry};
use craton_os::thp;
use craton_pages::Component;

/// 8 GiB: at most 40 us a second.
const WALKED_AT_TICKS: HugePages = HugePages(4096);

pub(crate) fn collect() {
    if !nested::is_nested() {
        nested::within(|| {
            sums();
            walk();
        });
    }
}

/// Slow with many small pages.
pub(crate) fn read_page_tables() {
    let granted = HEAP.granted().bytes().0;
    let mapped = if granted > 0 { thp::mapped_bytes(HEAP.address(PageId(0)) as usize, granted) } else { None };
    let (resident, huge) = mapped.unwrap_or_default();
    SEGMENT.resident_bytes.store(resident as u64, Relaxed);
    SEGMENT.resident_huge_bytes.store(huge as u64, Relaxed);
}

pub(crate) fn released(pages: u64) {
    segment::add(&SEGMENT.released_background_bytes, pages << PAGE_SHIFT);
}

pub(crate) fn ticked(pages: u64) {
    released(pages);
    sums();
    if HEAP.granted() <= WALKED_AT_TICKS.pages() {
        walk();
    }
    classes();
}

/// The heap has grown. Shares the page first in a fork's child.
#[cold]
pub(crate) fn publish() {
    if SHARED.is_shared_or_begins(&SEGMENT) {
        classes();
    }
}

fn classes() {
    HEAP.report_counts();
    for class in 1..=CLASSES {
        let (s, g) = (HEAP.class_stats(class), geometry(class));
        SEGMENT.rest.publish(class, g.object, g.pages.bytes().0 as u32, s.slabs, s.objects_out);
    }
    SHARED.copied(SEGMENT.heap_in_use_bytes.load(Relaxed));
}

pub(crate) fn relieved(pages: u64) {
    segment::add(&SEGMENT.released_limit_bytes, pages << PAGE_SHIFT);
}

fn set(number: &AtomicU64, value: u64) {
    number.store(value, Relaxed);
}

fn set_pages(number: &AtomicU64, pages: Pages) {
    set(number, pages.bytes().0 as u64);
}

fn sums() {
    let (figures, parts) = HEAP.components();
    let s = &SEGMENT;
    let filler = [
        (&s.filler_dense_used_bytes, &s.filler_dense_free_bytes, parts.dense),
        (&s.filler_sparse_used_bytes, &s.filler_sparse_free_bytes, parts.sparse),
    ];
    for (in_spans, between, Component { used, free }) in filler {
        set_pages(in_spans, used);
        set_pages(between, free);
    }
    set_pages(&s.filler_slack_bytes, parts.slack);
    set_pages(&s.huge_cache_bytes, parts.cached);
    set_pages(&s.huge_cache_limit_bytes, figures.cache_limit.pages());
    set_pages(&s.region_free_bytes, parts.region_free);
    set_pages(&s.granted_bytes, figures.granted.pages());
    set(&s.guarded_hugepages, figures.guarded.0.into());
    set(&s.released_bytes, figures.released_total << PAGE_SHIFT);
    let done = figures.collapses;
    set(&s.collapses, done.collapsed);
    set(&s.collapses_no_memory, done.no_memory);
    set(&s.collapses_busy, done.busy);
    set(&s.collapses_failed, done.again + done.unsupported);
    let front = HEAP.in_front();
    set_pages(&s.complete_slab_bytes, front.complete_slabs);
    set_pages(&s.front_span_bytes, front.spans);
    set_pages(&s.front_large_bytes, front.large);
    set(&s.kept_mapping_bytes, front.mappings as u64);
}

fn walk() {
    let census = HEAP.census();
    let s = &SEGMENT;
    set_pages(&s.region_used_bytes, census.region_used);
    set_pages(&s.large_span_bytes, census.large.pages());
    set(&s.whole_hugepages, census.intact.0.into());
    set(&s.broken_hugepages, census.broken.0.into());
    set(&s.small_hugepages, census.left_small.0.into());
    let (whole, backed) = (census.intact.bytes().0 as u64, s.heap_backed_bytes.load(Relaxed));
    // The heap may have shrunk since the walk.
    set(&s.coverage_percent, (100 * whole).checked_div(backed).unwrap_or(0).min(100));
}

#[cfg(all(test, not(loom)))]
mod tests;
