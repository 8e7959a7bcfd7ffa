use super::*;
extern crate std;
use std::vec::Vec;

#[test]
fn each_group_is_counted_with_and_without_the_instruction() {
    let words: Vec<_> = (0..33u64).map(|i| AtomicU64::new(u64::MAX.checked_shl(2 * i as u32).unwrap_or(i))).collect();
    let expected: Vec<u16> = words[..32]
        .chunks(8)
        .map(|group| group.iter().map(|word| word.load(Ordering::Relaxed).count_ones() as u16).sum())
        .collect();
    for ones in [Ones::new(), Ones::portable()] {
        let mut counts = [7; 5];
        ones.count::<8>(&words, &mut counts);
        assert_eq!(counts[..4], expected);
        assert_eq!(counts[4], 7);
    }
}
