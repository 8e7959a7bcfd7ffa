//! By page frames, against the same model (P11 too).

use super::World;
use super::model::{CAPACITY, MODES, config, op, replay};
use craton_pages::HugeBacking;
use proptest::prelude::*;

proptest! {
    #![proptest_config(config())]

    #[test]
    fn the_heap_whose_spans_frames_place_agrees_with_the_model(ops in prop::collection::vec(op(), 1..120), mode in 0..3usize) {
        replay(&ops, World::with_frames(CAPACITY, MODES[mode], HugeBacking::AUTO));
    }
}
