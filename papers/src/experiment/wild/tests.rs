use super::*;

#[test]
fn each_program_has_figures_and_a_killed_one_no_ratio() {
    assert!(PROGRAMS.iter().all(|program| !figures(program.name).is_empty()));
    let ran = |bytes: u64| Ok(vec![json!({ "rss_bytes": bytes, "time_s": 1.0, "samples": [] })]);
    let killed = Ok(vec![json!({ "alive": false, "group_bytes": 64 })]);
    let row = |allocator, program, found| row(allocator, program, &found);
    let mut rows =
        vec![row("glibc", "sparse-40m", ran(10)), row("craton", "sparse-40m", ran(40)), row("x", "sparse-40m", ran(5))];
    assert_eq!(against(&rows, "sparse-40m", "rss_bytes"), [Some(4.0), Some(8.0)]);
    rows.extend([row("glibc", "sparse-40m@64", ran(10)), row("craton", "sparse-40m@64", killed)]);
    assert_eq!(against(&rows, "sparse-40m@64", "rss_bytes"), [None, None]);
    assert!(show(&rows).contains("killed") && rows.iter().all(Fields::is_ok));
    assert_eq!(ratios(&rows)["all_memory_vs_glibc"], 4.0);
}
