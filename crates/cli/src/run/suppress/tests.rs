use super::*;

fn call(function: &str, file: Option<&str>, module: &str) -> Call {
    Call { function: function.into(), file: file.map(str::to_owned), line: Some(1), module: module.into() }
}

fn suppresses(rule: &str, kind: &str, calls: &[Call]) -> bool {
    let rules = Rules(parse("rules", rule.as_bytes()).unwrap());
    let found = rules.find(kind, calls.iter()).is_some();
    assert_eq!(rules.unused().count(), usize::from(!found));
    found
}

#[test]
fn all_conditions_hold_for_one_call() {
    let calls =
        [call("take", Some("/src/a/take.c"), "/usr/lib/liba.so.1"), call("main", Some("/src/main.c"), "/bin/x")];
    for (rule, is_met) in [
        ("leak function=take file=take.c", true),
        ("leak function=take file=a/take.c library=liba.so*", true),
        ("leak function=take file=main.c", false),
        ("leak file=take", false),
        ("leak file=/src/*", true),
        ("leak file=?ain.c", true),
        ("overflow function=take", false),
        ("overflow,leak function=take", true),
        ("* function=*", true),
    ] {
        assert_eq!(suppresses(rule, "leak", &calls), is_met, "{rule}");
    }
}

#[test]
fn functions_are_named_with_or_without_their_arguments() {
    let calls = [call("ns::put(int, char)", None, "/bin/x")];
    for (rule, is_met) in [
        ("leak function=ns::put", true),
        ("leak function=\"ns::put(int, char)\"", true),
        ("leak function=\"ns::put(int, *)\"", true),
        ("leak function=\"ns::put(int)\"", false),
        ("leak function=put", false),
        ("leak function=*put", true),
    ] {
        assert_eq!(suppresses(rule, "leak", &calls), is_met, "{rule}");
    }
}

#[test]
fn patterns_fit_as_shells_do() {
    for (pattern, text, fit) in [
        ("", "", true),
        ("*", "", true),
        ("a*b*c", "aXbXbc", true),
        ("a*b*c", "aXbXb", false),
        ("?", "ä", true),
        ("??", "ä", false),
        ("*a", "bab", false),
    ] {
        assert_eq!(fits(pattern, text), fit, "{pattern} {text}");
    }
}

#[test]
fn bytes_that_are_not_text_are_refused_with_their_line() {
    let why = parse("r", b"leak file=a\nleak file=\xff").unwrap_err();
    assert_eq!(why, "r:2: not UTF-8; write the rule as UTF-8");
}
