use super::*;

fn of(line: &str) -> Result<Option<Given>, String> {
    parse(&line.split_whitespace().map(str::to_owned).collect::<Vec<_>>())
}

#[test]
fn arguments_are_read() {
    let given = of("--seconds 5 --threads=2 --live 64 --forks").unwrap().unwrap();
    assert_eq!((given.seconds, given.threads, given.live_bytes, given.operations), (5, 2, 64 << 20, None));
    assert!(given.forks && !given.signals);
    assert!(of("-h").unwrap().is_none());
}

#[test]
fn wrong_usage_names_the_value() {
    for (line, part) in [("--seconds 0", "\"0\""), ("fast", "\"fast\""), ("--forks=1", "--forks"), ("--seed", "--seed")]
    {
        assert!(of(line).is_err_and(|why| why.contains(part)), "{line}");
    }
}
