use super::*;
use std::boxed::Box;

fn search(pages: u32) -> Box<Search> {
    let search = Box::new(Search::NEW);
    search.note_in_use(Pages(pages));
    search
}

/// Requests until the next search.
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
fn a_class_rests_when_others_have_taken_pages_for_a_part_of_the_heap() {
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
fn classes_give_that_have_slabs_of_several_objects_and_rest() {
    let search = search(10 * REST_PART);
    let single = size_class::class_of(16 << 10);
    assert!(size_class::geometry(single).is_single());
    [3, 4, single].into_iter().for_each(|class| search.grew(class));
    assert!(!search.gives(3), "none has taken any slab since");
    (0..10).for_each(|_| search.note_taken(4));
    assert!(search.gives(3) && !search.gives(4) && !search.gives(single) && !search.gives(7));
    search.shrank(3);
    assert!(!search.gives(3));
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
