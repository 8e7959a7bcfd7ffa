use super::*;
use std::process::Command;

#[test]
fn a_process_is_found_by_the_folder_in_its_environment_and_has_its_name() {
    let folder = tempfile::tempdir().unwrap();
    assert!(running(folder.path()).is_empty());
    let options = format!("stats_dir={}", folder.path().display());
    let mut child = Command::new("sleep").arg("1000").env("CRATON_OPTIONS", options).spawn().unwrap();
    let found = running(folder.path());
    child.kill().unwrap();
    assert_eq!(Main::of(child.id()).name, "sleep", "also of one that was not waited for");
    child.wait().unwrap();
    assert_eq!(found, [(child.id(), "sleep".to_owned())]);
    assert_eq!(Main::of(child.id()).name, "");
}

#[test]
fn the_sentence_names_five_and_counts_the_others() {
    assert_eq!(still_run(&[]), None);
    let many = |n: u32| (1..=n).map(|pid| (pid, "a\nb".to_owned())).collect::<Vec<_>>();
    let one = "1 process still runs: 1 (a?b); its later messages reach standard error alone";
    assert_eq!(still_run(&many(1)).as_deref(), Some(one));
    let text = still_run(&many(7)).unwrap();
    assert!(text.starts_with("7 processes still run: 1 (a?b), 2 ") && text.contains("5 (a?b) and 2 more;"), "{text}");
}
