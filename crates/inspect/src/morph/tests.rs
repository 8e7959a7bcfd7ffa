use super::*;

#[test]
fn each_bit_is_a_place_or_an_old_object_of_its_page() {
    let bits = |set: &[u64]| {
        let mut words = vec![0; 16];
        set.iter().for_each(|bit| words[*bit as usize / 64] |= 1 << (bit % 64));
        words
    };
    let morph = Morph {
        bytes: 16384,
        to: 3,
        count: 2,
        unit: 16,
        page: 8192,
        live: bits(&[2, 516]),
        starts: bits(&[0, 7, 700]),
        old: vec![(32, 2), (64, 4)],
        ..Morph::default()
    };
    assert_eq!(morph.places().collect::<Vec<_>>(), [0, 112, 11200]);
    assert_eq!(morph.old_objects().collect::<Vec<_>>(), [(32, 32, 2), (8192 + 64, 64, 4)]);
}
