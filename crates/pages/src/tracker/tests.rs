use super::*;
use craton_base::Huge64K;

fn empty() -> Tracker<Huge64K> {
    let mut t = Tracker::default();
    t.reset();
    t
}

#[test]
fn spans_are_counted_and_the_longest_free_range_is_kept() {
    let mut t = empty();
    assert_eq!((t.occupy(0, 2), t.occupy(4, 1)), (true, true));
    assert_eq!((t.used_pages(), t.longest_free(), t.allocs()), (3, 3, 2));
    assert_eq!(
        (t.best_fit(2, 1), t.best_fit(3, 1), t.best_fit(2, 4), t.best_fit(4, 1)),
        (Some(2), Some(5), None, None)
    );
    t.extend(2, 1);
    assert_eq!((t.end_of_span(0), t.allocs()), (3, 2));
    t.truncate(1, 2);
    t.vacate(4, 1);
    assert_eq!((t.used_pages(), t.longest_free(), t.allocs()), (1, 7, 1));
}

#[test]
fn p5_a_page_reads_as_zeros_until_it_was_handed_out() {
    let mut t = empty();
    assert!(t.occupy(0, 4));
    t.vacate(0, 4);
    assert!(!t.occupy(3, 2), "one page of it was used");
    t.vacate(3, 2);
    assert_eq!((t.unback(3, 5), t.backed_pages()), (2, 3));
    assert!(t.occupy(3, 2) && t.is_touched_right());
}

#[test]
fn a_hugepage_that_came_as_a_whole_has_memory_everywhere_until_it_is_broken() {
    let mut t = empty();
    t.intact = true;
    t.occupy(0, 1);
    assert_eq!((t.backed_pages(), t.free_backed().len(), t.has_memory(1, 7)), (8, 7, true));
    assert_eq!(t.unback(4, 4), 4);
    assert_eq!((t.backed_pages(), t.intact, t.unbacked(), t.backed_pages()), (4, false, 4, 0));
}

#[test]
fn of_a_hugepage_that_came_in_parts_only_the_sum_may_be_known() {
    for (resident, backed) in [(1, 2), (2, 2), (3, 8)] {
        let mut t = empty();
        t.intact = true;
        t.occupy(0, 2);
        t.came_in_parts(Pages(resident).bytes());
        assert_eq!(t.backed_pages(), backed, "{resident} pages are resident");
    }
}

#[test]
fn spans_are_cut_anew() {
    let mut t = empty();
    t.carry(0, 2);
    t.occupy(2, 2);
    t.occupy(4, 4);
    assert_eq!((t.continues(), t.end_of_span(0), t.allocs()), (true, 2, 3));
    t.recut(2, 6, 6);
    assert_eq!((t.end_of_span(0), t.end_of_span(2), t.allocs()), (2, 8, 2));
    t.recut(2, 6, 2);
    assert_eq!((t.end_of_span(2), t.end_of_span(4), t.end_of_span(6), t.allocs()), (4, 6, 8, 4));
}
