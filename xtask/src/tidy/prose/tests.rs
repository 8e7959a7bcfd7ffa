use super::*;

fn complaints(path: &str, text: &str) -> Vec<String> {
    check(&File::new(path, text)).into_iter().map(|c| c.to_string()).collect()
}

#[test]
fn each_phrase_fails_in_a_comment_and_not_in_code() {
    for phrase in PHRASES.iter().flat_map(|(phrases, _)| *phrases) {
        let found = complaints("a.rs", &format!("// Fine.\n//! {phrase} here.\n"));
        assert!(found.len() == 1 && found[0].starts_with("a.rs:2: "), "{phrase}: {found:?}");
        assert_eq!(complaints("a.rs", &format!("let a = \"{phrase} here\";\n")), [""; 0]);
        assert_eq!(complaints("a.sh", &format!("# {phrase} here\n")).len(), 1, "{phrase}");
        assert_eq!(complaints("a.c", &format!(" * {phrase} here\n")).len(), 1, "{phrase}");
    }
}

#[test]
fn parts_of_words_examples_and_the_middle_of_a_sentence_are_fine() {
    for text in ["// the heap", "// `his`", "// it asks Who", "/// ```\n/// he\n/// ```", "// the history"] {
        assert_eq!(complaints("a.rs", &format!("{text}\n")), [""; 0]);
    }
}

#[test]
fn a_long_comment_fails_and_long_code_tables_and_addresses_do_not() {
    let long = "word ".repeat(30);
    assert_eq!(complaints("a.rs", &format!("    // {long}\n")).len(), 1);
    assert_eq!(complaints("a.toml", &format!("# {long}\n")).len(), 1);
    for text in [format!("// | {long}|"), format!("// https://a.b {long}"), format!("let a = 1; // {long}"), long] {
        assert_eq!(complaints("a.rs", &format!("{text}\n")), [""; 0], "{text}");
    }
}

#[test]
fn a_head_may_have_forty_lines_besides_its_examples() {
    let lines = |n| "//! A line.\n".repeat(n);
    let example = format!("//! ```\n{}//! ```\n", lines(50));
    assert_eq!(complaints("src/a.rs", &format!("{}{example}{}", lines(20), lines(20))), [""; 0]);
    assert_eq!(complaints("src/a.rs", &lines(HEAD + 1)).len(), 1);
    let drawing = format!("//! ```text\n{}//! ```\n", lines(HEAD));
    assert_eq!(complaints("src/a.rs", &drawing).len(), 1, "a drawing counts");
    assert_eq!(complaints("src/lib.rs", &lines(CRATE_HEAD)), [""; 0]);
    assert_eq!(complaints("src/lib.rs", &lines(CRATE_HEAD + 1)).len(), 1);
}
