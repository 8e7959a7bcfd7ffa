//! Processes that run while they are looked at, and those of which no copy can be made.

use crate::common::{Place, Program, craton, library, said};
use serde_json::Value;
use std::process::Command;

/// Has 160 MiB in objects that a list keeps, loses a tree of 3 objects, and does not sleep.
const RUNS: &str = "\
    __attribute__((noinline)) static void lose(void) {\n\
        void **a = malloc(48), **b = malloc(48), **c = malloc(48);\n\
        a[0] = b; b[0] = c; c[0] = 0; printf(\"tree %p\\n\", a);\n\
    }\n\
    static volatile long counts;\n\
    static void *thread(void *x) { for (;;) counts++; return x; }\n\
    int main(void) {\n\
        void **list = 0;\n\
        for (long i = 0; i < 160 * 1024; i++) { void **p = memset(malloc(1024), 0, 1024); p[i % 128] = list; list = p; }\n\
        global = list; list = 0; printf(\"last %p\\n\", global);\n\
        lose(); wipe(); pthread_t t; pthread_create(&t, 0, thread, 0); wait_here();\n\
        long before = counts; while (counts == before); return 0;\n\
    }\n";

fn rows(text: &str) -> Value {
    let document: Value = serde_json::from_str(text).unwrap();
    document["rows"][0].clone()
}

fn check_leaks(program: &Program, found: &Value) {
    let groups = found["groups"].as_array().unwrap();
    assert_eq!((groups.len(), found["lost_objects"].as_u64()), (1, Some(3)), "{groups:?}");
    assert_eq!(groups[0]["address"].as_str(), Some(program.address("tree")));
    assert!(found["objects"].as_u64() > Some(160 * 1024) && found["bytes"].as_u64() > Some(160 << 20), "{groups:?}");
}

#[test]
fn a_process_that_runs_is_copied_and_goes_on() {
    let place = Place::new("copy-runs");
    let program = Program::start(&place, "runs", RUNS);
    let pid = program.pid();
    let ask = |task: &[&str]| said(&mut craton([&["core", "--pid", &pid], task, &["--json", "-"]].concat()));
    let leaks = ask(&["leaks"]);
    // Too short for an announcement.
    assert!(leaks.status == 1 && !leaks.err.contains("stands still"), "{}", leaks.err);
    check_leaks(&program, &rows(&leaks.out));
    let stats = ask(&["stats"]);
    assert_eq!(stats.status, 0, "{}", stats.err);
    let stats = rows(&stats.out);
    let class = stats["classes"].as_array().unwrap().iter().find(|class| class["object_bytes"] == 1024).unwrap();
    // Some are samples of the debugging kit.
    let (objects, samples) = (class["objects"].as_u64().unwrap(), stats["buffers"].as_u64().unwrap());
    assert!(objects <= 160 * 1024 && objects + samples >= 160 * 1024, "{stats}");
    for task in ["verify", "histogram", "users"] {
        assert_eq!(ask(&[task]).status, 0, "{task}");
    }
    let refs = rows(&ask(&["refs", program.address("last")]).out);
    assert_eq!(refs["path"][0]["kind"], "variable", "{refs}");
    let core = place.path("runs.core");
    assert_eq!(ask(&["save", &core]).status, 0);
    assert!(program.end(), "its thread counts on");
}

#[test]
fn where_no_copy_can_be_made_it_is_said_and_the_process_is_searched_where_it_lies() {
    let place = Place::new("copy-none");
    let program = Program::start(&place, "runs", RUNS);
    let pid = program.pid();
    let ask = |task: &[&str]| {
        let mut command = Command::new("sh");
        command.args(["-c", "ulimit -v 150000; exec \"$0\" core --pid \"$@\"", env!("CARGO_BIN_EXE_craton"), &pid]);
        said(command.args(task).env("CRATON_LIBRARY", library()).env_remove("LD_PRELOAD"))
    };
    let leaks = ask(&["leaks", "--json", "-"]);
    let line = leaks.err.lines().next().unwrap_or_default();
    assert!(line.starts_with(&format!("craton: process {pid} stands still for up to ")), "{}", leaks.err);
    assert!(line.contains(" while its heap of ") && line.contains("is read: a copy takes "), "{line}");
    assert!(line.ends_with("MiB, more than this program may have"), "{line}");
    check_leaks(&program, &rows(&leaks.out));
    let core = place.path("runs.core");
    let saved = ask(&["save", &core]);
    assert!(saved.status == 0 && saved.err.contains("a copy takes "), "{}", saved.err);
    let (tree, pid) = (program.address("tree").to_owned(), program.pid());
    let (found, _) = crate::common::row(&[&core, "leaks"]);
    assert_eq!(found["groups"][0]["address"].as_str(), Some(tree.as_str()), "{pid}");
    assert!(program.end());
}

#[test]
fn a_reader_that_has_gone_needs_no_line() {
    let place = Place::new("copy-pipe");
    let program = Program::start(&place, "sleeps", "int main(void) { global = malloc(9); wait_here(); return 0; }\n");
    for task in ["stats", "leaks", "verify"] {
        let (reader, writer) = std::io::pipe().unwrap();
        drop(reader);
        let mut command = craton(["core", "--pid", &program.pid(), task]);
        let ended = command.stdout(writer).stderr(std::process::Stdio::piped()).output().unwrap();
        assert_eq!((ended.status.code(), String::from_utf8_lossy(&ended.stderr).as_ref()), (Some(1), ""), "{task}");
    }
}
