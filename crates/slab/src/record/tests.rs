use super::*;

#[test]
fn what_a_tag_left_is_no_slab_of_two_sizes_of_any_size() {
    let record = SlabRecord::default();
    for tag in [1 << 16, 15 << 16 | 1, 16 << 16 | 7, (1 << 24) - 1, (1 << 31) - 1] {
        record.set_tag(tag);
        assert_eq!((record.tag(), record.morph_entry()), (tag, 0));
        for object in (UNIT as u32..=256 << 10).step_by(UNIT) {
            assert!(!record.is_morph_to(object), "tag {tag:#x}, objects of {object}");
            assert_eq!(record.sizes(object), (false, false));
        }
    }
}
