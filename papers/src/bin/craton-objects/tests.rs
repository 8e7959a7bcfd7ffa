use super::*;
use craton_papers::caching::{From, What};

fn of(line: &str) -> Result<Request, clap::Error> {
    Request::try_parse_from(["craton-objects"].into_iter().chain(line.split_whitespace()))
}

#[test]
fn arguments_are_read() {
    let request = of("slabs 200 --batch 9 --count 90 --repetitions 2").unwrap();
    assert_eq!((request.from, request.batch, request.count, request.repetitions), (From::Slabs, 9, 90, 2));
    assert!(matches!(request.what, What::Bytes(200)));
    assert!(matches!(of("cache mutex").unwrap().what, What::Object(of) if of.name == "mutex"));
}

#[test]
fn wrong_usage_names_the_value() {
    for (line, part) in [
        ("", "--help"),
        ("heap 8", "'heap'"),
        ("malloc", "<WHAT>"),
        ("malloc no-such", "'no-such'"),
        ("malloc 4", "'4'"),
        ("malloc 8 --batch 0", "0 is not in 1..=10000"),
        ("malloc 8 --count", "--count"),
        ("malloc 8 --fast 1", "'--fast'"),
    ] {
        let why = of(line).expect_err(line);
        assert!(why.to_string().contains(part) && why.exit_code() == 2, "{line}: {why}");
    }
}
