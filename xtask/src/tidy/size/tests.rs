use super::*;

fn check_with(lines: usize, list: &str) -> Vec<String> {
    let long = File::new("crates/x/src/long.rs", &"a();\n".repeat(lines));
    check(&[long, File::new(LIST, list)]).into_iter().map(|c| c.to_string()).collect()
}

#[test]
fn a_long_file_fails_and_one_of_600_lines_does_not() {
    assert_eq!(check_with(600, ""), [""; 0]);
    let found = check_with(601, "");
    assert!(found.len() == 1 && found[0].starts_with("crates/x/src/long.rs: 601 lines"), "{found:?}");
}

#[test]
fn a_long_text_that_is_not_rust_is_no_matter() {
    assert_eq!(check(&[File::new("docs/long.md", &"a\n".repeat(2000))]), []);
}

#[test]
fn an_entry_with_a_reason_lets_a_long_file_pass() {
    assert_eq!(check_with(601, "# why\n\ncrates/x/src/long.rs | a table\n"), [""; 0]);
}

#[test]
fn an_entry_without_a_reason_fails() {
    assert_eq!(check_with(601, "crates/x/src/long.rs\n").len(), 2);
    assert_eq!(check_with(601, "crates/x/src/long.rs | \n").len(), 2);
}

#[test]
fn an_entry_that_nothing_needs_fails() {
    assert!(check_with(600, "crates/x/src/long.rs | a table\n")[0].contains("600 lines, not over"));
    assert!(check_with(1, "crates/x/src/gone.rs | a table\n")[0].contains("does not exist"));
}
