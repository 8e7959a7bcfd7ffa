extern crate std;
use super::*;

fn look(trust: &mut Trust, seen: Seen) -> bool {
    trust.review(Pages(16), |_| seen);
    trust.decide(Pages(16), HugePages(1)) == Choice::Huge
}

#[test]
fn trust_is_earned_by_dense_hugepages_and_lost_by_a_sparse_one() {
    let mut trust = Trust::NONE;
    let mut take = |seen| {
        let huge = look(&mut trust, seen);
        if !huge {
            trust.left_small(Pages(16), HugePageId(7));
        }
        huge
    };
    assert!(!take(Seen::Dense) && !take(Seen::Dense), "one is not enough");
    assert!(!take(Seen::Dense), "the first trusted one is a probe");
    assert!(take(Seen::Dense));
    let huge = (0..64).filter(|_| take(Seen::Dense)).count();
    assert!((58..64).contains(&huge), "{huge} of 64: few probes");
    while take(Seen::Dense) {}
    let more = (0..4).take_while(|_| take(Seen::Sparse)).count();
    assert!((1..4).contains(&more), "the probe was sparse, and might have been filling up");
    assert_eq!([0; 7].map(|_| take(Seen::Dense)), [false, false, false, true, true, true, true], "needs four");
}

#[test]
fn what_is_untouched_stays_pending_and_lengths_are_apart() {
    let mut trust = Trust::NONE;
    (0..6).for_each(|id| trust.left_small(Pages(16), HugePageId(id)));
    let mut seen = 0;
    trust.review(Pages(31), |id| {
        seen |= 1 << id.0;
        Seen::Nothing
    });
    assert_eq!(seen, 0b11_1100, "the last four");
    trust.review(Pages(32), |_| unreachable!("another length"));
    trust.review(Pages(31), |_| unreachable!("one review is skipped"));
    trust.review(Pages(31), |_| Seen::Dense);
    trust.review(Pages(31), |_| unreachable!("all seen"));
    assert_eq!(
        [31, 31, 32].map(|n| trust.decide(Pages(n), HugePages(1))),
        [Choice::Probe, Choice::Huge, Choice::Small]
    );
}

#[test]
fn a_length_is_sparse_after_three_sparse_hugepages_until_a_dense_one() {
    let mut trust = Trust::NONE;
    let mut see = |seen, reviews| {
        for _ in 0..reviews {
            trust.left_small(Pages(600), HugePageId(1));
            trust.review(Pages(600), |_| seen);
        }
        (trust.is_sparse(Pages(1000)), trust.is_dense(Pages(1000)), trust.is_sparse(Pages(500)))
    };
    assert_eq!(see(Seen::Nothing, 100), (false, false, false), "nothing tells nothing");
    assert_eq!(see(Seen::Sparse, 100), (true, false, false));
    assert_eq!(see(Seen::Dense, 100), (false, true, false));
}

#[test]
fn what_was_sparse_and_filled_up_since_is_dense() {
    let mut trust = Trust::NONE;
    for id in 0..2 {
        trust.left_small(Pages(16), HugePageId(id));
    }
    let mut seen = std::vec::Vec::new();
    for turn in 0..8 {
        trust.review(Pages(16), |id| {
            seen.push(id.0);
            if turn == 0 { Seen::Sparse } else { Seen::Dense }
        });
        if turn == 0 {
            (2..9).for_each(|id| trust.left_small(Pages(16), HugePageId(id)));
        }
    }
    assert_eq!((seen, trust.is_dense(Pages(16))), ([1, 0, 8, 7, 1, 0].into(), true));
}

#[test]
fn what_stays_untouched_is_given_up() {
    let mut trust = Trust::NONE;
    trust.left_small(Pages(16), HugePageId(3));
    let mut looks = 0;
    (0..40).for_each(|_| {
        let dense = trust.review(Pages(16), |_| {
            looks += 1;
            Seen::Nothing
        });
        assert_eq!(dense, 0);
    });
    assert_eq!(looks, MOST_LOOKS);
}

#[test]
fn long_memory_of_which_half_is_untouched_earns_no_trust() {
    let mut trust = Trust::NONE;
    for turn in 0..200 {
        assert_eq!(trust.decide(Pages(1024), HugePages(4)), Choice::Small);
        let places = trust.places(Pages(1024), HugePages(4));
        assert!(places[0] < 4 && places[1] == (places[0] + 2) % 4);
        places.iter().for_each(|place| trust.left_small(Pages(1024), HugePageId(4 * turn + place)));
        trust.review(Pages(1024), |id| if id.0 % 4 < 2 { Seen::Dense } else { Seen::Nothing });
    }
    let mut firsts: std::vec::Vec<_> = (0..4).map(|_| trust.places(Pages(1024), HugePages(4))[0]).collect();
    firsts.sort();
    assert_eq!(firsts, [0, 1, 2, 3]);
}

#[test]
fn the_end_of_what_is_used_takes_less_trust_than_a_sparse_hugepage() {
    for (seen, left) in [(Seen::Part, (5, 4)), (Seen::Sparse, (0, 8))] {
        let mut trust = Trust::NONE;
        trust.decide(Pages(1024), HugePages(4));
        let mut see = |seen, looks| {
            trust.left_small(Pages(1024), HugePageId(1));
            (0..looks).for_each(|_| _ = trust.review(Pages(1024), |_| seen));
        };
        (0..6).for_each(|_| see(Seen::Dense, 1));
        see(seen, 2);
        let length = trust.of(Pages(1024));
        assert_eq!((length.dense, length.needed), left);
    }
}

#[test]
fn without_a_dense_probe_only_so_much_is_given() {
    let mut trust = Trust::NONE;
    let mut given = 0;
    for turn in 0..100 {
        let choice = trust.decide(Pages(800), HugePages(4));
        if choice != Choice::Huge {
            trust.left_small(Pages(800), HugePageId(turn));
        }
        let dense = turn < 20;
        trust.review(Pages(800), |_| if dense { Seen::Dense } else { Seen::Gone });
        given += if !dense && choice != Choice::Small { 4 } else { 0 };
    }
    assert!((1..=MOST_UNPROVEN).contains(&given), "{given}");
}

#[test]
fn nearly_all_is_dense_and_an_eighth_is_sparse() {
    let seen = [0, 4096, 32 << 10, 40 << 10, 56 << 10, 64 << 10].map(|resident| Seen::of(resident, 64 << 10));
    assert_eq!(seen, [Seen::Nothing, Seen::Sparse, Seen::Part, Seen::Nothing, Seen::Dense, Seen::Dense]);
}

#[test]
fn lengths_that_nobody_touches_densely_are_looked_at_less_and_less() {
    let mut trust = Trust::NONE;
    let mut looks = 0;
    for _ in 0..200 {
        trust.left_small(Pages(16), HugePageId(3));
        trust.review(Pages(16), |_| {
            looks += 1;
            Seen::Sparse
        });
    }
    assert!(looks < 60, "{looks}");
}
