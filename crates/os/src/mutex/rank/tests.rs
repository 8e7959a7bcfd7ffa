use super::witness::Held;
use super::*;

#[test]
fn a_thread_waits_only_for_higher_ranks() {
    let held = Held::new();
    assert!(held.allows(Rank::SetUp, false));
    held.add(Rank::SizeClass);
    assert!(held.allows(Rank::Morphs, false) && held.allows(Rank::TracePath, false));
    for rank in [Rank::SetUp, Rank::ObjectCache, Rank::SizeClass] {
        assert!(!held.allows(rank, false), "{rank:?}");
    }
    held.add(Rank::Pages);
    assert!(!held.allows(Rank::Morphs, false));
}

#[test]
fn a_fork_takes_several_locks_of_a_rank() {
    let held = Held::new();
    held.add(Rank::SizeClass);
    held.add(Rank::SizeClass);
    assert!(held.allows(Rank::SizeClass, true) && !held.allows(Rank::CacheArrays, true));
    assert!(!held.remove(Rank::SizeClass), "one is left");
    assert!(held.remove(Rank::SizeClass));
    assert_eq!(held.highest(), None);
    assert!(held.remove(Rank::Huge), "a lock from before is not known");
}

#[test]
fn a_lock_given_up_out_of_turn_leaves_the_others() {
    let held = Held::new();
    held.add(Rank::SizeClass);
    held.add(Rank::Pages);
    assert!(!held.remove(Rank::SizeClass));
    assert_eq!(held.highest(), Some(Rank::Pages as usize));
    assert!(!held.allows(Rank::Morphs, false));
}
