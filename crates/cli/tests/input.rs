//! Pipes in place of files.

use crate::common::{Place, craton, library, said};
use std::process::{Command, Stdio};

/// Each of these would wait for a writer.
#[test]
fn named_pipes_are_refused_by_every_command_that_reads_a_file() {
    let place = Place::new("pipes");
    let pipe = place.path("pipe");
    assert!(Command::new("mkfifo").arg(&pipe).status().unwrap().success());
    let calls: [(&[&str], i32); 13] = [
        (&["profile", &pipe], 1),
        (&["get", &pipe], 1),
        (&["replay", &pipe], 1),
        (&["tune", &pipe], 1),
        (&["trace", "export", &pipe, "--parquet", &place.path("out")], 1),
        (&["core", &pipe, "stats"], 1),
        (&["heap", "info", &pipe], 1),
        (&["heap", "check", &pipe], 1),
        (&["heap", "stats", &pipe], 1),
        (&["heap", "dump", &pipe], 1),
        (&["heap", "repair", &pipe, "--yes"], 1),
        (&["heap", "compact", &pipe], 1),
        (&["run", "--suppress", &pipe, "--", "true"], 2),
    ];
    for (call, status) in calls {
        let said = said(&mut craton(call));
        assert_eq!(said.status, status, "{call:?}: {}", said.err);
        assert!(said.err.contains(&format!("{pipe}: not a file")), "{call:?}: {}", said.err);
    }
    let profile = place.path("profile");
    assert_eq!(said(&mut craton(["run", &format!("--profile={profile}"), "--", "true"])).status, 0);
    let old = said(&mut craton(["profile", &profile, "--diff", &pipe]));
    assert!(old.status == 1 && old.err.contains(&format!("{pipe}: not a file")), "{}", old.err);
}

#[test]
fn pipes_of_a_shell_are_read() {
    for (call, reads) in [
        ("echo 'no trace' | \"$0\" replay /dev/stdin", "at byte 0 (header): no trace of a page heap"),
        ("echo 'no kind' | \"$0\" run --suppress /dev/stdin -- true", "/dev/stdin:1: "),
    ] {
        let mut command = Command::new("sh");
        command.args(["-c", call, env!("CARGO_BIN_EXE_craton")]).env("CRATON_LIBRARY", library()).stdin(Stdio::null());
        let said = said(&mut command);
        assert!(said.status != 0 && said.err.contains(reads), "{call}: {}", said.err);
    }
}
