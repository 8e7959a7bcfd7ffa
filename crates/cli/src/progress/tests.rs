use super::*;

#[test]
fn the_first_run_is_number_one_and_nothing_is_known_of_the_rest() {
    let now = Progress { allocator: "craton", round: None, done: 0, total: 4 };
    assert_eq!(text("ls", now, Duration::ZERO), "[........................] 1/4 ls: craton (warm-up)");
}

#[test]
fn the_bar_grows_and_the_rest_is_estimated() {
    let now = Progress { allocator: "glibc", round: Some(1), done: 2, total: 4 };
    let shown = text("ls", now, Duration::from_secs(3));
    assert_eq!(shown, "[############............] 3/4 ls: glibc (round 2), about 3 s left");
    assert!(text("ls", now, Duration::from_secs(200)).ends_with("about 4 min left"));
    let none = Progress { total: 0, done: 0, ..now };
    assert!(text("ls", none, Duration::ZERO).starts_with("[........................] 1/0"));
}
