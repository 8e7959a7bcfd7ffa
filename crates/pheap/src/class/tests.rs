use super::*;

#[test]
fn sizes_grow_by_an_eighth() {
    assert_eq!(SIZES[CLASSES - 1], 16_128);
    for pair in SIZES.windows(2) {
        assert!(pair[0] < pair[1] && pair[1] % 16 == 0);
        let fine = pair[1] <= 256 || pair[1] * 8 <= pair[0] * 9 + 8 * 64;
        assert!(fine || SLAB_BYTES / pair[0] - SLAB_BYTES / pair[1] <= 1, "{pair:?}");
    }
    for size in 1..=SMALL_MOST {
        let class = class_of(size);
        assert!(u64::from(SIZES[class]) >= size && (class == 0 || u64::from(SIZES[class - 1]) < size));
    }
}

#[test]
fn bits_of_neighbours_lie_in_different_stripes() {
    for number in 0..CLASSES {
        for stripes in 1..=8 {
            let class = Class::new(number, stripes);
            let mut seen = std::collections::BTreeSet::new();
            for index in 0..class.objects {
                let mid = class.mid_of(index);
                assert!(mid < class.stripes * STRIPE_BITS && seen.insert(mid));
                assert_eq!(mid / STRIPE_BITS, index % class.stripes);
                assert_eq!(class.index_of(mid), index);
                assert_eq!(class.index_at(class.offset_of(index)), Some(index));
                assert_eq!(class.index_at(class.offset_of(index) + 8), None);
                assert_eq!(class.index_within(class.offset_of(index + 1) - 1), Some(index));
            }
            assert_eq!(class.index_at(class.offset_of(class.objects)), None);
            assert_eq!(class.index_at(8), None);
        }
    }
}
