use super::*;

fn of(line: &str) -> Result<Option<Request>, String> {
    parse(line.split_whitespace().map(str::to_owned))
}

#[test]
fn arguments_are_read() {
    let request = of("batch-fifo-64 --size 1500 --threads 3 --count 9 --repetitions 2 --loop none").unwrap().unwrap();
    assert_eq!((request.pattern, request.size_bytes, request.threads), (Pattern::BatchFifo(64), 1500, 3));
    assert_eq!((request.count, request.repetitions, request.with_loop), (9, 2, Loop::None));
    assert_eq!(of("remote").unwrap().map(|r| r.threads), Some(2));
    assert_eq!(of("--help"), Ok(None));
}

#[test]
fn wrong_usage_names_the_value() {
    for (line, part) in [
        ("", "pattern"),
        ("no-such", "\"no-such\""),
        ("pair --size 0", "\"0\""),
        ("pair --size 5000000", "\"5000000\""),
        ("remote --threads 1", "\"1\""),
        ("pair --count", "--count needs"),
        ("pair --loop fast", "\"fast\""),
        ("pair --fast 1", "\"--fast\""),
        ("batch-lifo-10000 --size 32768", "32768"),
    ] {
        match of(line) {
            Err(why) => assert!(why.contains(part), "{line}: {why}"),
            Ok(_) => panic!("{line} is accepted"),
        }
    }
}
