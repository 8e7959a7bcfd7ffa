use super::*;

#[test]
fn a_number_is_split_into_its_two_primes() {
    for (p, q) in [(998_244_353, 2_971_215_073), (1_000_000_000_039, 67_280_421_310_721)] {
        let (p, q): (Num, Num) = (u64::into(p), u64::into(q));
        let n = &p * &q;
        let end = Search::new(&n).run(&mut u64::MAX.clone());
        assert!(end == End::Factor(p) || end == End::Factor(q), "{end:?}");
    }
}

#[test]
fn a_search_stops_when_its_steps_are_done() {
    let n = Num::from(1_000_000_000_039u64) * 67_280_421_310_721u64;
    let mut allowed = 100;
    assert_eq!((Search::new(&n).run(&mut allowed), allowed), (End::Steps, 0));
}

#[test]
fn the_base_holds_the_primes_modulo_which_the_number_is_a_square() {
    // 1001 is 2 modulo 3 (no square), 1 modulo 5 (a square), 0 modulo 7.
    let base = base(&Num::from(1001u32));
    assert_eq!((base[..4].to_vec(), base.len()), (vec![1, 2, 5, 7], BASE));
}
