use super::*;

const GIVEN: &str = "//! Memory.\n//!\n//! **Unsafe.** It reads | what\n//! the caller vouched for.\n//!\n//! More.\n\
                     // SAFETY: fine.\nunsafe impl Send for A {}\nunsafe fn f() {}\n";

fn tree(source: &str, ledger: Option<&str>) -> Vec<File> {
    let mut files = vec![File::new("crates/x/src/a.rs", source), File::new("crates/x/src/plain.rs", "fn f() {}\n")];
    files.extend(ledger.map(|text| File::new(PATH, text)));
    files
}

#[test]
fn a_row_has_the_counts_and_the_reason() {
    let text = write(&tree(GIVEN, None));
    assert!(
        text.contains("| x | `src/a.rs` | 0 | 1 | 1 | 0 | It reads \\| what the caller vouched for. |\n"),
        "{text}"
    );
    assert!(text.contains("| **all** | | 0 | 1 | 1 | 0 | |\n"), "{text}");
    assert!(!text.contains("plain.rs"), "{text}");
}

#[test]
fn the_ledger_as_written_passes() {
    let text = write(&tree(GIVEN, None));
    assert_eq!(check(&tree(GIVEN, Some(&text))), []);
}

#[test]
fn a_missing_or_stale_ledger_fails() {
    assert_eq!(check(&tree(GIVEN, None)).len(), 1);
    let text = write(&tree(GIVEN, None));
    let more = format!("{GIVEN}// SAFETY: fine.\nunsafe impl Sync for A {{}}\n");
    let found = check(&tree(&more, Some(&text)));
    assert!(found.len() == 1 && found[0].path == PATH && found[0].text.contains("tidy --fix"), "{found:?}");
}

#[test]
fn a_file_without_a_reason_fails() {
    for bad in ["//! Memory.\nunsafe fn f() {}\n", "//! **Unsafe.**\n//!\n//! Later.\nunsafe fn f() {}\n"] {
        let text = write(&tree(bad, None));
        let found = check(&tree(bad, Some(&text)));
        assert!(found.len() == 1 && found[0].path == "crates/x/src/a.rs", "{found:?}");
    }
}

#[test]
fn test_code_is_counted_and_needs_no_reason() {
    let inner = "fn f() {}\n#[cfg(test)]\nmod tests {\n    unsafe fn g() {}\n}\n";
    let mut files = tree(inner, None);
    files.push(File::new("crates/x/src/a/tests.rs", "unsafe fn h() {}\n"));
    files.push(File::new("tests/programs/tests/t.rs", "unsafe fn h() {}\n"));
    let text = write(&files);
    assert!(text.ends_with("Sites in test code: programs 1, x 2.\n"), "{text}");
    assert!(text.contains("There is none outside of tests."), "{text}");
    files.push(File::new(PATH, &text));
    assert_eq!(check(&files), []);
}
