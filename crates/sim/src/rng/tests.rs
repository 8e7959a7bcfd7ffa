use super::*;

#[test]
fn a_seed_gives_the_published_sequence() {
    let mut rng = Rng::new(1234567);
    let want = [6457827717110365317, 3203168211198807973, 9817491932198370423, 4593380528125082431];
    assert_eq!(want.map(|_| rng.next_u64()), want);
}

#[test]
fn numbers_stay_in_their_ranges_and_reach_both_ends() {
    let mut rng = Rng::new(0);
    let mut seen = [0u32; 8];
    for _ in 0..4000 {
        let n = rng.in_range(10..18);
        seen[n as usize - 10] += 1;
        let size = rng.size(300);
        assert!((1..=300).contains(&size));
        assert_eq!(rng.size(1), 1);
        assert!([7, 9].contains(rng.pick(&[7, 9])));
    }
    assert!(seen.iter().all(|n| (350..650).contains(n)), "{seen:?}");
    assert!((0..64).any(|_| rng.one_in(4)) && (0..64).any(|_| !rng.one_in(4)) && rng.one_in(1));
}
