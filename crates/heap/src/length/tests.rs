use super::*;

#[test]
fn a_length_is_gone_once_its_object_is_freed_and_until_a_span_begins_there() {
    let length = SpanLength::default();
    assert_eq!((length.pages(), length.gone()), (Pages(0), None));
    for pages in [Pages(1), Pages(500), Pages(GONE - 1)] {
        length.set_pages(pages);
        assert_eq!((length.pages(), length.gone()), (pages, None));
        length.set_gone(pages);
        assert_eq!((length.pages(), length.gone()), (Pages(0), Some(pages)));
    }
}
