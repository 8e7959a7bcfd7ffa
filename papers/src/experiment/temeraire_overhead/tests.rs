use super::*;

#[test]
fn the_built_in_profile_has_little_overhead_and_lies_on_hugepages() {
    let row = play("built-in", &Profile::built_in(), false, (128 << 20, 0.5, 2_000_000));
    assert!(row.is_ok());
    assert!((0.0..0.3).contains(&row.num("overhead")), "{}", row.num("overhead"));
    assert!(row.num("coverage") > 0.8, "{}", row.num("coverage"));
    assert!(row.num("slab_overhead") > 0.0 && row.int("backed_bytes") > row.int("live_bytes"));
}

#[test]
fn events_replace_each_object_and_stay_within_bounds() {
    let profile = Profile::parse("1024, 5, 100\n", "p").expect("good");
    assert_eq!(events(&profile, 1024 * 1000, 3.0, 10_000), 6000);
    assert_eq!(events(&profile, 1024 * 1000, 3.0, 4000), 4000);
    assert_eq!(events(&profile, 1024 * 1000, 0.01, 4000), 200);
}

#[test]
fn a_profile_that_cannot_be_played_is_a_row_that_says_why() {
    let profile = Profile::parse("1000000, 5, 100\n", "p").expect("good");
    let row = play("p", &profile, true, (1 << 20, 1.0, 1000));
    assert!(row.word("status").contains("too small") && row.int("backed_bytes") == 0, "{}", row.word("status"));
}
