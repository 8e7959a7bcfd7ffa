use super::*;

#[test]
fn bytes_change_their_unit_before_four_digits() {
    assert_eq!(bytes(0), "0 B");
    assert_eq!(bytes(1023), "1023 B");
    assert_eq!(bytes(1536), "1.5 KiB");
    assert_eq!(bytes((1 << 20) - 1), "1.0 MiB");
    assert_eq!(bytes(5 << 30), "5.0 GiB");
    assert_eq!(bytes(u64::MAX), "16384.0 PiB");
}

#[test]
fn seconds_and_counts_are_short() {
    assert_eq!(seconds(0.000_25), "250 µs");
    assert_eq!(seconds(0.012_345), "12.35 ms");
    assert_eq!(seconds(2.0), "2.000 s");
    assert_eq!(count(0), "0");
    assert_eq!(count(999), "999");
    assert_eq!(count(1000), "1,000");
    assert_eq!(count(1_234_567), "1,234,567");
}

#[test]
fn one_is_singular() {
    assert_eq!([0, 1, 2].map(|n| plural(n, "object")), ["0 objects", "1 object", "2 objects"]);
    assert_eq!([1, 1000].map(|n| plural(n, "process")), ["1 process", "1,000 processes"]);
}

#[test]
fn columns_are_as_wide_as_their_widest_cell() {
    let rows = [vec!["a".to_owned(), "100".to_owned()], vec!["long".to_owned(), "1".to_owned()]];
    assert_eq!(table(&rows, &[0]), "a     100\nlong    1\n");
}

#[test]
fn a_wide_table_becomes_blocks_that_repeat_its_keys() {
    let rows: Vec<Vec<String>> = [["name", "aaaa", "bbbb", "cccc"], ["x", "1", "2", "3"]]
        .iter()
        .map(|row| row.iter().map(|cell| (*cell).to_owned()).collect())
        .collect();
    assert_eq!(stacked(&rows, &[0], 1, 80), table(&rows, &[0]));
    let two = "name  aaaa  bbbb\nx        1     2\n\nname  cccc\nx        3\n";
    assert_eq!(stacked(&rows, &[0], 1, 16), two);
    assert_eq!(stacked(&rows, &[0], 1, 15).matches("name").count(), 3);
    assert_eq!(blocks(&columns(&rows, &[0]), 1, &[3], 16), [1..2, 2..4]);
    assert_eq!(blocks(&columns(&rows, &[0]), 1, &[], 1), [1..2, 2..3, 3..4]);
    assert!(blocks(&[], 1, &[], 80).is_empty());
}
