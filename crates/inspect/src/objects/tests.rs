use super::*;

#[test]
fn a_number_is_new_once() {
    let mut bits = Bits::new(65);
    assert!(bits.insert(64) && !bits.insert(64) && bits.insert(0));
    assert!(bits.has(64) && bits.has(0) && !bits.has(63));
}
