use super::*;
use craton_lab::picture::colour_of;

#[test]
fn a_minute_after_the_drop_memory_is_near_demand_on_intact_hugepages() {
    let spans = spans(&Profile::built_in(), Lives::Even);
    let late = |play: Play| late(&play(&spans, 256 << 20).expect("room"));
    let [ours, best_fit] = [POLICIES[0].1, POLICIES[3].1].map(late);
    assert!(ours.int("used_bytes") < 150 << 20, "half is gone");
    // The cache keeps 16 MiB whatever the demand.
    assert!(ours.int("backed_bytes") < ours.int("used_bytes") * 11 / 10 + (16 << 20), "{}", ours.int("backed_bytes"));
    assert!(ours.int("huge_bytes") * 20 > ours.int("backed_bytes") * 19, "{}", ours.int("huge_bytes"));
    assert!(ours.int("backed_bytes") < best_fit.int("backed_bytes"));
}

#[test]
fn memory_is_near_demand_from_the_last_time_on_that_it_was_far() {
    let row = |time_s: f64, backed: u64| json!({ "time_s": time_s, "used_bytes": 100, "backed_bytes": backed });
    let near = |course: Vec<Row>| near_after_s(&course);
    assert_eq!(near(vec![row(119.0, 105), row(120.0, 200), row(121.0, 120), row(122.0, 105)]), Some(2.0));
    assert_eq!(near(vec![row(119.0, 105), row(121.0, 120)]), None);
}

#[test]
fn lives_are_the_profile_s_whatever_the_heap() {
    let (rate, bytes) = rate_and_bytes(&Profile::parse("8192, 10, 20\n100000000, 1, 1\n", "p").expect("good"), 1 << 30);
    assert_eq!((rate, bytes), (10.0, 20.0 * 8192.0));
}

#[test]
fn the_lines_of_the_picture_have_different_colours() {
    let mut colours: Vec<&str> =
        POLICIES.iter().map(|(name, _)| colour_of(name)).chain([colour_of("demand")]).collect();
    colours.sort_unstable();
    colours.dedup();
    assert_eq!(colours.len(), POLICIES.len() + 1);
}
