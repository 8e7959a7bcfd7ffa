use super::*;
use std::collections::BTreeSet;
use std::vec::Vec;

#[test]
fn every_thread_gets_a_cache_that_no_other_has() {
    let mut registry = Registry::EMPTY;
    // More than one chunk has.
    let n = CHUNK / size_of::<ThreadCache>() + 10;
    let caches: Vec<_> = (0..n).map(|_| registry.alloc(false).unwrap()).collect();
    assert_eq!(caches.iter().collect::<BTreeSet<_>>().len(), n);
    assert_eq!(registry.taken(), n);
    assert!(caches.iter().all(|cache| cache.is_aligned()));
    // SAFETY: ours.
    let numbers: BTreeSet<usize> = caches.iter().map(|cache| unsafe { (**cache).number }).collect();
    assert_eq!(numbers, (0..n).collect());
}

#[test]
fn a_cache_that_was_given_back_serves_the_next_thread() {
    let mut registry = Registry::EMPTY;
    let caches: Vec<_> = (0..5).map(|_| registry.alloc(false).unwrap()).collect();
    for i in [3, 0, 4] {
        // SAFETY: ours, used no more.
        unsafe { registry.free(caches[i]) };
    }
    assert_eq!(registry.taken(), 2);
    let again: BTreeSet<_> = (0..3).map(|_| registry.alloc(false).unwrap()).collect();
    assert_eq!(again, BTreeSet::from([caches[3], caches[0], caches[4]]));
    assert!(!caches.contains(&registry.alloc(false).unwrap()), "none was left");
}

#[test]
fn a_forked_child_keeps_the_calling_threads_cache_alone() {
    let mut registry = Registry::EMPTY;
    let caches: Vec<_> = (0..4).map(|_| registry.alloc(false).unwrap()).collect();
    registry.forked(caches[2]);
    assert_eq!(registry.taken(), 1);
    let again: BTreeSet<_> = (0..3).map(|_| registry.alloc(false).unwrap()).collect();
    assert_eq!(again, BTreeSet::from([caches[0], caches[1], caches[3]]));
    registry.forked(null_mut());
    assert_eq!(registry.taken(), 0, "the calling thread had none");
}
