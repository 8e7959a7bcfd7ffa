use super::*;
use craton_lab::picture::colour_of;

#[test]
fn a_filled_heap_is_whole_and_stays_as_full_under_pairs() {
    let filled = Filled::new(256 << 20).expect("room");
    filled.heap.check().unwrap_or_else(|broken| panic!("{broken:?}"));
    let used = filled.heap.in_use().bytes().0 as u64 >> 20;
    assert!((225..=231).contains(&used), "{used} MiB of 256");
    let rows = filled.rows(1).expect("room");
    assert_eq!(rows.len(), 4);
    assert!(rows.iter().all(|row| row.num("ns_min") > 0.0 && row.num("ns_median") >= row.num("ns_min")));
    assert_eq!(rows[0].int("used_bytes") >> 20, used);
}

#[test]
fn metadata_is_a_small_part_of_what_it_manages() {
    let metadata = 512 * size_of::<Tracker>() + size_of::<Heap>();
    assert!((metadata as f64) < 0.0005 * (1u64 << 30) as f64, "{metadata} bytes for 1 GiB");
}

#[test]
fn the_lines_of_the_picture_have_different_colours() {
    let names = ["dense pair", "dense turnover", "sparse pair", "sparse turnover"];
    let mut colours = names.map(colour_of).to_vec();
    colours.sort_unstable();
    colours.dedup();
    assert_eq!(colours.len(), names.len());
}
