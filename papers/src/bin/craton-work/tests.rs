use super::*;

fn of(line: &str) -> Result<Request, String> {
    parse(&line.split_whitespace().map(str::to_owned).collect::<Vec<_>>())
}

#[test]
fn arguments_are_read() {
    let Ok(Request::Run(workload, load, expected)) = of("server") else { panic!("server is a workload") };
    assert_eq!((load, expected), (workload.load(work::FULL), Some(workload.known[1])));
    let Ok(Request::Run(_, load, expected)) = of("server --threads 3 --percent=10 --seed 4") else { panic!() };
    assert_eq!((load, expected), (Load { threads: 3, percent: 10, seed: 4 }, None));
    assert!(matches!(of("server --seed 4 --expect 00ff"), Ok(Request::Run(_, _, Some(255)))));
    assert!(matches!(of("empirical --threads 3"), Ok(Request::Run(..))));
    assert!(matches!(of("empirical --threads 3 --heap 8 --expect ff"), Ok(Request::Real(_, Some(255)))));
    assert!(matches!(of("empirical --simulated"), Ok(Request::Simulated(_))));
    assert!(matches!(of("empirical -h"), Ok(Request::Print(text)) if text.contains("--profile")));
    assert!(matches!(of("server -h"), Ok(Request::Print(text)) if text.contains("Example")));
    assert!(matches!(of("list"), Ok(Request::Print(text)) if text.lines().count() == WORKLOADS.len()));
}

#[test]
fn wrong_usage_names_the_value() {
    for (line, part) in [
        ("", "list"),
        ("no-such", "\"no-such\""),
        ("server --threads 0", "\"0\""),
        ("server --threads two", "\"two\""),
        ("server --percent 0", "\"0\""),
        ("server --seed", "needs a value"),
        ("server --expect xyz", "\"xyz\""),
        ("server --expect +1", "\"+1\""),
        ("server fast", "\"fast\""),
        ("server --heap 4", "\"--heap\""),
        ("empirical fast", "\"fast\""),
        ("empirical --heap 4 fast", "\"fast\""),
        ("empirical --heap 4 --expect xyz", "\"xyz\""),
    ] {
        match of(line) {
            Err(why) => assert!(why.contains(part), "{line}: {why}"),
            Ok(_) => panic!("{line} is accepted"),
        }
    }
}
