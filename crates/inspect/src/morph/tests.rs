use super::*;

#[test]
fn places_are_those_on_the_grid_where_a_part_has_one() {
    let bits = |set: &[u64]| {
        let mut words = vec![0; 8];
        set.iter().for_each(|bit| words[*bit as usize / 64] |= 1 << (bit % 64));
        words
    };
    let morph = Morph {
        slab: 0,
        bytes: 8192,
        to: 3,
        count: 2,
        new: 48,
        part_bytes: 4096,
        half: 128,
        parts: 512,
        live: bits(&[1, 129])[..4].to_vec(),
        starts: bits(&[0, 3, 7, 9]),
        old: [(32, 2), (64, 4)],
    };
    // Parts of 16 bytes: 48 and 144 are multiples of 48, 112 is not.
    assert_eq!(morph.places().collect::<Vec<_>>(), [0, 48, 112, 144]);
    assert_eq!(morph.old_objects().collect::<Vec<_>>(), [(32, 32, 2), (4096 + 64, 64, 4)]);
}
