use super::*;
use craton_pages::trace::{BLOCK_BYTES, BLOCK_EVENTS, Header, SLOT_BYTES, Seal, Slot, Sum};

fn file(events: &[Event]) -> Vec<u8> {
    let header = Header { bound: 1 << 40, region: Pages(1 << 30) }.encode();
    let mut bytes: Vec<u8> = header.iter().flat_map(|word| word.to_le_bytes()).collect();
    bytes.resize(BLOCK_BYTES, 0);
    let blocks: Vec<&[Event]> = events.chunks(BLOCK_EVENTS).collect();
    for (i, block) in blocks.iter().enumerate() {
        let mut sum = Sum::of_block(i as u64 + 1);
        let mut put = |slot: Slot| bytes.extend(slot.iter().flat_map(|word| word.to_le_bytes()));
        for event in *block {
            sum.add(event.encode());
            put(event.encode());
        }
        (block.len()..BLOCK_EVENTS).for_each(|_| put([0, 0]));
        put(Seal { events: block.len() as u8, last: i + 1 == blocks.len(), dropped: 0 }.encode(sum));
    }
    assert_eq!(bytes.len() % (BLOCK_BYTES / SLOT_BYTES), 0);
    bytes
}

fn event(time_us: u64, kind: Kind, first: u32, pages: u32) -> Event {
    let span = PageRange::new(PageId(first), Pages(pages));
    Event { time_us, kind, span, align: Pages(1), density: Density::Sparse }
}

fn played(events: &[Event], policy: &Policy) -> Result<Outcome, String> {
    replay(&Trace::read(&file(events)).expect("a good file"), policy)
}

/// Half is freed at once, the rest after `s` seconds.
fn drop_after(s: u64) -> Vec<Event> {
    let pages = 100 * 256;
    let mut events: Vec<Event> = (0..pages).map(|i| event(u64::from(i), Kind::Alloc, i, 1)).collect();
    events.extend((0..pages).step_by(2).map(|i| event(100_000, Kind::Free, i, 1)));
    events.extend((1..pages).step_by(2).map(|i| event(s * SECOND_US, Kind::Free, i, 1)));
    events.push(event(2 * s * SECOND_US, Kind::Alloc, 0, 1));
    events
}

#[test]
fn the_counts_are_those_of_the_trace() {
    let outcome = played(&drop_after(10), &Policy::default()).unwrap();
    assert_eq!((outcome.events, outcome.spans_at_end, outcome.moved), (51_201, 1, 0));
    assert_eq!(outcome.peak_demand_bytes, 100 << 21);
    assert_eq!(outcome.duration_s, 20.0);
    assert!(outcome.peak_backed_bytes >= outcome.peak_demand_bytes, "{outcome:?}");
    assert!(outcome.calls.reserve_calls > 0 && outcome.calls.advise_calls > 0, "{outcome:?}");
}

#[test]
fn frames_serve_what_the_filler_does_from_about_as_much_memory() {
    let frames = Policy { heap: HeapName::Frames, ..Policy::default() };
    let (theirs, ours) =
        (played(&drop_after(10), &Policy::default()).unwrap(), played(&drop_after(10), &frames).unwrap());
    assert_eq!((ours.events, ours.spans_at_end, ours.moved), (theirs.events, theirs.spans_at_end, theirs.moved));
    assert_eq!(ours.peak_demand_bytes, theirs.peak_demand_bytes);
    assert_eq!(ours.backed_at_end_bytes, theirs.backed_at_end_bytes);
    assert!(ours.peak_backed_bytes <= theirs.peak_backed_bytes + (1 << 21), "{ours:?}");
    // Every second page is free on both, and goes back in part.
    assert!(ours.released_bytes > 0 && ours.calls.unback_calls > 0, "{ours:?}");
}

#[test]
fn memory_goes_back_at_the_rate_and_ticks_come_in_quiet_times_too() {
    let held = played(&drop_after(600), &Policy { release_rate: 0, ..Policy::default() }).unwrap();
    let released = played(&drop_after(600), &Policy { release_rate: 1 << 30, ..Policy::default() }).unwrap();
    assert!(released.released_bytes > held.released_bytes, "{released:?}\n{held:?}");
    assert!(released.calls.unback_calls > 0);
}

#[test]
fn without_hugepages_there_is_no_coverage_and_only_what_was_used_is_backed() {
    let events: Vec<Event> = (0..25_600).map(|i| event(u64::from(i), Kind::Alloc, i, 1)).collect();
    let never = played(&events, &Policy { backing: HugeBacking::NEVER, ..Policy::default() }).unwrap();
    assert_eq!((never.hugepage_coverage, never.overhead), (Some(0.0), Some(0.0)));
    let always = played(&events, &Policy { backing: HugeBacking::ALWAYS, ..Policy::default() }).unwrap();
    assert_eq!(always.hugepage_coverage, Some(1.0));
}

#[test]
fn every_fit_plays_the_same_trace() {
    for fit in [FitName::LongestFreeFirst, FitName::FullestFirst, FitName::GlobalBestFit] {
        for regions in [false, true] {
            let outcome = played(&drop_after(3), &Policy { fit, regions, ..Policy::default() }).unwrap();
            assert_eq!((outcome.events, outcome.peak_demand_bytes), (51_201, 100 << 21), "{fit:?}");
        }
    }
}

#[test]
fn a_span_that_cannot_grow_in_place_is_moved() {
    let events = [
        event(0, Kind::Alloc, 0, 4),
        // Recorded with room behind the first span, which is taken here.
        event(1, Kind::Alloc, 600, 4),
        event(2, Kind::Resize, 0, 300),
        event(3, Kind::Resize, 0, 20),
        event(4, Kind::Free, 0, 20),
        event(5, Kind::Free, 600, 4),
    ];
    let outcome = played(&events, &Policy::default()).unwrap();
    assert_eq!((outcome.moved, outcome.spans_at_end), (1, 0));
    assert_eq!(outcome.peak_demand_bytes, 304 << PAGE_SHIFT);
}

#[test]
fn what_cannot_be_names_its_event() {
    let alloc = event(0, Kind::Alloc, 5, 2);
    for (second, text) in [
        (event(1, Kind::Free, 6, 1), "event 2: is about a span at page 6, where none is out"),
        (event(1, Kind::Free, 5, 3), "event 2: frees 3 pages at page 5, where 2 are out"),
        (event(1, Kind::Resize, 9, 3), "event 2: is about a span at page 9, where none is out"),
        (alloc, "event 2: takes a span at page 5, where one is out already"),
    ] {
        assert_eq!(played(&[alloc, second], &Policy::default()).unwrap_err(), text);
    }
    let far = event(1, Kind::Alloc, 1 << 29, 2);
    assert!(played(&[far], &Policy::default()).unwrap_err().contains("traces of up to 268435456 can be played"));
}

#[test]
fn an_empty_trace_has_an_outcome() {
    let mut bytes = file(&[event(0, Kind::Alloc, 0, 1)]);
    bytes[BLOCK_BYTES..].fill(0);
    let outcome = replay(&Trace::read(&bytes).unwrap(), &Policy::default()).unwrap();
    assert_eq!((outcome.events, outcome.overhead, outcome.hugepage_coverage), (0, None, None));
}
