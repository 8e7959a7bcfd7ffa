use super::*;
use std::collections::BTreeSet;

#[test]
fn names_are_unique_and_can_be_found() {
    let names: BTreeSet<&str> = EXPERIMENTS.iter().map(|experiment| experiment.name).collect();
    assert_eq!(names.len(), EXPERIMENTS.len());
    assert!(names.iter().all(|name| find(name).is_some_and(|found| found.name == *name)));
    assert!(find("no-such").is_none());
}

#[test]
fn the_document_of_experiments_lists_each() {
    let page = include_str!("../../../../docs/experiments.md");
    for experiment in EXPERIMENTS {
        assert!(page.contains(&format!("`{}`", experiment.name)), "{} is not in docs/experiments.md", experiment.name);
    }
}
