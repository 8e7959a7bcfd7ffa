use super::*;
use crate::testing::process;
use std::collections::BTreeSet;

#[test]
fn the_groups_have_each_row_of_the_ledger_once() {
    let mut rows: Vec<&str> = GROUPS.iter().flat_map(|(_, _, rows)| rows.iter().copied()).collect();
    rows.sort_unstable();
    let mut all = Ledger::ROWS;
    all.sort_unstable();
    assert_eq!(rows, all);
    let sums = groups(&process(1, "a").ledger);
    assert_eq!((sums["live"], sums.values().sum::<u64>()), (5 << 20, 20 << 20));
}

#[test]
fn a_family_has_one_head_and_a_line_for_each_process() {
    let text = text(&[process(7, "one"), process(8, "t\"wo\\")], Some("a"));
    let lines: Vec<&str> = text.lines().filter(|line| line.contains("craton_rss_bytes")).collect();
    assert_eq!(
        lines,
        [
            "# HELP craton_rss_bytes resident memory: the sum of the ledger",
            "# TYPE craton_rss_bytes gauge",
            "craton_rss_bytes{pid=\"7\",exe=\"one\",experiment=\"a\"} 20971520",
            "craton_rss_bytes{pid=\"8\",exe=\"t\\\"wo\\\\\",experiment=\"a\"} 20971520",
        ]
    );
    let row = "craton_ledger_bytes{pid=\"7\",exe=\"one\",experiment=\"a\",part=\"rest\",row=\"stack_bytes\"} 1048576";
    assert!(text.lines().any(|line| line == row), "{text}");
}

#[test]
fn no_name_comes_twice_and_none_is_empty() {
    let families = families(&[process(7, "one")]);
    let names: BTreeSet<&str> = families.iter().map(|family| family.name.as_str()).collect();
    assert_eq!(names.len(), families.len());
    assert!(families.iter().all(|family| !family.help.is_empty() && !family.help.contains('\n')));
    assert!(text(&[], None).is_empty());
}
