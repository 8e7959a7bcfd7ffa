use super::*;

#[test]
fn primes_are_told_from_their_products() {
    for n in [41, 1_000_000_007, 999_999_999_989, 18_446_744_073_709_551_557] {
        assert!(is_prime(n), "{n}");
    }
    for n in [49, 561, 1_000_000_007 * 998_244_353, 3_215_031_751, 3_825_123_056_546_413_051] {
        assert!(!is_prime(n), "{n}");
    }
}

#[test]
fn primes_have_their_bits() {
    let mut rng = Rng::new(1, 1);
    assert!((0..20).all(|_| prime(&mut rng).leading_zeros() == 64 - PRIME_BITS));
}
