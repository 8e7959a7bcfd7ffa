use super::*;

#[test]
fn the_tighter_of_affinity_and_quota_counts_and_a_part_of_a_processor_is_one() {
    assert_eq!(fewest(Some(8), None), 8);
    assert_eq!(fewest(Some(8), Some(2000)), 2);
    assert_eq!(fewest(Some(8), Some(2001)), 3);
    assert_eq!(fewest(Some(2), Some(64_000)), 2);
    assert_eq!(fewest(Some(8), Some(1)), 1);
    assert_eq!(fewest(Some(8), Some(u64::MAX)), 8);
    assert_eq!((fewest(None, Some(2500)), fewest(None, None), fewest(Some(0), None)), (3, 1, 1));
}

#[test]
fn the_process_may_use_a_processor_and_no_more_than_its_affinity() {
    let cpus = refresh();
    assert!(cpus >= 1 && cpus <= affinity().expect("Linux tells"));
    assert_eq!(usable(), cpus);
}
