use super::*;

#[test]
fn a_speed_is_rounded_down_to_a_power_of_two() {
    let cases: [(&[u8], Option<u32>); 7] = [
        (b"1", Some(0)),
        (b"64", Some(6)),
        (b"100", Some(6)),
        (b"1000000", Some(MOST)),
        (b"0", None),
        (b"", None),
        (b"-2", None),
    ];
    for (value, expected) in cases {
        assert_eq!(shift(value), expected, "{}", value.escape_ascii());
    }
}
