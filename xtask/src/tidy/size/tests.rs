use super::*;

#[test]
fn a_file_of_more_than_600_lines_fails() {
    let with = |path: &str, lines| check(&[File::new(path, &"a();\n".repeat(lines))]);
    assert_eq!(with("crates/x/src/long.rs", 600), []);
    let found = with("crates/x/src/long.rs", 601);
    assert!(found.len() == 1 && found[0].text.starts_with("601 lines"), "{found:?}");
    assert_eq!(with("docs/long.md", 2000), [], "text that is not Rust is no matter");
}
