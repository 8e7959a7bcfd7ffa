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
    let page = table(&serde_json::from_str(DOCUMENT).unwrap());
    let rows: Vec<&str> = page.lines().filter(|line| line.starts_with("| ")).collect();
    assert_eq!(rows[1], "| glibc | 0.80 | 0.75–0.85 | 1.10 | - |");
    assert_eq!(rows[2], "| a | 0.90 | - | - | - |");
    assert_eq!(rows[3], "| *the best of them* | 1.00 | - | - | - |");
    assert!(page.contains("over 2 workloads, 3 rounds; 1 runs failed. Some CPU, 2 processors, Linux 6.18"), "{page}");
    assert!(page.contains("commit abc; `craton lab run speed`"), "{page}");
}

#[test]
fn runs_are_read_where_they_are_and_need_not_be() {
    let root = std::env::temp_dir().join(format!("craton-xtask-records-{}", std::process::id()));
    assert_eq!(measured(&root), Ok(None));
    std::fs::create_dir_all(root.join("results")).unwrap();
    std::fs::write(root.join(RUNS), "{").unwrap();
    assert!(measured(&root).unwrap_err().contains("cannot be read"));
    std::fs::write(root.join(RUNS), DOCUMENT).unwrap();
    assert!(measured(&root).unwrap().unwrap().contains("| glibc | 0.80 |"));
    std::fs::remove_dir_all(root).unwrap();
}

#[test]
fn a_table_that_is_missing_is_an_error_that_names_the_command() {
    assert!(short(&[]).unwrap_err().contains("make bench"));
}

#[test]
fn the_short_table_has_no_empty_columns_and_no_line_that_is_too_long() {
    let table = "| a | time | 95 % |\n|---|---:|---:|\n| glibc | 0.75 | - |\n| debian-x | 0.5 | - |\n\n";
    let files = [File::new(TABLE, &format!("{table}{}\n", "word ".repeat(30)))];
    let short = short(&files).unwrap();
    assert!(short.starts_with("| a | time |\n| --- | ---: |\n| glibc | 0.75 |\n\nword word"), "{short}");
    assert!(short.lines().all(|line| line.len() <= COLUMNS), "{short}");
    assert!(short.ends_with("Intervals take five rounds.\n"), "{short}");
    let files = [File::new(TABLE, "| a | time | 95 % |\n|---|---:|---:|\n| glibc | 0.75 | 0.70–0.80 |\n")];
    assert!(self::short(&files).unwrap().contains("| glibc | 0.75 | 0.70–0.80 |"));
}
