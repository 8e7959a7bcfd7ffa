use super::*;

#[test]
fn what_a_heap_of_its_own_left_is_no_slab_of_two_sizes_of_any_size() {
    let record = SlabRecord::default();
    for (heap, class) in [(0, 1), (1, 15), (7, 16), (u16::MAX, u8::MAX)] {
        record.set_heap(heap, class);
        assert_eq!((record.heap(), record.morph_entry()), ((heap, class), 0));
        for object in (UNIT as u32..=256 << 10).step_by(UNIT) {
            assert!(!record.is_morph_to(object), "heap {heap}, class {class}, objects of {object}");
            assert_eq!(record.sizes(object), (false, false));
        }
    }
}
