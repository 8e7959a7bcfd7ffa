use super::*;

fn complaints(main: &str) -> Vec<String> {
    let file = |path: &str, text: &str| File { path: path.into(), text: text.into(), rust: None };
    let files = [
        file("a/tests/main.rs", main),
        file("a/tests/loom.rs", "#[allow(dead_code)]\nmod loom_x;\n"),
        file("a/tests/x.rs", ""),
        file("a/tests/loom_x.rs", ""),
        file("a/tests/common/mod.rs", ""),
        file("b/tests/y.rs", ""),
        file("b/src/main.rs", ""),
        file("b/src/z.rs", ""),
    ];
    check(&files).into_iter().map(|c| c.to_string()).collect()
}

#[test]
fn a_file_that_no_program_names_fails() {
    let expected = "a/tests/x.rs: never runs: say `mod x;` in a/tests/main.rs";
    assert_eq!(complaints("mod common;\n"), [expected]);
    assert_eq!(complaints("mod common;\nmod x;\n"), [""; 0]);
}
