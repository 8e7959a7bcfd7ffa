use super::*;
extern crate std;

fn all_sizes() -> impl Iterator<Item = usize> {
    (1..=2048)
        .chain((2048..=70_000).step_by(29))
        .chain((70_000..=ObjectLayout::MAX_OBJECT).step_by(4099))
        .chain((3..=20).map(|n| 1 << n))
}

const PAGES: [usize; 4] = [1 << 10, 2 << 10, 4 << 10, 8 << 10];

fn all_layouts(align: usize) -> impl Iterator<Item = ObjectLayout> {
    PAGES.into_iter().flat_map(move |page| {
        all_sizes().flat_map(move |size| {
            [false, true].map(|constructed| ObjectLayout::of_pages(size, align, constructed, page).unwrap())
        })
    })
}

fn layout(size: usize, align: usize, constructed: bool) -> ObjectLayout {
    ObjectLayout::of(size, align, constructed).unwrap()
}

#[test]
fn no_slab_wastes_more_than_an_eighth() {
    for layout in all_layouts(0) {
        let record = if layout.is_apart() { record_bytes(layout.capacity(), layout.constructed) } else { 0 };
        assert!((layout.waste() + record) * 8 <= layout.bytes(), "{layout:?}");
        let is_short = layout.bytes() == layout.page_bytes() || layout.capacity == 1;
        let most = if is_short { layout.bytes() } else { 33 * layout.stride() };
        assert!(layout.bytes() <= most && layout.bytes().is_multiple_of(layout.page_bytes()), "{layout:?}");
    }
}

#[test]
fn objects_and_the_record_fit_at_each_colour() {
    for align in [0, 16, 64, 4096, 32 << 10] {
        for layout in all_layouts(align) {
            let last = (layout.colours - 1) as usize * layout.colour_step as usize + layout.extent;
            let record = record_bytes(layout.capacity(), layout.constructed);
            if layout.is_apart() {
                assert!(last <= layout.bytes() && layout.capacity <= 64, "{layout:?}");
            } else {
                let at = layout.record_at as usize;
                assert!(last <= at && at + record == layout.bytes() && at.is_multiple_of(WORD), "{layout:?}");
            }
            assert!(layout.capacity > 0 && layout.stride.is_multiple_of(layout.align) && layout.stride >= layout.size);
            assert!(layout.colour_step.is_multiple_of(layout.align));
        }
    }
}

#[test]
fn colours_step_by_the_alignment_where_no_object_meets_more_lines_for_it() {
    for (size, align, step) in
        [(200, 0, 8), (8, 0, 8), (24, 0, 8), (48, 16, 16), (32, 0, 32), (96, 0, 32), (128, 0, 64)]
    {
        let layout = layout(size, align, false);
        assert_eq!(layout.colour_step, step, "{size} at {align}");
        assert!(layout.colours == 1 || layout.colours * step <= layout.waste() as u32 + step);
    }
    let lines = |layout: &ObjectLayout, colour: usize| {
        let across = |i: usize| (colour + i * layout.stride()) % 64 + layout.stride().min(64) > 64;
        (0..layout.capacity()).filter(|i| across(*i)).count()
    };
    for layout in all_layouts(0).filter(|layout| layout.stride().is_power_of_two() || layout.stride() % 64 == 0) {
        for colour in 0..layout.colours.min(20) {
            assert_eq!(lines(&layout, (colour * layout.colour_step) as usize), 0, "{layout:?}");
        }
    }
}

#[test]
fn small_objects_lie_on_a_page_with_its_record_and_lose_nothing_for_their_state() {
    for (size, align, stride) in [(1, 0, 8), (24, 0, 24), (64, 64, 64), (72, 16, 80), (100, 0, 104), (512, 0, 512)] {
        for constructed in [false, true] {
            let layout = layout(size, align, constructed);
            assert_eq!(layout.stride, stride, "{layout:?}");
            assert!(!layout.is_apart() && layout.bytes() == layout.page_bytes());
        }
    }
}

#[test]
fn large_objects_of_a_power_of_two_have_records_apart_and_others_where_the_tail_has_room() {
    for size in [1024, 2048, 4096, 8192, 1 << 20] {
        let layout = layout(size, 0, true);
        assert!(layout.is_apart() && layout.waste() == 0, "{layout:?}");
    }
    let layout = layout(1200, 0, true);
    assert!(!layout.is_apart() && layout.capacity() >= 6, "{layout:?}");
}

#[test]
fn the_reciprocal_divides_every_offset() {
    for layout in all_layouts(0) {
        let stride = layout.stride();
        for i in 0..layout.capacity() {
            for offset in [0, 1, stride / 2, stride - 1] {
                assert_eq!(layout.index_of(i * stride + offset), i, "{layout:?}");
            }
        }
    }
}

#[test]
fn bad_sizes_and_alignments_are_refused_with_what_was_wrong() {
    let too_large = ObjectLayout::MAX_OBJECT + 1;
    for (size, align, error) in [
        (0, 0, BadLayout::Zero),
        (too_large, 0, BadLayout::TooLarge { size: too_large }),
        (usize::MAX, 0, BadLayout::TooLarge { size: usize::MAX }),
        (8, 3, BadLayout::Alignment { align: 3 }),
        (8, 1 << 21, BadLayout::Alignment { align: 1 << 21 }),
        (8, usize::MAX, BadLayout::Alignment { align: usize::MAX }),
    ] {
        assert_eq!(ObjectLayout::of(size, align, true), Err(error));
        assert!(!std::format!("{error}").is_empty());
    }
    for bytes in [0, 512, 3000, 16 << 10, usize::MAX] {
        let error = BadLayout::Page { bytes };
        assert_eq!(ObjectLayout::of_pages(8, 0, true, bytes), Err(error));
        assert!(std::format!("{error}").contains("a power of two from 1024 to 8192"));
    }
}

#[test]
fn medium_powers_of_two_have_the_most_colours() {
    let colours = |size| layout(size, 0, false).colours();
    assert!(colours(512) >= 7 && colours(256) >= 3, "{} {}", colours(512), colours(256));
}
