//! Traces of real programs.

use crate::common::{Place, Said, craton, library, said};
use craton_lab::replay::Trace;
use std::fs;

/// Large objects, each a span; ends as its first argument says.
const PROGRAM: &str = r#"
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static void work(int n) {
    for (int i = 0; i < n; i++) {
        char *volatile p = malloc((1 << 20) + 8192 * (i % 40));
        free(p);
    }
}

int main(int argc, char **argv) {
    const char *what = argv[1];
    int n = argc > 2 ? atoi(argv[2]) : 0;
    if (strcmp(what, "fork") == 0) {
        work(n);
        if (fork() == 0) {
            work(20 * n);
            exit(0);
        }
        wait(NULL);
    } else if (strcmp(what, "close") == 0) {
        for (int fd = 3; fd < 1024; fd++) close(fd);
        int mine = open(argv[3], O_RDWR | O_CREAT, 0600);
        for (int fd = 100; fd < 1000; fd++) dup2(mine, fd);
    } else if (strcmp(what, "option") == 0) {
        int (*set)(const char *, const char *) = (int (*)(const char *, const char *))dlsym(RTLD_DEFAULT, "craton_option_set");
        char *early = malloc(3 << 20);
        work(n);
        if (set("trace", argv[3])) return 1;
        free(early);
        work(n);
        if (set("trace", "")) return 1;
    } else if (strcmp(what, "grow") == 0) {
        char *p = NULL;
        for (int i = 1; i <= n; i++) {
            p = realloc(p, (size_t)i << 20);
            p[((size_t)i << 20) - 1] = 1;
        }
    }
    work(n);
    if (strcmp(what, "kill") == 0) kill(getpid(), SIGKILL);
    puts("done");
    return 0;
}
"#;

struct Recorded {
    place: Place,
    program: String,
    file: String,
}

impl Recorded {
    fn new(name: &str) -> Self {
        let place = Place::new(name);
        let (program, file) = (place.compile("program", PROGRAM, &[]), place.path("trace"));
        Self { place, program, file }
    }

    fn run(&self, options: &[&str], args: &[&str]) -> Said {
        let run = ["run", "--trace", &self.file];
        said(&mut craton([&run, options, &["--", &self.program], args].concat()))
    }

    fn replay(&self, options: &[&str]) -> Said {
        said(&mut craton([&["replay", &self.file], options].concat()))
    }

    fn row(&self) -> serde_json::Value {
        let said = self.replay(&["--json", "-"]);
        assert_eq!(said.status, 0, "{}", said.err);
        let document: serde_json::Value = serde_json::from_str(&said.out).unwrap();
        assert_eq!(document["name"], "replay");
        document["rows"][0].clone()
    }
}

/// Events of a thousand objects allocated and freed; a few spans are reused at once.
const LEAST: u64 = 1900;

fn number(row: &serde_json::Value, key: &str) -> u64 {
    row[key].as_u64().unwrap_or_else(|| panic!("no number {key}: {row}"))
}

#[test]
fn a_program_is_recorded_and_replayed() {
    let recorded = Recorded::new("replay");
    for options in [&[] as &[&str], &["--stats"]] {
        let ran = recorded.run(options, &["work", "1000"]);
        assert_eq!((ran.status, ran.out.as_str()), (0, "done\n"), "{}", ran.err);
        assert_eq!(ran.err.contains("processes served"), !options.is_empty(), "{}", ran.err);
        let row = recorded.row();
        assert!((LEAST..2500).contains(&number(&row, "events")), "{row}");
        assert_eq!((number(&row, "unchecked_events"), number(&row, "dropped_events")), (0, 0));
        assert!(number(&row, "peak_demand_bytes") > 1 << 20, "{row}");
        assert_eq!(row["heap"], "temeraire");
        let text = recorded.replay(&["-o", "thp=always", "-o", "fit=fullest", "-o", "regions=0"]);
        assert_eq!(text.status, 0, "{}", text.err);
        for head in ["events", "peak demand", "overhead", "hugepage coverage", "calls: unback", "events a second"] {
            assert!(text.out.lines().any(|line| line.starts_with(head)), "{head}: {}", text.out);
        }
        assert!(!text.out.contains("dropped") && !text.out.contains("has no end"), "{}", text.out);
    }
}

