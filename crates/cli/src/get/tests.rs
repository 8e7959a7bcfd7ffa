use super::*;

#[test]
fn keys_are_distinct_and_a_wrong_one_names_the_nearest() {
    let mut names: Vec<String> = keys().map(|(name, _)| name).collect();
    let all = names.len();
    names.sort();
    names.dedup();
    assert_eq!(names.len(), all);
    assert!(no_such_key("heap_in_use").contains("did you mean `heap_in_use_bytes`?"));
    assert!(no_such_key("ledger.life_bytes").contains("`ledger.live_bytes`"));
}
