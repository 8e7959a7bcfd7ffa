use super::*;

fn used(size: usize, layout: Layout) -> f64 {
    let of = objects(size, fill(SIMULATED[0]), layout).expect("room");
    spread(&of.at.iter().map(|at| *at as usize).collect::<Vec<_>>(), SIMULATED[0]).0
}

#[test]
fn colours_spread_objects_of_a_power_of_two_over_the_sets() {
    for size in [256, 512] {
        let [coloured, plain, powers] = WAYS.map(|(_, layout)| used(size, layout));
        assert!(coloured > 0.9 && plain < 0.5 && powers <= plain, "{size}: {coloured}, {plain}, {powers}");
    }
    assert_eq!(used(512, Layout::Powers), 1.0 / 8.0);
}

#[test]
fn lines_beyond_the_ways_have_no_room() {
    let cache = Cache { level: 1, bytes: 4096, ways: 2 };
    let far: Vec<usize> = (0..6).map(|i| i * 2048).collect();
    let (sets_used, imbalance, without_room) = spread(&far, cache);
    assert_eq!((sets_used, without_room), (1.0 / 32.0, 4.0 / 6.0));
    assert!((imbalance - 32.0).abs() < 1e-9);
}
