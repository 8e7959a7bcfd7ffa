extern crate std;
use super::*;
use std::string::ToString;

#[test]
fn numbers_are_written_as_elsewhere_and_read_again() {
    for n in [0, 1, 9, 10, 99, 100, 12_345_678_909, u64::MAX - 1, u64::MAX] {
        let decimal = Decimal::new(n);
        assert_eq!(decimal.as_bytes(), n.to_string().as_bytes());
        assert_eq!(Decimal::parse(decimal.as_bytes()), Some(n));
    }
    assert_eq!(Decimal::parse(b"0007"), Some(7));
}

#[test]
fn what_is_no_number_or_does_not_fit_is_refused() {
    for text in ["", " 1", "1 ", "-1", "+1", "1x", "0x1", "1_0", "18446744073709551616", "99999999999999999999"] {
        assert_eq!(Decimal::parse(text.as_bytes()), None, "{text}");
    }
}
