use super::*;

#[test]
fn numbers_come_as_often_as_their_weights_say() {
    let weights = [1.0, 0.0, 5.0, 0.5, 3.5];
    let alias = Alias::new(weights.iter().copied());
    let mut rng = Rng::new(1, 0);
    let mut counts = [0u32; 5];
    (0..100_000).for_each(|_| counts[alias.draw(&mut rng)] += 1);
    for (weight, count) in weights.iter().zip(counts) {
        let expected = weight * 10_000.0;
        assert!((f64::from(count) - expected).abs() <= 5.0 * expected.sqrt(), "{count} times for weight {weight}");
    }
}
