use super::*;

#[test]
fn the_stamp_comes_back_from_blocks_of_any_size() {
    for len in [1, 3, 7, 8, 9, 15, 16, 17, 100, 4097] {
        let block = Block::new(len, u64::MAX);
        let low = u64::MAX >> (64 - 8 * len.min(8));
        assert_eq!(block.ends(), low.wrapping_add(low.rotate_left(1)), "{len} bytes");
    }
}

#[test]
fn a_filled_block_has_the_stamp_in_every_byte() {
    assert_eq!(Filled::new(80, 3).sum(), 10 * 3 + 3 + 6);
    assert_eq!(Filled::new(8193, 3).sum_pages(), 2 * 3 + Block::new(8193, 3).ends());
    for len in [1, 8, 11, 17] {
        let block = Filled::new(len, u64::MAX);
        assert_eq!(block.0.ends(), Block::new(len, u64::MAX).ends(), "{len} bytes");
    }
}

#[test]
fn a_word_that_was_overwritten_changes_the_sum() {
    let mut block = Filled::new(800, 3);
    block.0.put(400, 4);
    assert_ne!(block.sum(), Filled::new(800, 3).sum());
    let mut block = Block::new(800, 3);
    block.put(0, 4);
    assert_ne!(block.ends(), Block::new(800, 3).ends());
}
