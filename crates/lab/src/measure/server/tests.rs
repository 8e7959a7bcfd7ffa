//! Real processes.

use crate::measure::server::{Server, results::Pattern};
use crate::measure::{Allocator, Plan, Run, Status, measure};
use std::path::Path;
use std::sync::atomic::AtomicBool;
use std::time::Duration;
use tempfile::TempDir;

/// Serves until SIGTERM, as `up` shows.
const SERVER: &str = "trap 'rm up; exit 0' TERM; touch up; while :; do sleep 0.02; done";

struct Place(TempDir);

impl Place {
    fn new() -> Self {
        Self(TempDir::new().unwrap())
    }

    fn path(&self) -> &Path {
        self.0.path()
    }

    fn run(&self, command: &str, ready: &str, load: &str, duration: Option<Duration>) -> Run {
        self.run_within(Duration::from_secs(300), command, ready, load, duration)
    }

    fn run_within(
        &self,
        ready_limit: Duration,
        command: &str,
        ready: &str,
        load: &str,
        duration: Option<Duration>,
    ) -> Run {
        let here = |script: &str| format!("cd '{}' && {script}", self.path().display());
        let server = Server {
            ready: here(ready).into(),
            ready_limit,
            load: here(load).into(),
            duration,
            patterns: vec![Pattern::parse("ops=rate ([0-9]+)").unwrap()],
        };
        let stop = AtomicBool::new(false);
        let plan = Plan {
            command: ["sh", "-c", &here(command)].map(Into::into).to_vec(),
            allocators: vec![Allocator::glibc()],
            runs: 1,
            warmup: 0,
            prove: false,
            processors: Vec::new(),
            timeout: Some(Duration::from_secs(300)),
            server: Some(&server),
            stop: &stop,
            progress: &|_| {},
        };
        measure(&plan).runs.remove(0)
    }
}

#[test]
fn a_server_is_made_ready_loaded_and_ended() {
    let place = Place::new();
    // On a busy machine samples come late, and its second half must have one.
    let run = place.run(SERVER, "test -e up", "sleep 2; echo rate 250; touch loaded", None);
    assert_eq!(run.status, Status::Ok, "{run:?}");
    assert!(place.path().join("loaded").exists() && !place.path().join("up").exists());
    let load = run.load.unwrap();
    assert_eq!(load.results.operations_per_s, Some(250.0));
    assert!(run.wall_s >= 2.0 && run.wall_s == load.seconds(), "{run:?}");
    assert!(run.peak_rss_bytes > 0 && load.after_bytes > Some(0) && run.steady_rss_bytes > Some(0), "{run:?}");
}

#[test]
fn memory_is_the_sum_over_the_processes() {
    let place = Place::new();
    let hold = "x=$(head -c 20000000 /dev/zero | tr '\\0' x); touch up$1; while :; do sleep 0.02; done";
    let server = format!("for i in 1 2 3; do sh -c '{}' hold $i & done; wait", hold.replace('\'', "'\\''"));
    let run = place.run(&server, "test -e up1 && test -e up2 && test -e up3", "sleep 2", None);
    assert_eq!(run.status, Status::Ok, "{run:?}");
    assert!(run.steady_rss_bytes > Some(60_000_000), "{run:?}");
}

#[test]
fn the_load_is_repeated_for_its_duration() {
    let place = Place::new();
    // Twenty times what the shell of a load takes on a busy machine.
    let run = place.run(SERVER, "test -e up", "echo x >>loads; sleep 0.02", Some(Duration::from_secs(2)));
    assert_eq!(run.status, Status::Ok, "{run:?}");
    let loads = std::fs::read_to_string(place.path().join("loads")).unwrap().lines().count();
    assert!((2..=101).contains(&loads) && run.wall_s >= 2.0, "{loads} {run:?}");
}

#[test]
fn a_server_or_load_that_fails_is_named_with_what_it_said() {
    let place = Place::new();
    let failed = place.run(SERVER, "test -e up", "echo no route; exit 3", None);
    assert_eq!(failed.status, Status::LoadFailed("exit status: 3".to_owned()));
    assert!(failed.stderr.contains("no route") && failed.load.is_none(), "{failed:?}");
    assert!(!place.path().join("up").exists(), "ended all the same");
    let (load, until_loaded) = ("touch loading; sleep 20", "touch up; until [ -e loading ]; do sleep 0.02; done");
    let crashed = place.run(&format!("{until_loaded}; kill -SEGV $$"), "test -e up", load, None);
    assert_eq!(crashed.status, Status::Signal(libc::SIGSEGV), "{crashed:?}");
    std::fs::remove_file(place.path().join("loading")).unwrap();
    let early = place.run(until_loaded, "test -e up", load, None);
    assert_eq!(early.status, Status::EndedEarly, "{early:?}");
    let never = place.run("exit 4", "test -e absent", "true", None);
    assert_eq!(never.status, Status::Exit(4), "{never:?}");
}

#[test]
fn a_server_that_never_gets_ready_is_ended() {
    let place = Place::new();
    // A busy machine starts the shell of `ready` within it.
    let limit = Duration::from_secs(2);
    let run = place.run_within(limit, SERVER, "echo refused; test -e absent", "touch loaded", None);
    assert_eq!(run.status, Status::NotReady(limit), "{run:?}");
    assert!(run.stderr.contains("refused") && run.load.is_none(), "{run:?}");
    assert!(!place.path().join("up").exists() && !place.path().join("loaded").exists());
    let slow = place.run_within(limit, SERVER, "sleep 20", "touch loaded", None);
    assert_eq!(slow.status, Status::NotReady(limit), "a command that does not end: {slow:?}");
    assert!(!place.path().join("up").exists());
}
