use super::*;

fn of(line: &str) -> Result<Request, String> {
    parse(&line.split_whitespace().map(str::to_owned).collect::<Vec<_>>())
}

#[test]
fn arguments_are_read() {
    let Ok(Request::Run(program, given, group)) = of("idle --percent 5 --seconds=3 --group 64") else { panic!() };
    assert_eq!((program.name, given.percent, given.seconds, given.seed), ("idle", 5, Some(3), 1));
    assert_eq!(group, Place::Group(64));
    assert!(matches!(of("pauses --fragmented"), Ok(Request::Run(_, _, Place::Fragmented))));
    assert!(matches!(of("idle"), Ok(Request::Run(_, Given { percent: 100, seconds: None, .. }, Place::Here))));
    assert!(matches!(of("pairs -h"), Ok(Request::Help)) && PROGRAMS.iter().all(|of| help().contains(of.name)));
}

#[test]
fn wrong_usage_names_the_value() {
    for (line, part) in [
        ("", "--help"),
        ("no-such", "\"no-such\""),
        ("idle --group 0", "\"0\""),
        ("idle --seconds", "needs a value"),
        ("idle --group 64 --fragmented", "choose one"),
        ("idle --percent some", "\"some\""),
        ("idle fast", "\"fast\""),
    ] {
        assert!(of(line).is_err_and(|why| why.contains(part)), "{line}");
    }
}
