use super::*;

const DOCUMENT: &str = r#"{
    "name": "speed", "commit": "abc", "command": ["craton", "lab", "run", "speed"],
    "machine": {"cpu": "Some CPU", "cpus": 2, "kernel": "6.18", "memory_bytes": 1, "thp": "madvise"},
    "rows": [
        {"workload": "cfrac", "allocator": "glibc", "run": 0, "status": "ok"},
        {"workload": "cfrac", "allocator": "craton", "run": 2, "status": "ok"},
        {"workload": "gcc", "allocator": "x", "run": 0, "status": "signal 6"}
    ],
    "ratios": {"time_vs_best_peer": 1.004, "time_vs_glibc": 0.8, "rss_vs_glibc": 1.1, "time_vs_a": 0.9},
    "intervals": {"time_vs_glibc": [0.75, 0.85]}
}"#;

#[test]
fn the_table_is_what_the_record_says() {
    let page = table(&[File::new(RECORD, DOCUMENT)]).unwrap();
    let rows: Vec<&str> = page.lines().filter(|line| line.starts_with("| ")).collect();
    assert_eq!(rows[1], "| glibc | 0.80 | 0.75–0.85 | 1.10 | - |");
    assert_eq!(rows[2], "| a | 0.90 | - | - | - |");
    assert_eq!(rows[3], "| *the best of them* | 1.00 | - | - | - |");
    assert!(page.contains("over 2 workloads, 3 rounds; 1 runs failed. Some CPU, 2 processors, Linux 6.18"), "{page}");
    assert!(page.contains("commit abc; `craton lab run speed`"), "{page}");
}

#[test]
fn a_record_that_is_missing_or_cannot_be_read_is_an_error() {
    assert!(table(&[]).unwrap_err().contains("make bench"));
    assert!(table(&[File::new(RECORD, "{")]).unwrap_err().contains("read"));
}
