use super::*;

#[test]
fn sizes_lie_between_the_two_bounds() {
    let mut rng = Rng::new(1, 1);
    let sizes: Vec<usize> = (0..1000).map(|_| size(&mut rng)).collect();
    assert!(sizes.iter().all(|size| (SMALLEST as usize..=LARGEST as usize).contains(size)));
    assert!(sizes.iter().any(|size| *size < 2 << 20) && sizes.iter().any(|size| *size > 24 << 20));
}
