use super::*;

#[test]
fn four_fifths_of_the_steps_go_to_a_fifth_of_the_slots() {
    let mut rng = Rng::new(1, 1);
    let drawn: Vec<u32> = (0..100_000).map(|_| slot(&mut rng, 1_000_000)).collect();
    assert!(drawn.iter().all(|slot| *slot < 1_000_000));
    let within = |bound| drawn.iter().filter(|slot| **slot < bound).count();
    assert!((79_000..81_000).contains(&within(200_000)), "{}", within(200_000));
    assert!((63_000..65_000).contains(&within(40_000)), "{}", within(40_000));
}

#[test]
fn half_of_the_sizes_lie_in_each_smaller_power_of_two() {
    let mut rng = Rng::new(1, 1);
    let mut sizes: Vec<usize> = (0..100_000).map(|_| size(&mut rng)).collect();
    sizes.sort_unstable();
    assert_eq!((sizes[0], sizes[99_999]), (9, 1024));
    assert!(sizes[49_000] <= 16 && sizes[51_000] > 16 && sizes[74_000] <= 32 && sizes[76_000] > 32);
}
