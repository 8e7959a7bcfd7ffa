use super::*;

const FILE: &str = "# callgrind format\nversion: 1\nevents: Ir\nsummary: 1796480\n\nfn=(1) main\n1 5\n";

#[test]
fn the_total_of_a_file_is_found() {
    assert_eq!(total(FILE), Some(1_796_480));
    assert_eq!(total(&format!("{FILE}totals: 1796481\n")), Some(1_796_481));
    assert_eq!(total("totals: 5 7 9\ntotals: 6 1 1\n"), Some(11));
    assert_eq!(total("fn=(1) summary: 7\n"), None);
    assert_eq!(total("summary: none\n"), None);
}

#[test]
fn the_difference_is_what_an_operation_executes() {
    assert_eq!(per_operation((10_000, 1_796_480), (60_000, 8_696_480)), Ok(138.0));
    let why = per_operation((10, 900), (20, 800)).unwrap_err();
    assert!(why.contains("900") && why.contains("800"), "{why}");
    assert!(per_operation((10, 900), (10, 900)).is_err());
}
