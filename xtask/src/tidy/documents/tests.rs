use super::*;

fn complaints(path: &str, text: &str) -> Vec<String> {
    check(&[File::new(path, text)]).into_iter().map(|c| c.to_string()).collect()
}

#[test]
fn a_readme_that_is_too_long_fails() {
    assert_eq!(complaints(README, &"a\n".repeat(README_LINES)), [""; 0]);
    assert!(complaints(README, &"a\n".repeat(README_LINES + 1))[0].contains("151 lines"));
    assert!(complaints(README, &"a a a a a a a a a a\n".repeat(131))[0].contains("1310 words"));
}

#[test]
fn a_wide_line_fails_but_in_a_table() {
    let wide = "x".repeat(COLUMNS + 1);
    assert!(complaints("docs/a.md", &format!("a\n{wide}\n"))[0].starts_with("docs/a.md:2: 101 columns"));
    assert_eq!(complaints("docs/a.md", &format!("| {wide} |\n")), [""; 0]);
    assert_eq!(complaints("docs/a.md", &format!("```text\n| {wide} |\n```\n")).len(), 1);
    for text in [format!("// {wide}\n"), format!("/// ```\n/// a\n/// ```\n/// {wide}\n")] {
        assert_eq!(complaints("crates/x/src/a.rs", &text).len(), 1, "{text}");
    }
    for text in ["a(); // WIDE\n", "/// | WIDE |\n", "/// ```text\n/// WIDE\n/// ```\n", "// https://WIDE\n"] {
        assert_eq!(complaints("crates/x/src/a.rs", &text.replace("WIDE", &wide)), [""; 0], "{text}");
    }
}

#[test]
fn each_phrase_fails_outside_of_code() {
    for (phrase, _) in PHRASES {
        assert_eq!(complaints("docs/a.md", &format!("This {phrase} here.\n")).len(), 1, "{phrase}");
        assert_eq!(complaints("docs/a.md", &format!("This `{phrase}` here.\n```sh\n{phrase}\n```\n")), [""; 0]);
    }
    assert_eq!(complaints("docs/a.md", concat!("It works. What", " is lost stays.\n")).len(), 1);
    assert_eq!(complaints("docs/a.md", concat!("What", " is lost?\n")), [""; 0]);
    assert_eq!(complaints("xtask/src/a.rs", concat!("//! This is ", "none.\n")).len(), 1);
}

#[test]
fn a_long_head_fails() {
    assert_eq!(complaints("crates/x/src/a.rs", &"//! a\n".repeat(HEAD_LINES)), [""; 0]);
    assert!(complaints("crates/x/src/a.rs", &"//! a\n".repeat(HEAD_LINES + 1))[0].contains("41 lines"));
    let fenced = |kind: &str| format!("//! ```{kind}\n{}//! ```\n//! b\n", "//! a\n".repeat(HEAD_LINES));
    assert_eq!(complaints("crates/x/src/a.rs", &fenced("")), [""; 0]);
    assert!(complaints("crates/x/src/a.rs", &fenced("text"))[0].contains("43 lines"));
}
