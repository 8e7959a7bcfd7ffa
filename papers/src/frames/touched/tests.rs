use super::*;

#[test]
fn a_run_touches_what_was_computed_and_no_more() {
    for (frames, processors) in [(1 << 16, 2), (5 * 16384 + 77, 1)] {
        let levels = counted(frames, processors).expect("room");
        for level in &levels[..4] {
            assert_eq!(level.touched, Some(level.lines), "{}", level.name);
        }
        let processors_lines = levels[4].touched.unwrap_or(0);
        assert!(processors_lines >= processors && processors_lines <= levels[4].lines);
        let sizes = Sizes::of::<Standard>(frames, processors);
        assert_eq!(levels.iter().map(|level| level.bytes).sum::<usize>(), sizes.bytes());
    }
}

#[test]
fn a_write_behind_an_array_is_seen() {
    let sizes = Sizes::of::<Standard>(1 << 14, 1);
    let arrays = [0x5a, !0x5a].map(|fill| Arrays::new(&sizes, fill));
    let rows = || [&arrays[0].rows, &arrays[1].rows];
    assert_eq!(lines(rows(), [0x5a, !0x5a]), Ok(0));
    rows()[1].needed()[17].store(0, craton_base::atomic::Ordering::Relaxed);
    assert_eq!(lines(rows(), [0x5a, !0x5a]), Ok(1));
    rows()[0].behind()[3].store(0, craton_base::atomic::Ordering::Relaxed);
    assert!(lines(rows(), [0x5a, !0x5a]).is_err());
}
