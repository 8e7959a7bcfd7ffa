use super::*;

#[test]
fn each_name_finds_its_pattern() {
    for pattern in Pattern::ALL {
        assert_eq!(Pattern::find(&pattern.name()), Ok(pattern));
    }
    let why = Pattern::find("batch").unwrap_err();
    assert!(why.contains("\"batch\"") && why.contains("batch-lifo-10000"), "{why}");
}

#[test]
fn a_large_batch_takes_small_objects_alone() {
    assert!(Pattern::BatchLifo(10_000).takes(1500) && !Pattern::BatchLifo(10_000).takes(32_768));
    assert!(Pattern::BatchFifo(64).takes(200_000));
    assert!(Pattern::TouchedPair.takes(32_768) && !Pattern::TouchedPair.takes(4096));
}

#[test]
fn remote_needs_two_threads_and_cold_takes_one() {
    assert!(!Pattern::Remote.runs_on(1) && Pattern::Remote.runs_on(2));
    assert!(Pattern::Cold.runs_on(1) && !Pattern::Cold.runs_on(2));
}