#[test]
fn objects_that_grow_are_in_it() {
    use craton_lab::replay::Kind;
    let recorded = Recorded::new("grow");
    assert_eq!(recorded.run(&[], &["grow", "30"]).status, 0);
    let bytes = fs::read(&recorded.file).unwrap();
    let trace = Trace::read(&bytes).unwrap();
    let resized = trace.events().filter(|event| event.kind == Kind::Resize).count();
    assert!(resized >= 10, "{resized}");
    let row = recorded.row();
    assert!(number(&row, "peak_demand_bytes") >= 30 << 20);
    assert!(number(&row, "peak_backed_bytes") >= number(&row, "peak_demand_bytes"), "{row}");
}

#[test]
fn what_a_killed_program_did_is_there_to_its_last_call() {
    let recorded = Recorded::new("kill");
    // Less than a window of the file, and more.
    for (n, events) in [("100", 200), ("40000", 80_000)] {
        let ran = recorded.run(&[], &["kill", n]);
        assert_eq!(ran.status, 128 + 9, "{}", ran.err);
        let row = recorded.row();
        assert!((events * LEAST / 2000..events + 500).contains(&number(&row, "events")), "{row}");
        assert!((1..=255).contains(&number(&row, "unchecked_events")), "{row}");
        let text = recorded.replay(&[]).out;
        assert!(text.contains("the recording has no end") && text.contains("no checksum covers the last"), "{text}");
    }
}

#[test]
fn the_bound_is_kept_and_what_was_dropped_is_counted() {
    let recorded = Recorded::new("bound");
    for bound in [1, 255, 256, 300] {
        let option = format!("trace_events={bound}");
        assert_eq!(recorded.run(&["-o", &option], &["work", "1000"]).status, 0);
        let row = recorded.row();
        assert_eq!(number(&row, "events"), bound);
        let dropped = number(&row, "dropped_events");
        assert!((LEAST - bound..2500).contains(&dropped), "{row}");
        assert!(recorded.replay(&[]).out.contains("later events that were dropped: "));
        assert!(fs::metadata(&recorded.file).unwrap().len() <= 4096 * (1 + bound.div_ceil(255)));
    }
    assert_eq!(recorded.run(&["-o", "trace_events=300"], &["kill", "1000"]).status, 128 + 9);
    let text = recorded.replay(&[]).out;
    assert!(text.contains("the number of dropped events is unknown"), "{text}");
}

#[test]
fn a_program_can_record_a_part_of_itself() {
    let recorded = Recorded::new("part");
    let run = ["run", "--", &recorded.program, "option", "500", &recorded.file];
    let ran = said(&mut craton(run));
    assert_eq!((ran.status, ran.out.as_str()), (0, "done\n"), "{}", ran.err);
    // Objects from before the recording are in it: their frees can be replayed.
    let row = recorded.row();
    assert!((980..1300).contains(&number(&row, "events")), "{row}");
    assert!(number(&row, "peak_demand_bytes") >= 3 << 20, "{row}");
}

#[test]
fn a_forked_child_leaves_its_parents_file_alone() {
    let recorded = Recorded::new("fork");
    // One file for all, and not one for each.
    let option = format!("trace={}", recorded.file);
    assert_eq!(said(&mut craton(["run", "-o", &option, "--", &recorded.program, "fork", "500"])).status, 0);
    let row = recorded.row();
    assert!((LEAST..2500).contains(&number(&row, "events")), "twice 500 spans of the parent: {row}");
    assert_eq!(number(&row, "unchecked_events"), 0);
}

/// Files of a name with a number behind it.
fn numbered(place: &Place, name: &str) -> Vec<std::path::PathBuf> {
    let files = fs::read_dir(&place.0).unwrap().map(|entry| entry.unwrap().path());
    let is_meant = |path: &std::path::PathBuf| path.file_name().unwrap().to_str().unwrap().starts_with(name);
    files.filter(is_meant).collect()
}

