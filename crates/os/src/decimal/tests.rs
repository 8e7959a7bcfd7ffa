extern crate std;
use super::*;
use std::string::ToString;

#[test]
fn numbers_are_written_as_elsewhere_and_read_again() {
    for n in [0, 1, 9, 10, 99, 100, 12_345_678_909, u64::MAX - 1, u64::MAX] {
        let decimal = Decimal::new(n);
        assert_eq!(decimal.as_bytes(), n.to_string().as_bytes());
        assert_eq!(craton_tables::amount::decimal(decimal.as_bytes()), Some(n));
    }
}
