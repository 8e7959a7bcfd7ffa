use super::*;

fn touch(file: &Path, pid: u32) {
    fs::write(path(file, pid), "no trace").unwrap();
}

#[test]
fn only_files_of_the_name_with_a_number_count() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("a trace");
    touch(&file, 7);
    touch(&file, 12);
    for other in ["a trace", "a trace.7x", "a trace.", "a trace.7.8", "b.9"] {
        fs::write(folder.path().join(other), "").unwrap();
    }
    fs::create_dir(path(&file, 99)).unwrap();
    let mut found: Vec<u32> = all(&file).map(|(pid, _)| pid).collect();
    found.sort_unstable();
    assert_eq!(found, [7, 12]);
}

#[test]
fn files_that_were_there_before_are_not_this_runs() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("trace");
    touch(&file, 7);
    let (traces, setting) = Traces::new(&file).unwrap().unwrap();
    assert_eq!(setting, Setting::parse(format!("trace={}.%p", file.display()).into()).unwrap());
    let none = traces.end(|_| None, None).unwrap();
    assert!(none.contains("no process was recorded"), "{none}");
    assert!(traces.end(|_| None, Some("it is static")).unwrap().ends_with("was not written; it is static\n"));
    touch(&file, 8);
    assert_eq!(traces.end(|_| None, None), None, "one process needs no line");
    assert!(file.exists() && path(&file, 7).exists() && !path(&file, 8).exists());
    touch(&file, 9);
    touch(&file, 10);
    let several = traces.end(|pid| Some(format!("p{pid}")), None).unwrap();
    assert!(
        several.contains("2 processes were recorded") && several.contains("process 9 (p9) with 0 events"),
        "{several}"
    );
    assert!(Traces::new(&folder.path().join("trace.%p")).unwrap().is_none());
    assert!(Traces::new(&folder.path().join("a,b")).is_err());
}
