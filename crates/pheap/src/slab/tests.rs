use super::*;

#[test]
fn bits_of_no_object_are_the_unused() {
    for number in 0..CLASSES {
        for stripes in 1..=8 {
            let class = Class::new(number, stripes);
            let mut bits = unused_bits(&class);
            for index in 0..class.objects {
                let mid = class.mid_of(index);
                assert_eq!(bits[(mid / 64) as usize] >> (mid % 64) & 1, 0);
                bits[(mid / 64) as usize] |= 1 << (mid % 64);
            }
            assert!(bits.iter().all(|word| *word == u64::MAX));
        }
    }
}

#[test]
fn a_header_is_read_as_it_was_written() {
    for old in [None, Some((3, 96))] {
        let header = Header { class: 40, stripes: 6, old };
        assert_eq!(Header::of(header.word()), Some(header));
        assert_eq!(Header::of(header.word() ^ 1), None);
    }
}