#[test]
fn the_program_that_is_meant_is_recorded_behind_others() {
    let recorded = Recorded::new("behind");
    let file = recorded.file.as_str();
    for command in [
        &["bash", "-c", "\"$0\" work 10; \"$0\" work 1000; exit 0"] as &[&str],
        &["sh", "-c", "timeout 600 \"$0\" work 1000; true"],
        &["timeout", "600", "env", "A=b", "bash", "-c", "exec \"$0\" work 1000"],
        &["nice", "bash", "-c", "(\"$0\" work 1000); echo >/dev/null"],
    ] {
        let said = said(&mut craton([&["run", "--trace", file, "--"], command, &[recorded.program.as_str()]].concat()));
        assert!(said.status == 0 && said.out.ends_with("done\n"), "{command:?}: {}", said.err);
        let expected = format!("processes were recorded; {file} is the largest, of process ");
        assert!(said.err.contains(&expected) && said.err.contains(" (program) with "), "{}", said.err);
        assert_eq!(said.err.lines().count(), 1, "{}", said.err);
        assert!((LEAST..2500).contains(&number(&recorded.row(), "events")), "{command:?}");
        assert!(!numbered(&recorded.place, "trace.").is_empty(), "the others have files, too");
    }
}

#[test]
fn one_process_has_the_file_alone_and_older_files_are_left_alone() {
    let recorded = Recorded::new("alone");
    let old = format!("{}.1", recorded.file);
    fs::write(&old, "something").unwrap();
    let ran = recorded.run(&[], &["work", "1000"]);
    assert_eq!((ran.status, ran.err.as_str()), (0, ""));
    assert!(number(&recorded.row(), "events") >= LEAST);
    assert_eq!(numbered(&recorded.place, "trace."), [std::path::PathBuf::from(&old)]);
    assert_eq!(fs::read_to_string(&old).unwrap(), "something");
}

#[test]
fn a_missing_trace_has_its_reason_and_one_file_has_one_name() {
    let place = Place::new("no-trace");
    let (program, file) = (place.compile("static", "int main(void) { return 5; }", &["-static"]), place.path("trace"));
    let ran = said(&mut craton(["run", "--trace", &file, "--", &program]));
    let why = "is linked statically: Craton serves it only where libcraton.a is linked into it\n";
    assert!(ran.status == 5 && ran.err.contains("no process was recorded") && ran.err.ends_with(why), "{}", ran.err);
    let ran = said(&mut craton(["run", "--trace", &file, "--", "bash", "-c", "exec \"$0\"", &program]));
    assert!(ran.status == 5 && ran.err.contains(" (bash) became static by exec, which was not served"), "{}", ran.err);
    for (flag, option) in [("--trace=a", "trace=b"), ("--profile=a", "profile_file=b")] {
        let both = said(&mut craton(["run", "-o", option, flag, "--", "echo", "ran"]));
        assert_eq!((both.status, both.out.as_str()), (2, ""), "{}", both.err);
        let (flag, _) = flag.split_once('=').unwrap();
        assert!(both.err.contains(&format!("{flag} and -o {option} both name the file")), "{}", both.err);
    }
}

#[test]
fn a_place_for_the_number_makes_a_file_for_each_process_and_no_other() {
    let recorded = Recorded::new("children");
    let script = "\"$0\" work 1000; \"$0\" work 1000; exit 3";
    let file = recorded.place.path("each.%p");
    let said = said(&mut craton(["run", "--trace", &file, "--", "bash", "-c", script, &recorded.program]));
    assert_eq!((said.status, said.out.as_str(), said.err.as_str()), (3, "done\ndone\n", ""));
    let files = numbered(&recorded.place, "each.");
    assert_eq!(files.len(), 3, "{files:?}");
    let events = |path: &std::path::PathBuf| Trace::read(&fs::read(path).unwrap()).unwrap().len();
    assert_eq!(files.iter().filter(|path| events(path) >= LEAST).count(), 2, "{files:?}");
}

#[test]
fn a_forked_worker_is_recorded_in_its_own_file() {
    let recorded = Recorded::new("worker");
    let ran = recorded.run(&[], &["fork", "500"]);
    assert!(ran.status == 0 && ran.err.contains("2 processes were recorded"), "{}", ran.err);
    // The child does 20 times as much.
    let row = recorded.row();
    assert!(number(&row, "events") > 15 * LEAST / 2 && number(&row, "unchecked_events") == 0, "{row}");
    let parents = numbered(&recorded.place, "trace.");
    let trace = fs::read(&parents[0]).unwrap();
    assert!(parents.len() == 1 && (LEAST / 2..2500).contains(&Trace::read(&trace).unwrap().len()), "{parents:?}");
}

