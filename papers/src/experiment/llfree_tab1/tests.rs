use super::*;

#[test]
fn state_for_the_papers_machine_is_within_its_bound() {
    let rows = rows_of(FULL_GIB, PAPER_PROCESSORS, &computed(FULL_GIB * GIB, PAPER_PROCESSORS));
    let at = |name, level| rows.iter().find(|row| row.has(&[("allocator", name), ("level", level)])).expect("there");
    let all = |name| at(name, ALL);
    let (state, processors) = (all(OURS).int("state_bytes"), at(OURS, PROCESSORS).int("state_bytes"));
    assert!((state - processors) as f64 <= 4.2 * 1024.0 * 1024.0, "{state} with {processors} for processors");
    assert!(processors <= PAPER_PROCESSORS as u64 * 1536, "{processors} for their claims");
    assert_eq!(all("buddy").int("cache_lines"), 128 << 18);
    let ratios = ratios(&rows);
    assert!(ratios["lines_vs_buddy"] < 0.01 && ratios.len() == 4);
}

#[test]
fn a_level_that_a_run_did_not_touch_as_computed_is_a_failure() {
    let mut levels = computed(GIB, 1);
    levels.iter_mut().for_each(|level| level.touched = Some(level.lines));
    assert!(rows_of(1, 1, &levels).iter().all(|row| row.is_ok()));
    levels[1].touched = Some(3);
    let rows = rows_of(1, 1, &levels);
    assert_eq!(
        rows.iter().filter(|row| !row.is_ok()).map(|row| row.word("level")).collect::<Vec<_>>(),
        ["huge frames"]
    );
}
