use super::*;

fn complaints(text: &str) -> usize {
    check("crates/x/src/a.rs", &Source::new(text)).len()
}

#[test]
fn each_strong_ordering_without_a_reason_fails() {
    for name in STRONG {
        assert_eq!(complaints(&format!("fn f() {{\n    A.load(Ordering::{name});\n}}")), 1, "{name}");
        assert_eq!(complaints(&format!("fn f() {{\n    A.load(atomic::Ordering::{name});\n}}")), 1, "{name}");
    }
}

#[test]
fn relaxed_and_comparisons_need_no_reason() {
    assert_eq!(complaints("fn f() { A.load(Ordering::Relaxed); x == Ordering::Less }"), 0);
    assert_eq!(complaints("use core::cmp::Ordering::{Less, Greater};"), 0);
}

#[test]
fn a_reason_stands_above_or_on_the_line() {
    assert_eq!(
        complaints("fn f() {\n    // ORDERING: pairs with the store in `g`.\n    A.load(Ordering::Acquire);\n}"),
        0
    );
    assert_eq!(complaints("fn f() {\n    A.load(Ordering::Acquire); // ORDERING: pairs with the store in `g`.\n}"), 0);
    let spread = "// ORDERING: pairs with `g`,\n// as told there.\nA.compare_exchange(\n    0,\n    1,\n    Ordering::AcqRel,\n    Ordering::Acquire,\n);";
    assert_eq!(complaints(spread), 0);
}

#[test]
fn an_empty_or_distant_reason_fails() {
    assert_eq!(complaints("// ORDERING:\nA.load(Ordering::Acquire);"), 1);
    let far = "// ORDERING: of something else.\na();\nb();\nc();\nd();\ne();\nA.load(Ordering::Acquire);";
    assert_eq!(complaints(far), 1);
}

#[test]
fn hidden_orderings_fail() {
    assert_eq!(complaints("use core::sync::atomic::Ordering::{Acquire, Relaxed};"), 1);
    assert_eq!(complaints("use core::sync::atomic::Ordering::SeqCst;"), 1);
    assert_eq!(complaints("use core::sync::atomic::Ordering::*;"), 1);
    assert_eq!(complaints("use core::sync::atomic::{AtomicU8, Ordering as O};"), 1);
    assert_eq!(complaints("use core::sync::atomic::{AtomicU8, Ordering};"), 0);
}

#[test]
fn test_modules_are_left_alone() {
    let text = "#[cfg(test)]\nmod tests {\n    fn f() { A.load(Ordering::SeqCst); }\n}\n";
    assert_eq!(complaints(text), 0);
    assert_eq!(complaints(&text.replace("cfg(test)", "cfg(unix)")), 1);
}
