use super::*;

#[test]
fn a_length_is_gone_once_its_object_is_freed_and_until_a_span_begins_there() {
    let length = SpanLength::default();
    assert_eq!((length.pages(), length.gone()), (Pages(0), None));
    for pages in [Pages(1), Pages(500), Pages(GUARD - 1)] {
        length.set_pages(pages);
        assert_eq!((length.pages(), length.gone()), (pages, None));
        length.set_gone(pages);
        assert_eq!((length.pages(), length.gone()), (Pages(0), Some(pages)));
    }
}

#[test]
fn a_guard_page_stays_while_a_freed_span_is_kept_and_until_a_span_begins_there() {
    let length = SpanLength::default();
    length.set_pages(Pages(20));
    length.set_guarded(true);
    assert_eq!((length.pages(), length.is_guarded()), (Pages(20), true));
    length.set_gone(Pages(20));
    assert_eq!((length.pages(), length.gone(), length.is_guarded()), (Pages(0), Some(Pages(20)), true));
    length.set_guarded(false);
    assert_eq!((length.gone(), length.is_guarded()), (Some(Pages(20)), false));
    length.set_guarded(true);
    length.set_pages(Pages(3));
    assert!(!length.is_guarded());
}
