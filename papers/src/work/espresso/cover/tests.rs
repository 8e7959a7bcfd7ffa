use super::super::tests::{has, points, random};
use super::*;

#[test]
fn the_complement_has_the_points_that_the_cover_has_not() {
    for seed in 0..20 {
        let space = Space::new(6, 3);
        let cover = random(&space, 12, seed);
        let complement = space.complement(&cover);
        for point in points(&space) {
            assert_ne!(has(&cover, &point), has(&complement, &point), "seed {seed}, {point:?}");
        }
    }
}

#[test]
fn a_cover_with_its_complement_is_a_tautology_and_less_is_none() {
    for seed in 0..20 {
        let space = Space::new(6, 2);
        let cover = random(&space, 8, seed);
        let mut all = space.complement(&cover);
        assert!(!space.is_tautology(&cover) && !space.is_tautology(&all), "seed {seed}");
        all.extend(cover);
        assert!(space.is_tautology(&all), "seed {seed}");
    }
    assert!(Space::new(4, 1).complement(&[]) == [Cube::full(4, 1)]);
}
