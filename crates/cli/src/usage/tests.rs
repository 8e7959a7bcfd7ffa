use super::*;

#[test]
fn words_are_quoted_for_a_shell() {
    let quoted = ["ls", "--a=b", "a b", "", "it's", "$x"].map(quote);
    assert_eq!(quoted, ["ls", "--a=b", "'a b'", "''", "'it'\\''s'", "'$x'"]);
}

#[test]
fn a_missing_word_is_named_with_an_example() {
    let tip = |line: &str| missing(&line.split(' ').map(str::to_owned).collect::<Vec<_>>()).unwrap_or_default();
    assert!(tip("compare --ready true -- nginx").contains("--load"));
    assert!(tip("compare --load true -- nginx").contains("--ready"));
    assert!(tip("compare").contains("behind `--`"));
    for command in ["profile", "profile --diff old", "get"] {
        assert!(tip(command).contains("process id"), "{command}");
    }
}
