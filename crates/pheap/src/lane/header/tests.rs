use super::{Header, check_word, encode_pending, encode_used, pending_key};
use crate::error::Error;
use crate::layout::{LANE_PENDING, LANE_TX, LANE_TX_CHECK, LANE_UNDO, LANE_UNDO_CHECK, LANE_USED};
use craton_base::Medium;
use craton_sim::SimCached;

const SEED: u64 = 77;

fn header(medium: &SimCached) -> Header<'_, SimCached> {
    Header { medium, seed: SEED, at: 128 }
}

/// Each flip of a word is damage at the word that `named` has.
fn flip_each_bit(medium: &SimCached, word: u64, named: u64) {
    let there = header(medium).load(word);
    for bit in 0..64 {
        medium.store(128 + word, there ^ 1 << bit);
        let result = header(medium).check();
        assert!(
            matches!(result, Err(Error::Damaged { at, .. }) if at == 128 + named),
            "word {word}, bit {bit}: {result:?}"
        );
    }
    medium.store(128 + word, there);
}

#[test]
fn words_are_read_as_written_and_each_flipped_bit_is_named() {
    let medium = SimCached::new(4096, 4096);
    let words = [LANE_PENDING, LANE_USED, LANE_TX, LANE_UNDO];
    header(&medium).check().unwrap();
    words.into_iter().for_each(|word| flip_each_bit(&medium, word, word));
    flip_each_bit(&medium, LANE_UNDO_CHECK, LANE_UNDO);
    let key = pending_key(SEED, 128);
    medium.store(128 + LANE_PENDING, encode_pending(key, 63));
    medium.store(128 + LANE_USED, encode_used(SEED, 128, 5));
    for (word, check, value) in [(LANE_TX, LANE_TX_CHECK, 5 << 32 | 9), (LANE_UNDO, LANE_UNDO_CHECK, 0x20_4000)] {
        medium.store(128 + word, value);
        medium.store(128 + check, check_word(SEED, 128 + word, value));
    }
    let there = header(&medium);
    assert_eq!((there.pending(), there.used()), (Ok(63), Ok(5)));
    assert_eq!((there.transaction(), there.undo()), (Ok(5 << 32 | 9), Ok(0x20_4000)));
    words.into_iter().for_each(|word| flip_each_bit(&medium, word, word));
    flip_each_bit(&medium, LANE_TX_CHECK, LANE_TX);
    flip_each_bit(&medium, LANE_UNDO_CHECK, LANE_UNDO);
    medium.store(128 + LANE_PENDING, encode_pending(key, 64));
    assert!(there.pending().is_err(), "more lines than an operation has");
}
