use super::*;

#[test]
fn a_copy_sees_what_is_there_and_changes_nothing() {
    let mut value = 5;
    let place = &raw mut value;
    // SAFETY: this thread's, and in the copy the copy's.
    let answer = run(|| unsafe {
        place.write(place.read() + 1);
        place.read()
    });
    assert_eq!((answer, value), (Some(6), 5));
}
