use super::*;

#[test]
fn regions_take_most_of_the_slack_away() {
    for (name, range) in MIXES {
        let last = |regions| play(name, range, regions, 1 << 30).expect("room").pop().expect("rows");
        let (with, without) = (last(true), last(false));
        assert!(with.int("region_hugepages") > 0 && without.int("region_hugepages") == 0, "{name}");
        assert!(
            with.num("backed_per_used") - 1.0 < (without.num("backed_per_used") - 1.0) / 2.0,
            "{name}: {}",
            with.num("backed_per_used")
        );
        assert!(with.num("backed_per_used") >= 1.0);
    }
}

#[test]
fn without_regions_each_span_of_the_paper_s_length_has_a_hugepage_of_its_own() {
    let (name, range) = MIXES[0];
    let rows = play(name, range, false, 256 << 20).expect("room");
    let last = rows.last().expect("rows");
    assert!(last.num("backed_per_used") > 1.6, "{}", last.num("backed_per_used"));
}
