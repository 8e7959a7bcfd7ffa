//! Debian's redis reports libjemalloc.so.2 even with a preloaded library: loading data must grow
//! Craton's heap by about as much.

use craton_programs::{Output, Program, Running, missing};
use std::path::PathBuf;
use std::thread::sleep;
use std::time::{Duration, Instant};
use tempfile::TempDir;

struct Redis {
    server: Running,
    folder: TempDir,
}

impl Redis {
    fn start() -> Self {
        Self::start_with("")
    }

    fn start_with(options: &str) -> Self {
        let folder = TempDir::new().expect("a temporary folder can be made");
        let server = Program::new("redis-server")
            .args(["--port", "0", "--daemonize", "no", "--save", "", "--appendonly", "no"])
            .args(["--enable-debug-command", "local", "--unixsocket"])
            .arg(folder.path().join("socket"))
            .arg("--dir")
            .arg(folder.path())
            .preloaded()
            .options(options)
            .timeout(300)
            .start();
        let mut redis = Self { server, folder };
        let end = Instant::now() + Duration::from_secs(300);
        while redis.cli(&["ping"]).stdout != "PONG\n" {
            if redis.server.has_ended() || Instant::now() > end {
                panic!("redis-server does not answer on its socket:\n{}", redis.server.wait());
            }
            sleep(Duration::from_millis(20));
        }
        redis
    }

    fn client(&self, program: &str, args: &[&str]) -> Output {
        Program::new(program).arg("-s").arg(self.socket()).args(args).timeout(300).run()
    }

    fn cli(&self, args: &[&str]) -> Output {
        self.client("redis-cli", args)
    }

    fn bench(&self, args: &[&str]) {
        let output = self.client("redis-benchmark", &[&["-q", "-P", "32", "-c", "16"], args].concat());
        output.assert_success();
        assert!(!output.stdout.contains("Error"), "{output}");
    }

    fn info(&self, key: &str) -> String {
        let text = self.cli(&["info"]).stdout;
        let line = text.lines().find_map(|line| line.strip_prefix(key)?.strip_prefix(':'));
        line.unwrap_or_else(|| panic!("INFO has no {key}:\n{text}")).trim().to_owned()
    }

    fn await_save(&self) {
        let end = Instant::now() + Duration::from_secs(300);
        while self.info("rdb_bgsave_in_progress") != "0" {
            assert!(Instant::now() < end, "the save in the background has not ended");
            sleep(Duration::from_millis(20));
        }
        assert_eq!(self.info("rdb_last_bgsave_status"), "ok");
    }

    fn socket(&self) -> PathBuf {
        self.folder.path().join("socket")
    }
}

#[test]
fn redis_serves_saves_and_ends() {
    if missing("redis-server", "redis-server") || missing("redis-benchmark", "redis-tools") {
        return;
    }
    let redis = Redis::start();
    let empty = redis.server.segment();
    assert_eq!(empty.exe, "redis-server");

    redis.bench(&["-n", "200000", "-r", "40000", "-d", "1000", "-t", "set"]);
    let loaded = redis.server.segment();
    let (data, grown) = (32 << 20, loaded.heap_in_use_bytes.saturating_sub(empty.heap_in_use_bytes));
    assert!(grown >= data, "32 MiB of data made Craton's heap grow by {grown} bytes only: {empty:?} {loaded:?}");
    assert!(loaded.refills > empty.refills + 1000, "{empty:?} {loaded:?}");

    assert!(redis.cli(&["bgsave"]).stdout.starts_with("Background saving started"));
    redis.bench(&["-n", "60000", "-r", "40000", "-d", "300", "-t", "set,get,lpush,lpop,sadd,hset,mset"]);
    redis.await_save();
    let keys: usize = redis.cli(&["dbsize"]).stdout.trim().parse().expect("DBSIZE answers with a number");
    assert!(keys > 30_000, "{keys} keys");

    redis.cli(&["save"]).assert_success();
    assert_eq!(redis.cli(&["debug", "reload"]).stdout.trim(), "OK");
    assert_eq!(redis.cli(&["dbsize"]).stdout.trim(), keys.to_string());
    assert_eq!(redis.cli(&["flushall", "sync"]).stdout, "OK\n");
    let flushed = redis.server.segment();
    assert!(
        flushed.heap_in_use_bytes < loaded.heap_in_use_bytes,
        "freeing all data frees spans: {loaded:?} {flushed:?}"
    );

    redis.cli(&["shutdown", "nosave"]);
    let output = redis.server.wait();
    output.assert_success();
    output.assert_served("redis-server");
}

#[test]
fn redis_benchmark_itself_runs_on_craton() {
    if missing("redis-server", "redis-server") || missing("redis-benchmark", "redis-tools") {
        return;
    }
    let redis = Redis::start();
    let bench = Program::new("redis-benchmark").args(["-q", "-n", "50000", "-P", "16", "-c", "32", "--threads", "4"]);
    let bench = bench.args(["-r", "10000", "-d", "100", "-t", "set,get,lpush"]).arg("-s").arg(redis.socket());
    let output = bench.preloaded().timeout(300).run();
    output.assert_success();
    output.assert_served("redis-benchmark");
    redis.cli(&["shutdown", "nosave"]);
    redis.server.wait().assert_served("redis-server");
}

#[test]
fn redis_serves_and_forks_when_hardened() {
    if missing("redis-server", "redis-server") {
        return;
    }
    let redis = Redis::start_with("hardened=1");
    redis.bench(&["-t", "set,lpush,sadd,hset", "-n", "20000", "-r", "5000"]);
    assert_eq!(redis.cli(&["debug", "reload"]).stdout, "OK\n");
    redis.cli(&["bgsave"]);
    redis.await_save();
    redis.cli(&["shutdown", "nosave"]);
    redis.server.wait().assert_success();
}