#[test]
fn a_program_that_closes_our_descriptor_keeps_its_own_files() {
    let recorded = Recorded::new("close");
    let mine = recorded.place.path("mine");
    let ran = recorded.run(&[], &["close", "40000", &mine]);
    assert_eq!(ran.status, 0, "{}", ran.err);
    assert_eq!(fs::metadata(&mine).unwrap().len(), 0, "nothing was written to a file of the program's");
    let row = recorded.row();
    assert!(number(&row, "events") > 60_000 && number(&row, "dropped_events") > 10_000, "{row}");
}

#[test]
fn a_limit_on_file_sizes_ends_the_recording_and_not_the_program() {
    let recorded = Recorded::new("limit");
    let script = "ulimit -f 1500; exec \"$@\"";
    let craton = env!("CARGO_BIN_EXE_craton");
    let run =
        ["-c", script, "bash", craton, "run", "--trace", &recorded.file, "--", &recorded.program, "work", "40000"];
    let said = said(std::process::Command::new("bash").args(run).env("CRATON_LIBRARY", library()));
    assert_eq!((said.status, said.out.as_str()), (0, "done\n"), "{}", said.err);
    assert!(number(&recorded.row(), "dropped_events") > 10_000);
}

#[test]
fn a_path_that_cannot_be_written_is_one_line_and_only_trace_refuses_to_run() {
    let recorded = Recorded::new("unwritable");
    let folder = recorded.place.path("");
    for (file, why) in [
        ("/dev/null".to_owned(), "not an ordinary file"),
        (folder.trim_end_matches('/').to_owned(), "it is a folder"),
        (recorded.place.path("none/trace"), "no such folder"),
    ] {
        let typed = said(&mut craton(["run", "--trace", &file, "--", &recorded.program, "work", "10"]));
        assert_eq!((typed.status, typed.out.as_str()), (2, ""), "nothing runs");
        let why_typed = why.replace("no such", "there is no");
        assert!(typed.err.starts_with(&format!("craton: --trace {file}: {why_typed}")), "{}", typed.err);
        let option = format!("trace={file}");
        let ran = said(&mut craton(["run", "-o", &option, "--", &recorded.program, "work", "10"]));
        assert_eq!((ran.status, ran.out.as_str()), (0, "done\n"));
        assert_eq!(ran.err, format!("craton: trace: cannot write {file}: {why}; nothing is recorded\n"));
    }
    let comma = said(&mut craton(["run", "--trace", "/tmp/a,b", "--", "true"]));
    assert_eq!(comma.status, 2);
    assert!(comma.err.contains("--trace") && comma.err.contains("comma"), "{}", comma.err);
}

#[test]
fn a_broken_file_is_an_error_with_file_and_place() {
    let recorded = Recorded::new("broken");
    assert_eq!(recorded.run(&[], &["work", "1000"]).status, 0);
    let good = fs::read(&recorded.file).unwrap();
    let fails = |bytes: &[u8], text: &str| {
        fs::write(&recorded.file, bytes).unwrap();
        let said = recorded.replay(&[]);
        assert_eq!((said.status, said.out.as_str()), (1, ""));
        assert!(said.err.starts_with(&format!("craton: {}: {text}", recorded.file)), "{text}: {}", said.err);
        assert_eq!(said.err.lines().count(), 1, "{}", said.err);
    };
    fails(&good[..good.len() - 1000], &format!("at byte {} (block ", good.len() - 1000));
    fails(&good[..8192], "at byte 8192 (block 2): the file ends, and the block before is not marked as the last one");
    let changed = |at: usize| {
        let mut bytes = good.clone();
        bytes[at] ^= 1;
        bytes
    };
    fails(&changed(8), "at byte 8 (header): version 0 of the format; this program reads version 1");
    fails(&changed(5000), "at byte 8176 (block 1): the checksum or number of events of this block is wrong");
    fails(b"not a trace", "at byte 0 (header): no trace of a page heap");
    fails(b"", "at byte 0 (header): no trace of a page heap");
    let device = said(&mut craton(["replay", "/dev/zero"]));
    assert_eq!((device.status, device.err.contains("/dev/zero is a device")), (1, true), "{}", device.err);
    fs::remove_file(&recorded.file).unwrap();
    let absent = recorded.replay(&[]);
    assert_eq!(absent.status, 1);
    assert!(absent.err.contains(&format!("cannot read {}: ", recorded.file)), "{}", absent.err);
}

