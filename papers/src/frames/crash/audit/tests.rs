use super::*;

#[test]
fn gets_account_for_a_block_each_and_places_for_what_lies_there() {
    let of = |lost: &[usize], doing: &[Doing]| losing(lost, doing).ok();
    assert_eq!(of(&[], &[Doing::Getting(3)]), Some(0));
    assert_eq!(of(&[7], &[]), None);
    assert_eq!(of(&[7], &[Doing::Got(7, 0)]), None);
    assert_eq!(of(&[7], &[Doing::Getting(0), Doing::Getting(1)]), Some(1));
    assert_eq!(of(&[6, 7], &[Doing::Getting(0), Doing::Getting(0)]), Some(2));
    assert_eq!(of(&[6, 7], &[Doing::Getting(0), Doing::Getting(1)]), Some(1));
    assert_eq!(of(&[7, 8], &[Doing::Getting(1)]), None);
    assert_eq!(of(&[9, 11], &[Doing::Place(8, 2)]), Some(1));
    assert_eq!(of(&[9, 12], &[Doing::Place(8, 2)]), None);
}

/// The get's block reaches into a place in doubt.
#[test]
fn a_get_may_have_taken_what_another_was_freeing() {
    let doing = [Doing::Place(8, 0), Doing::Getting(1), Doing::Getting(1)];
    assert_eq!(losing(&[8, 9, 20, 21], &doing), Ok(3));
    assert!(losing(&[9, 20, 21], &doing).is_err());
}
