use super::*;
use craton_lab::rng::Rng;
use std::collections::VecDeque;

#[test]
fn a_chain_is_as_a_deque_is() {
    let (places, chain, mut model) = (places(64), Chain::default(), VecDeque::new());
    let mut rng = Rng::new(1, 0);
    for _ in 0..5000 {
        let frame = rng.below(64);
        match model.iter().position(|one| *one == frame) {
            Some(at) => {
                chain.remove(&places, frame);
                model.remove(at);
            }
            None if rng.one_in(2) => {
                chain.push_first(&places, frame);
                model.push_front(frame);
            }
            None => {
                chain.push_last(&places, frame);
                model.push_back(frame);
            }
        }
        assert_eq!((chain.first(), chain.last()), (model.front().copied(), model.back().copied()));
        assert!(chain.iter(&places).eq(model.iter().copied()));
    }
}

#[test]
fn blocks_lie_within_the_frames() {
    assert_eq!(blocks_down(11, 2).collect::<Vec<_>>(), [4, 0]);
    assert_eq!(size_of::<Place>(), 64);
}
