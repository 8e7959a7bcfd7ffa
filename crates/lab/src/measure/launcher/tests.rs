use super::*;

#[test]
fn reports_are_read_as_they_are_sent() {
    let ended = Ended {
        wait_status: 0x8b,
        wall_ns: u64::MAX,
        user_us: 2,
        sys_us: 3,
        peak_rss_kib: 4,
        minor_faults: 5,
        major_faults: 6,
    };
    for report in [Report::Started(77), Report::CannotExecute(libc::ENOENT), Report::Ended(ended)] {
        let words = report.words();
        let bytes = std::array::from_fn(|i| words[i / 8].to_ne_bytes()[i % 8]);
        assert_eq!(Report::parse(&bytes), Some(report));
    }
    assert_eq!(Report::parse(&[0; Report::BYTES]), None);
}