#[test]
fn a_wrong_heap_or_option_is_wrong_usage() {
    for (args, text) in [
        (["--heap", "slab"], "--heap slab: no such heap; heaps: temeraire, frames"),
        (["-o", "fit=worst"], "-o fit=worst: bad value; options: release_rate=BYTES"),
        (["-o", "release_rate=1Q"], "-o release_rate=1Q: bad value"),
        (["-o", "thp"], "-o thp: not of the form KEY=VALUE"),
    ] {
        let said = said(&mut craton(["replay", "/dev/null", args[0], args[1]]));
        assert_eq!(said.status, 2);
        assert!(said.err.starts_with(&format!("craton: {text}")), "{}", said.err);
    }
}

#[test]
fn settings_are_found_and_proved_on_the_program() {
    let recorded = Recorded::new("tune");
    assert_eq!(recorded.run(&[], &["grow", "40"]).status, 0);
    let file = recorded.place.path("tune.json");
    let tune = |options: &[&str]| said(&mut craton([&["tune", &recorded.file], options].concat()));
    let found = tune(&["--goal", "rss", "--json", &file, "--runs", "1", "--", &recorded.program, "grow", "40"]);
    assert_eq!(found.status, 0, "{}", found.err);
    let document: serde_json::Value = serde_json::from_str(&fs::read_to_string(&file).unwrap()).unwrap();
    let rows = document["rows"].as_array().unwrap();
    let best: Vec<_> = rows.iter().filter(|row| row["best"] == true).collect();
    assert_eq!((best.len(), &rows[0]["options"]), (1, &"default".into()), "{found:?}");
    assert!(number(best[0], "steady_backed_bytes") <= number(&rows[0], "steady_backed_bytes"), "{}", best[0]);
    for setting in ["caches=cpu", "thread_cache=256K"] {
        assert!(found.out.contains(setting), "{}", found.out);
    }
    if best[0]["options"] != "default" {
        let line = format!("\nCRATON_OPTIONS={}\n", best[0]["options"].as_str().unwrap());
        assert!(found.out.contains(&line) && found.out.contains("the program itself"), "{}", found.out);
    }
    for (options, status, part) in
        [(vec!["--goal", "speed"], 2, "rss, coverage, balanced"), (vec!["--", "no-such-program"], 1, "no-such-program")]
    {
        let wrong = tune(&options);
        assert_eq!((wrong.status, wrong.out.as_str()), (status, ""), "{wrong:?}");
        assert!(wrong.err.contains(part), "{}", wrong.err);
    }
}

#[test]
fn a_trace_is_exported_as_a_table() {
    let recorded = Recorded::new("export");
    assert_eq!(recorded.run(&[], &["none", "50"]).status, 0);
    let table = recorded.place.path("trace.parquet");
    let export = |trace: &str, to: &str| said(&mut craton(["trace", "export", trace, "--parquet", to]));
    let done = export(&recorded.file, &table);
    assert_eq!((done.status, done.out.as_str(), done.err.as_str()), (0, "", ""));
    let bytes = fs::read(&table).unwrap();
    assert!(bytes.starts_with(b"PAR1") && bytes.ends_with(b"PAR1"));
    assert!(bytes.windows(24).any(|part| part == b"craton.unchecked_events\x18"), "no notes in the footer");
    for (trace, to, part) in [
        (&recorded.program, table.as_str(), "no trace of a page heap"),
        (&recorded.file, "/no/such/folder/x", "give --parquet another path"),
    ] {
        let wrong = export(trace, to);
        assert_eq!((wrong.status, wrong.out.as_str()), (1, ""));
        assert!(wrong.err.contains(part), "{}", wrong.err);
    }
}
