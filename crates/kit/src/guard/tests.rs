use super::*;
use std::collections::HashSet;
use std::vec::Vec;

fn buffer(area: Area, size: usize) -> Buffer {
    Buffer { address: area.address, size, under: area.under, kind: area.kind, ..Default::default() }
}

#[test]
fn a_buffer_ends_at_its_pages_end_as_far_as_its_alignment_lets_it() {
    let (guards, page) = (Guards::new(), process::page_size());
    for (size, align) in [(1, 1), (24, 16), (100, 64), (4096, 16), (4097, 1), (100_000, 4096), (0, 16)] {
        let area = guards.alloc(size, align, Whose::Option).unwrap().area;
        let b = buffer(area, size);
        assert!(area.address.is_multiple_of(align) && area.address >= area.under, "{size} at {align}");
        let behind = end_of(&b) - (area.address + size);
        assert!(behind < align.max(2), "{behind} bytes behind {size} at {align}");
        assert_eq!(matches!(area.kind, Kind::Slot), size <= page);
        // SAFETY: ours, and open.
        unsafe { (area.address as *mut u8).write_bytes(1, size) };
        match area.kind {
            Kind::Slot => guards.free_slot(&b, true),
            _ => guards.free_mapped(&b),
        }
    }
    assert!(guards.alloc(16, 2 * page, Whose::Option).is_none(), "no such alignment");
    assert!(guards.alloc(usize::MAX - 5000, 16, Whose::Option).is_none());
}

#[test]
fn slots_serve_again_in_the_order_in_which_they_were_freed() {
    let guards = Guards::new();
    let areas: Vec<_> = (0..MOST_OUT).map(|_| guards.alloc(16, 16, Whose::Sample).unwrap().area).collect();
    assert_eq!(areas.iter().map(|a| a.under).collect::<HashSet<_>>().len(), MOST_OUT);
    assert!(guards.alloc(16, 16, Whose::Sample).is_none(), "samples have some slots only");
    for (i, area) in areas.iter().enumerate() {
        let b = buffer(*area, 16);
        let is_open = i % 2 == 0 || !guards.close(&b);
        guards.free_slot(&b, is_open);
    }
    for (i, area) in areas.iter().enumerate() {
        let taken = guards.alloc(16, 16, Whose::Sample).unwrap();
        assert_eq!((taken.area.under, taken.before), (area.under, Some(area.address)));
        assert_eq!(taken.soon, areas.get(i + 1).map(|a| a.address));
        // SAFETY: ours, opened again.
        unsafe { (taken.area.address as *mut u8).write_bytes(1, 16) };
    }
    let taken = guards.alloc(16, 16, Whose::Option).unwrap();
    assert_eq!(taken.before, None, "with the option there are more slots");
}

#[test]
fn the_ring_grows_with_the_slots_while_some_wait_across_its_end() {
    let guards = Guards::new();
    let alloc = |whose| guards.alloc(16, 16, whose).unwrap();
    let areas: Vec<_> = (0..PACED_OUT).map(|_| alloc(Whose::Paced).area).collect();
    assert!(guards.alloc(16, 16, Whose::Paced).is_none(), "samples by default have the fewest");
    areas.iter().for_each(|area| guards.free_slot(&buffer(*area, 16), true));
    for area in &areas[..PACED_OUT * 2 / 3] {
        assert_eq!(alloc(Whose::Paced).before, Some(area.address));
        guards.free_slot(&buffer(*area, 16), true);
    }
    let more: Vec<_> = (0..PACED_OUT).map(|_| alloc(Whose::Option)).collect();
    assert!(more.iter().all(|taken| taken.before.is_none()), "other slots");
    more.iter().for_each(|taken| guards.free_slot(&buffer(taken.area, 16), true));
    let (second, first) = areas.split_at(PACED_OUT * 2 / 3);
    let wait = first.iter().chain(second).copied().chain(more.iter().map(|taken| taken.area));
    for area in wait {
        assert_eq!(alloc(Whose::Paced).before, Some(area.address), "in the order in which they were freed");
    }
}

#[test]
fn pages_that_are_closed_by_marks_open_again() {
    let guards = Guards::new();
    let [kept, freed, late] = core::array::from_fn(|_| guards.alloc(100, 16, Whose::Option).unwrap().area);
    guards.free_slot(&buffer(freed, 100), !guards.close(&buffer(freed, 100)));
    guards.lock_for_fork(false);
    // SAFETY: taken just now.
    unsafe { guards.release_after_fork() };
    guards.free_slot(&buffer(late, 100), !guards.close(&buffer(late, 100)));
    for _ in 0..100 {
        let area = guards.alloc(100, 16, Whose::Option).unwrap().area;
        assert_ne!(area.under, kept.under);
        // SAFETY: both are ours and open.
        unsafe {
            (area.address as *mut u8).write_bytes(2, 100);
            (kept.address as *mut u8).write_bytes(1, 100);
        }
        guards.free_slot(&buffer(area, 100), !guards.close(&buffer(area, 100)));
    }
    let mapped = guards.alloc(10_000, 16, Whose::Option).unwrap().area;
    // SAFETY: ours and open.
    unsafe { (mapped.address as *mut u8).write_bytes(1, 10_000) };
    guards.free_mapped(&buffer(mapped, 10_000));
    assert!(guards.range().0 != 0);
}

#[test]
fn samples_by_default_of_more_than_a_page_are_few_at_a_time() {
    let (guards, size) = (Guards::new(), 3 * process::page_size());
    let areas: Vec<_> = (0..PACED_MAPPED).map(|_| guards.alloc(size, 16, Whose::Paced).unwrap().area).collect();
    assert!(guards.alloc(size, 16, Whose::Paced).is_none());
    let small = guards.alloc(16, 16, Whose::Paced).unwrap().area;
    let places: HashSet<_> = areas.iter().chain([&small]).map(|a| guards.place_of(a.under, a.kind).unwrap()).collect();
    assert!(places.len() == PACED_MAPPED + 1 && places.iter().all(|place| *place < crate::sample::PLACES));
    let more = guards.alloc(size, 16, Whose::Sample).unwrap().area;
    assert_eq!(guards.place_of(more.under, more.kind), None);
    [&areas[..], &[more]].concat().into_iter().for_each(|area| guards.free_mapped(&buffer(area, size)));
    assert!(guards.alloc(size, 16, Whose::Paced).is_some());
}
