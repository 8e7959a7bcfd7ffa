use super::*;
use crate::tests::recorder::{Recorder, refills, watched};

fn sum() -> (u32, u64) {
    refills().into_iter().fold((0, 0), |(chains, objects), event| match event {
        Event::Refills { chains: c, objects: o } => (chains + c, objects + o),
        other => panic!("{other:?}"),
    })
}

#[test]
fn the_first_refills_are_reported_at_once_and_later_ones_by_the_dozen() {
    // The hooks begin anew.
    let _w = watched(1);
    let counts = Counts::NONE;
    for _ in 0..=FIRST {
        counts.count::<Recorder>(3);
        assert_eq!(sum(), (1, 3));
    }
    for _ in 0..3 {
        for _ in 1..DOZEN {
            counts.count::<Recorder>(5);
            assert_eq!(sum(), (0, 0));
        }
        counts.count::<Recorder>(5);
        assert_eq!(sum(), (DOZEN, 5 * u64::from(DOZEN)));
    }
}

#[test]
fn statistics_get_what_is_not_reported_yet() {
    let _w = watched(1);
    let counts = Counts::NONE;
    (0..=FIRST).for_each(|_| counts.count::<Recorder>(1));
    sum();
    counts.count::<Recorder>(7);
    counts.count::<Recorder>(0);
    counts.flush::<Recorder>();
    assert_eq!(sum(), (2, 7));
    counts.flush::<Recorder>();
    assert_eq!(sum(), (0, 0));
}
