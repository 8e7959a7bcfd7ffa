//! When a class looks for a slab of another class, and whom it asks.

use super::*;
use std::boxed::Box;
use std::vec::Vec;

fn search(pages: u32) -> Box<Search> {
    let search = Box::new(Search::NEW);
    search.note_in_use(Pages(pages));
    search
}

/// Requests that go without a look until the next one.
fn pause(search: &Search, class: usize) -> usize {
    (0..100).take_while(|_| !search.is_due(class)).count()
}

#[test]
fn a_small_heap_never_looks() {
    let search = search(LEAST_PAGES - 1);
    assert!((0..100).all(|_| !search.is_due(1)));
    search.note_in_use(Pages(LEAST_PAGES));
    assert!(search.is_due(1));
}

#[test]
fn pauses_double_while_nothing_is_found_and_end_with_a_find() {
    let search = search(LEAST_PAGES);
    assert_eq!(pause(&search, 1), 0);
    for expected in [1, 3, 7, 15, 16, 16] {
        search.note(1, false);
        assert_eq!(pause(&search, 1), expected);
    }
    assert_eq!(pause(&search, 2), 0, "each class has its own luck");
    search.note(1, true);
    assert_eq!(pause(&search, 1), 0);
    search.note(1, false);
    assert_eq!(pause(&search, 1), 1, "it begins anew");
}

#[test]
fn a_class_rests_when_others_have_taken_slabs_for_a_part_of_the_heap() {
    let search = search(10 * REST_PART);
    assert!(!search.is_at_rest(3), "nobody has taken any yet");
    (0..9).for_each(|_| search.note_taken(5));
    assert!(!search.is_at_rest(3));
    search.note_taken(5);
    assert!(search.is_at_rest(3) && !search.is_at_rest(5));
    search.note_taken(3);
    assert!(!search.is_at_rest(3), "it takes some itself");
    (0..10).for_each(|_| search.note_taken(7));
    assert!(search.is_at_rest(3) && search.is_at_rest(5) && !search.is_at_rest(7));
}

#[test]
fn classes_of_one_length_form_one_ring_and_others_none() {
    for class in 1..=CLASSES {
        let g = size_class::geometry(class);
        let next = |class: usize| usize::from(NEXT[class]);
        let ring: Vec<usize> = core::iter::successors(Some(next(class)), |at| Some(next(*at)))
            .take(CLASSES)
            .take_while(|at| *at != class)
            .collect();
        if g.is_single() || !g.pages.0.is_power_of_two() {
            assert!(ring.is_empty() && next(class) == class, "class {class} has no ring");
            continue;
        }
        let others = (1..=CLASSES).filter(|other| *other != class && has_span(*other, g.pages)).count();
        assert!(ring.iter().all(|other| has_span(*other, g.pages)), "class {class}");
        assert_eq!(ring.len(), others, "the ring of class {class} misses some");
        assert!(has_span(FIRST[g.pages.0.trailing_zeros() as usize].into(), g.pages));
    }
}

#[test]
fn a_class_grows_beyond_its_peak_only_and_peaks_are_forgotten() {
    let search = Search::NEW;
    assert!(search.is_growth(3), "its first slab");
    (0..128).for_each(|_| search.grew(3));
    assert!(search.is_growth(3));
    (0..64).for_each(|_| search.shrank(3));
    assert!(!search.is_growth(3) && search.is_growth(4));
    search.grew(3);
    assert!(!search.is_growth(3), "below its peak");
    let seconds = (1..).find(|_| {
        search.tick();
        search.is_growth(3)
    });
    assert!((30..90).contains(&seconds.unwrap()), "{seconds:?}");
}
