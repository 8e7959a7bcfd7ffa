use super::*;

fn words(text: &str) -> Vec<String> {
    Source::new(text).tokens.into_iter().map(|t| t.text).filter(|t| t.starts_with(char::is_alphanumeric)).collect()
}

#[test]
fn strings_and_comments_hold_no_words() {
    assert_eq!(
        words(r####"a "b \" b" c r#"d " d"# e b"f" g br##"h "# h"## i c"j" k"####),
        ["a", "c", "e", "g", "i", "k"]
    );
    assert_eq!(words("a // b\nc /* d /* e */ f */ g"), ["a", "c", "g"]);
}

#[test]
fn a_quote_is_a_character_or_a_lifetime() {
    assert_eq!(words(r"a 'x' b '\'' c '\\' d '\u{1F600}' e b'f' g '}' h"), ["a", "b", "c", "d", "e", "g", "h"]);
    let source = Source::new("fn f<'a>(x: &'a str, c: char) { c == 'a' }");
    assert_eq!(source.tokens.iter().filter(|t| t.text == "'").count(), 2);
    assert_eq!(source.tokens.iter().filter(|t| t.text == "\"\"").count(), 1);
}

#[test]
fn comments_keep_their_lines() {
    let source = Source::new("a /* b\nc */ d // e\n\"f\ng\" // h\n");
    let comments: Vec<&str> = source.lines.iter().map(|l| l.comment.as_str()).collect();
    assert_eq!(comments[1..5], ["/* b", "c */// e", "", "// h"]);
}

#[test]
fn test_modules_are_marked_and_nothing_else_is() {
    let source =
        Source::new("fn a() {}\n#[cfg(test)]\nmod tests {\n  fn b() {}\n}\nfn c() {}\n#[cfg(unix)]\nmod d {\n}\n");
    let test: Vec<bool> = source.lines.iter().map(|l| l.in_test).collect();
    assert_eq!(test[1..10], [false, false, true, true, true, false, false, false, false]);
}

#[test]
fn modules_under_a_condition_are_found_behind_attributes_and_visibility() {
    let source = Source::new(
        "#[cfg(any(test, loom))]\n#[path = \"x\"]\npub(crate) mod a;\n#[cfg(not(loom))] mod b;\nmod c;\n#[cfg(loom)] use d; mod e;",
    );
    let names = |words: &[&str]| -> Vec<String> {
        source.modules_under(words).into_iter().map(|i| source.tokens[i + 1].text.clone()).collect()
    };
    assert_eq!(names(&["test"]), ["a"]);
    assert_eq!(names(&["test", "loom"]), ["a"]);
}

#[test]
fn broken_text_does_not_panic() {
    for text in ["\"", "'", "/*", "r#\"", "#[", "'\\", "mod x {", "#[cfg(test)] mod x {", "#[cfg(test)]", "b'", ")))"] {
        let _ = Source::new(text);
    }
}
