use super::*;

#[test]
fn words_are_quoted_for_a_shell() {
    let quoted = ["ls", "--a=b", "a b", "", "it's", "$x"].map(quote);
    assert_eq!(quoted, ["ls", "--a=b", "'a b'", "''", "'it'\\''s'", "'$x'"]);
}
