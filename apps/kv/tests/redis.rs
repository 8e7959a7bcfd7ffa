//! Debian's `redis-cli` and `redis-benchmark` as clients.

use crate::kill::folder;
use crate::process::Running;
use std::process::{Command, Output};

/// Panics with the package's name, unless CRATON_SKIP_MISSING=1.
fn missing(program: &str, package: &str) -> bool {
    let dirs = std::env::var_os("PATH").unwrap_or_default();
    if std::env::split_paths(&dirs).any(|dir| dir.join(program).is_file()) {
        return false;
    }
    assert!(
        std::env::var_os("CRATON_SKIP_MISSING").is_some_and(|value| value == "1"),
        "{program} is not here: install the Debian package {package} (`make test` does), or set CRATON_SKIP_MISSING=1"
    );
    eprintln!("skipped: {program} of the Debian package {package} is not here");
    true
}

fn client(program: &str, server: &Running, args: &[&str]) -> String {
    let output = Command::new(program).args(["-p", &server.port.to_string()]).args(args).output().unwrap();
    let Output { status, stdout, stderr } = output;
    let text = String::from_utf8_lossy(&stdout).into_owned();
    assert!(status.success(), "{program} {args:?}: {text}{}", String::from_utf8_lossy(&stderr));
    text
}

#[test]
fn redis_cli_is_served() {
    if missing("redis-cli", "redis-tools") {
        return;
    }
    let folder = tempfile::tempdir_in(folder()).unwrap();
    let file = folder.path().join("cli.heap");
    let server = Running::start(&file, &[]);
    let cli = |args: &[&str]| client("redis-cli", &server, args);
    assert_eq!(cli(&["ping"]), "PONG\n");
    assert_eq!(cli(&["set", "greeting", "hello \"world\"\r\n"]), "OK\n");
    assert_eq!(cli(&["get", "greeting"]), "hello \"world\"\r\n\n");
    assert_eq!(cli(&["incr", "n"]), "1\n");
    assert_eq!(cli(&["mget", "n", "none", "greeting"]), "1\n\nhello \"world\"\r\n\n");
    for i in 0..300 {
        cli(&["set", &format!("key:{i}"), "x"]);
        if i == 20 {
            break;
        }
    }
    let mut keys: Vec<_> = cli(&["--scan", "--pattern", "key:1*"]).lines().map(str::to_owned).collect();
    keys.sort();
    assert_eq!(keys.len(), 11);
    assert_eq!(cli(&["dbsize"]), "23\n");
    assert!(cli(&["set", "a", "b", "ex", "10"]).starts_with("ERR SET EX: keys that expire are not supported"));
    assert!(cli(&["lpush", "a", "b"]).starts_with("ERR unknown command 'lpush', with args beginning with: 'a' 'b'"));
    assert!(cli(&["incr", "greeting"]).starts_with("ERR value is not an integer or out of range"));
    assert!(cli(&["info", "keyspace"]).contains("db0:keys=23"));
    assert_eq!(cli(&["shutdown"]), "");
    assert_eq!(server.wait(), 0);
    let server = Running::start(&file, &[]);
    assert_eq!(client("redis-cli", &server, &["dbsize"]), "23\n");
    assert_eq!(client("redis-cli", &server, &["flushall"]), "OK\n");
    assert_eq!(client("redis-cli", &server, &["dbsize"]), "0\n");
    assert_eq!(server.terminate(), 0);
}

#[test]
fn redis_benchmark_runs_and_its_keys_are_there() {
    if missing("redis-benchmark", "redis-tools") {
        return;
    }
    let folder = tempfile::tempdir_in(folder()).unwrap();
    let file = folder.path().join("benchmark.heap");
    let server = Running::start(&file, &[]);
    for (tests, args) in [
        ("ping,set,get,incr", &["-n", "20000", "-r", "5000", "-P", "16", "-c", "20"][..]),
        ("set,get", &["-n", "4000", "-r", "5000", "-d", "3000", "-c", "10", "--threads", "2"]),
    ] {
        let text = client("redis-benchmark", &server, &[&["-q", "-t", tests], args].concat());
        assert!(text.contains("SET: ") && text.contains("requests per second"), "{text}");
        assert!(!text.to_lowercase().contains("error"), "{text}");
    }
    let size = |server: &Running| client("redis-cli", server, &["dbsize"]).trim().parse::<u64>().unwrap();
    let keys = size(&server);
    assert!((3000..=10_001).contains(&keys), "{keys}");
    assert_eq!(server.terminate(), 0);
    let server = Running::start(&file, &[]);
    assert_eq!(size(&server), keys);
}
