use super::*;

#[test]
fn an_array_grows_and_keeps_its_values() {
    let mut buffer = Buffer::new();
    (0..100_000u64).for_each(|value| buffer.push(value).unwrap());
    assert!((0..).zip(buffer.iter()).all(|(i, value)| i == *value));
    buffer.truncate(3);
    assert_eq!(*buffer, [0, 1, 2]);
    buffer.clear();
    assert!(buffer.is_empty());
}
