use super::*;

const LINE: &str = r#"{"exe":"sort","pid":7,"refills":3,"objects_out":1200,"large_allocs":2,"huge_allocs":1,
    "heap_in_use_bytes":2097152,"heap_backed_bytes":4194304,"metadata_bytes":65536,"threads_seen":1,"huge_bytes":9}"#;

#[test]
fn a_line_is_read_and_others_are_not() {
    let record = Record::parse(LINE).unwrap();
    assert!(record.pid == 7 && record.exe == "sort" && record.shown()[0] == 3 && record.exited, "{record:?}");
    assert_eq!(Record::parse(&LINE.replace("refills", "refill")), None);
    assert_eq!(Record::parse(&LINE[..50]), None);
    assert_eq!(Record::parse(""), None);
}

#[test]
fn the_table_has_each_process_and_the_sum() {
    let record = Record::parse(LINE).unwrap();
    let text = show(&[record.clone(), Record { pid: 8, ..record.clone() }], 200);
    let lines: Vec<Vec<&str>> = text.lines().map(|line| line.split_whitespace().collect()).collect();
    assert_eq!(lines.len(), 4, "{text}");
    assert_eq!(lines[1][..5], ["7", "sort", "3", "1,200", "2"], "{text}");
    assert_eq!(lines[3][..6], ["total", "2", "processes", "6", "2,400", "4"], "{text}");
    assert!(lines[3].ends_with(&["128.0", "KiB"]), "{text}");
    let text = show(&[record.clone(), record.clone(), Record { pid: 8, ..record }], 200);
    assert!(text.contains("total  3 programs of 2 processes "), "{text}");
}
