use super::*;

fn of(line: &str) -> Result<Request, clap::Error> {
    Request::try_parse_from(["craton-drive"].into_iter().chain(line.split_whitespace()))
}

#[test]
fn arguments_are_read() {
    let request = of("redis-set --socket s --requests 7 --end --seed 3 --server 12").unwrap_or_else(|e| e.exit());
    assert_eq!((request.name.as_str(), request.socket), ("redis-set", PathBuf::from("s")));
    assert_eq!((request.requests, request.seed, request.server, request.end), (7, 3, Some(12), true));
}

#[test]
fn wrong_usage_names_the_value() {
    for (line, part) in [
        ("", "<NAME>"),
        ("mysql --socket s", "'mysql'"),
        ("redis-set", "--socket"),
        ("redis-set --socket s --requests many", "'many'"),
        ("redis-set --socket s --server 99999999999", "99999999999"),
        ("redis-set --port 1", "'--port'"),
    ] {
        let why = of(line).map(|_| ()).expect_err(line);
        assert!(why.to_string().contains(part) && why.exit_code() == 2, "{line}: {why}");
    }
}
