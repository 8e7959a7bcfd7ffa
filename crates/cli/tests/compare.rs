//! `craton compare` with the real library.

use crate::common::{Place, craton, into_said, library, port, said, with_default_signals};
use serde_json::Value;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Stdio;

fn json(path: &str) -> Value {
    serde_json::from_str(&fs::read_to_string(path).unwrap()).unwrap()
}

#[test]
fn the_table_and_the_document_agree() {
    let place = Place::new("both");
    let file = place.path("result.json");
    fs::write(&file, "x".repeat(100_000)).unwrap();
    let said = said(&mut craton(["compare", "--peers", "none", "--runs", "2", "--json", &file, "--", "ls", "/"]));
    assert_eq!((said.status, said.err.as_str()), (0, ""));
    for text in [
        "glibc",
        "craton",
        "×",
        "95 %",
        "wall time",
        "CPU time",
        "peak RSS",
        "steady RSS",
        "page faults",
        "major faults",
        "on hugepages",
        "share",
    ] {
        assert!(said.out.contains(text), "{text}: {}", said.out);
    }
    assert!(!said.out.contains('\x1b') && !said.out.contains("bin\n"), "{}", said.out);

    let document = json(&file);
    assert_eq!(document["name"], "compare");
    for key in ["machine", "commit", "command", "rows", "ratios"] {
        assert!(!document[key].is_null(), "{key}");
    }
    assert!(document["command"].as_array().unwrap().ends_with(&["--".into(), "ls".into(), "/".into()]));
    let rows = document["rows"].as_array().unwrap();
    let order: Vec<&str> = rows.iter().map(|row| row["allocator"].as_str().unwrap()).collect();
    assert_eq!(order, ["glibc", "craton", "glibc", "craton"]);
    assert_eq!(document["allocators"][1]["library"], "libcraton.so");
    for row in rows {
        assert_eq!((&row["workload"], &row["status"]), (&"ls".into(), &"ok".into()));
        for number in
            ["wall_s", "cpu_s", "peak_rss_bytes", "user_s", "sys_s", "minor_faults", "major_faults", "hugepage_bytes"]
        {
            assert!(row[number].is_number(), "{number}: {row}");
        }
        assert!(row["wall_s"].as_f64() > Some(0.0) && row["peak_rss_bytes"].as_u64() > Some(0), "{row}");
    }
    for ratio in ["time_vs_glibc", "rss_vs_glibc"] {
        assert!(document["ratios"][ratio].as_f64() > Some(0.0), "{ratio}");
    }
}

#[test]
fn a_document_on_standard_output_stands_alone() {
    let said = said(&mut craton([
        "compare", "--peers", "none", "--runs", "1", "--warmup", "0", "--json", "-", "--", "ls", "/",
    ]));
    assert_eq!(said.status, 0, "{}", said.err);
    let document: Value = serde_json::from_str(&said.out).unwrap();
    assert_eq!(document["rows"].as_array().unwrap().len(), 2);
    assert!(said.err.contains("peak RSS"), "{}", said.err);
}

#[test]
fn a_document_that_cannot_be_written_is_known_before_the_runs() {
    let place = Place::new("before");
    let mark = place.path("mark");
    for path in [place.path("absent/result.json"), place.path("")] {
        let said = said(&mut craton(["compare", "--peers", "none", "--json", &path, "--", "touch", &mark]));
        assert_eq!((said.status, said.out.as_str()), (1, ""));
        assert!(said.err.contains(&path) && said.err.contains("nothing was done"), "{}", said.err);
    }
    assert!(!fs::exists(&mark).unwrap());
}

#[test]
fn failed_runs_are_rows_with_their_status() {
    let place = Place::new("failed");
    let file = place.path("result.json");
    let args = [
        "compare",
        "--peers",
        "none",
        "--runs",
        "2",
        "--json",
        &file,
        "--",
        "sh",
        "-c",
        "echo 'this is why' >&2; exit 3",
    ];
    let said = said(&mut craton(args));
    assert_eq!(said.status, 1);
    assert_eq!(said.out.matches("  exit 3\n").count(), 4, "{}", said.out);
    assert_eq!(said.out.matches("\n  this is why\n").count(), 2, "{}", said.out);
    assert!(said.err.contains("4 of 4 runs did not succeed"), "{}", said.err);
    let document = json(&file);
    assert!(document["rows"].as_array().unwrap().iter().all(|row| row["status"] == "exit 3"));
    assert_eq!(document["ratios"], serde_json::json!({}));
}

#[test]
fn a_program_that_cannot_be_started_is_known_before_the_runs() {
    let place = Place::new("cannot-start");
    let (plain, script) = (place.path("plain"), place.path("script"));
    fs::write(&plain, "").unwrap();
    for (program, what) in
        [("no-such-program-here", "on PATH"), (&plain, "executable"), (&place.path(""), "it is a folder")]
    {
        let said = said(&mut craton(["compare", "--peers", "none", "--", program]));
        assert_eq!((said.status, said.out.as_str()), (1, ""));
        assert!(said.err.contains(&format!("cannot run {program}: ")) && said.err.contains(what), "{}", said.err);
    }
    // Only the kernel finds out.
    fs::write(&script, "#!/no/such/interpreter\n").unwrap();
    fs::set_permissions(&script, fs::Permissions::from_mode(0o755)).unwrap();
    let said = said(&mut craton(["compare", "--peers", "none", "--", &script]));
    assert_eq!(said.status, 1);
    assert!(said.out.contains(&format!("cannot start: {script}")), "{}", said.out);
}

#[test]
fn a_run_that_takes_too_long_is_ended() {
    let said =
        said(&mut craton(["compare", "--peers", "none", "--runs", "1", "--timeout", "0.2", "--", "sleep", "1000"]));
    assert_eq!(said.status, 1);
    assert_eq!(said.out.matches("timed out").count(), 2, "{}", said.out);
}

#[test]
fn a_program_stays_on_the_processors_asked_for() {
    let script = "test \"$(grep Cpus_allowed_list /proc/self/status | cut -f 2)\" = 0";
    let on = |list| {
        said(&mut craton(["compare", "--peers", "none", "--runs", "1", "--pin", list, "--", "sh", "-c", script]))
    };
    assert_eq!(on("0").status, 0, "{}", on("0").out);
    for wrong in ["", "x", "99999"] {
        let said = on(wrong);
        assert!(said.status == 2 && said.err.contains(&format!("--pin {wrong}: give numbers")), "{}", said.err);
    }
}

/// From C.
fn peer(place: &Place, name: &str, source: &str) -> String {
    format!("{name}={}", place.compile(&format!("{name}.so"), source, &["-shared", "-fPIC"]))
}

#[test]
fn a_peer_that_crashes_fails_or_does_not_serve_is_a_row_of_its_own() {
    let place = Place::new("peers");
    let crashes =
        peer(&place, "crashes", "#include <stdlib.h>\n__attribute__((constructor)) void f(void) { abort(); }");
    let fails = peer(&place, "fails", "#include <unistd.h>\n__attribute__((destructor)) void f(void) { _exit(7); }");
    let idle = peer(&place, "idle", "int nothing;");
    let (json, html) = (place.path("result.json"), place.path("page.html"));
    let list = [crashes, fails, idle].join(",");
    let args = ["compare", "--peers", &list, "--runs", "2", "--json", &json, "--html", &html, "--", "ls", "/"];
    let said = said(&mut craton(args));
    assert_eq!(said.status, 1);
    for text in ["crashes  round 1  signal 6", "fails    round 2  exit 7", "idle     round 1  not served"] {
        assert!(said.out.contains(text), "{text}: {}", said.out);
    }
    assert!(said.out.contains("\nidle: no process used its malloc"), "{}", said.out);
    let document = self::json(&json);
    let ok = |row: &&Value| row["status"] == "ok";
    assert_eq!(document["rows"].as_array().unwrap().iter().filter(ok).count(), 4, "glibc and craton are not lost");
    let ratios = document["ratios"].as_object().unwrap();
    assert!(ratios.contains_key("time_vs_glibc") && !ratios.contains_key("time_vs_fails"), "{ratios:?}");
    let page = fs::read_to_string(&html).unwrap();
    for text in ["<html", "<svg", "signal 6", "exit 7", "not served"] {
        assert!(page.contains(text), "{text}");
    }
    for outside in ["<script", "<link", "src=", "href=\"http", "@import", "url("] {
        assert!(!page.contains(outside), "{outside}");
    }
}

#[test]
fn options_are_for_the_runs_on_craton() {
    let place = Place::new("options");
    let file = place.path("result.json");
    let script = "test \"$CRATON_OPTIONS\" = \"${LD_PRELOAD:+thp=never,stats=1}\" && ls / | sort";
    let options = ["--peers", "none", "--runs", "1", "--json", &file, "-o", "thp=never", "-o", "stats=1"];
    let args = [&["compare"], &options as &[&str], &["--", "sh", "-c", script]].concat();
    let said = said(&mut craton(args));
    assert_eq!(said.status, 0, "{}", said.out);
    assert!(said.out.contains("\ncraton: CRATON_OPTIONS=thp=never,stats=1\n"), "{}", said.out);
    assert_eq!(json(&file)["allocators"][1]["variables"]["CRATON_OPTIONS"], "thp=never,stats=1");
}

#[test]
fn a_peer_that_is_not_there_is_known_before_the_runs() {
    for (list, part) in [("no-such", "peers: all, none"), ("x=/nonexistent/x.so", "x.so"), ("glibc", "always")] {
        let said = said(&mut craton(["compare", "--peers", list, "--", "true"]));
        assert!(said.status == 2 && said.out.is_empty() && said.err.contains(part), "{list}: {}", said.err);
    }
    let said = said(&mut craton(["compare", "--peers", "x=/etc/passwd", "--", "true"]));
    assert!(said.status == 2 && said.err.contains("no shared library"), "{}", said.err);
}

#[test]
fn a_static_program_is_not_served() {
    let place = Place::new("not-served");
    let program = place.compile("static", "int main(void) { return 0; }", &["-static"]);
    let said = said(&mut craton(["compare", "--peers", "none", "--runs", "1", "--", &program]));
    assert_eq!(said.status, 1);
    assert!(said.out.contains("not served") && said.out.contains("is linked statically"), "{}", said.out);
}

/// A position-dependent program that takes malloc's address has a stub for it.
#[test]
fn a_stub_is_no_allocator_of_the_programs_own() {
    let place = Place::new("stub");
    let source = "#include <stdlib.h>\nint main(void) { void *(*volatile f)(size_t) = malloc; return f(9) == 0; }";
    let program = place.compile("stub", source, &["-no-pie", "-fno-pie"]);
    let said = said(&mut craton(["compare", "--peers", "none", "--runs", "1", "--", &program]));
    assert_eq!(said.status, 0, "{}", said.out);
    assert!(!said.out.contains("brings along"), "{}", said.out);
}

#[test]
fn a_program_that_is_not_served_below_one_that_is_does_not_count() {
    let place = Place::new("not-served-below");
    let source = "#include <stdlib.h>\n#include <string.h>\n#include <unistd.h>\n\
        int main(void) { memset(malloc(9000000), 1, 9000000); usleep(200000); return 0; }";
    let program = place.compile("static", source, &["-static"]);
    let said =
        said(&mut craton(["compare", "--peers", "none", "--runs", "1", "--", "sh", "-c", &format!("{program}; true")]));
    assert_eq!(said.status, 1, "{}", said.out);
    assert!(said.out.contains("the largest process, static, ran without it"), "{}", said.out);
}

#[test]
fn what_leaves_the_group_is_killed_too() {
    let marker = format!("{}.25", 1000 + std::process::id());
    let script = format!("setsid sleep {marker} & sleep 1000");
    let said =
        said(&mut craton(["compare", "--peers", "none", "--runs", "1", "--timeout", "0.3", "--", "sh", "-c", &script]));
    assert_eq!(said.out.matches("timed out").count(), 2, "{}", said.out);
    let left = fs::read_dir("/proc").unwrap().flatten().filter(|entry| {
        fs::read(entry.path().join("cmdline"))
            .is_ok_and(|line| String::from_utf8_lossy(&line) == format!("sleep\0{marker}\0"))
    });
    assert_eq!(left.count(), 0);
}

#[test]
fn documents_neither_replace_each_other_nor_an_earlier_one_for_nothing() {
    let place = Place::new("documents");
    let path = place.path("same.json");
    let both = said(&mut craton(["compare", "--peers", "none", "--json", &path, "--html", &path, "--", "true"]));
    assert!(both.status == 2 && both.err.contains("the same file"), "{}", both.err);
    assert!(!Path::new(&path).exists(), "a file that was made for nothing");
    fs::write(&path, "earlier").unwrap();
    let script = place.path("script");
    fs::write(&script, "#!/no/such/interpreter\n").unwrap();
    fs::set_permissions(&script, fs::Permissions::from_mode(0o755)).unwrap();
    let none = said(&mut craton(["compare", "--peers", "none", "--json", &path, "--", &script]));
    assert!(none.status == 1 && none.err.contains("no document"), "{}", none.err);
    assert_eq!(fs::read_to_string(&path).unwrap(), "earlier");
}

#[test]
fn craton_preloaded_already_would_be_compared_with_itself() {
    let said = said(craton(["compare", "--peers", "none", "--", "true"]).env("LD_PRELOAD", library()));
    assert_eq!(said.status, 1);
    assert!(said.err.contains("LD_PRELOAD") && said.err.contains("unset"), "{}", said.err);
}

#[test]
fn stopped_early_it_shows_what_there_is() {
    let place = Place::new("stopped");
    let (file, mark) = (place.path("result.json"), place.path("mark"));
    // After the proof and a round, the second run on glibc never ends.
    let script = format!("echo >>{mark}; [ $(wc -l <{mark}) -lt 5 ] || sleep 1000; ls / >{mark}.out");
    let args =
        ["compare", "--peers", "none", "--runs", "9", "--warmup", "0", "--json", &file, "--", "sh", "-c", &script];
    let child = with_default_signals(&mut craton(args)).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    while fs::read_to_string(&mark).map_or(0, |text| text.lines().count()) < 5 {
        std::thread::sleep(std::time::Duration::from_millis(5));
    }
    // SAFETY: touches no memory; the child is not reaped.
    unsafe { libc::kill(child.id() as i32, libc::SIGINT) };
    let said = into_said(child.wait_with_output().unwrap());
    assert_eq!(said.status, 1, "{}", said.err);
    assert!(said.err.contains("stopped after 2 of 18 runs"), "{}", said.err);
    assert!(said.out.contains("\nglibc      1  ") && said.out.contains("\ncraton     1  "), "{}", said.out);
    assert_eq!(json(&file)["rows"].as_array().unwrap().len(), 2);
}

/// `program PORT` is a server with a child that holds 32 MB; `program PORT N` asks it N times.
const SERVER: &str = r#"
#include <arpa/inet.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

static double now(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return time.tv_sec + time.tv_nsec / 1e9;
}

int main(int count, char **arguments) {
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons(atoi(arguments[1]))};
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    int one = 1, listener = socket(AF_INET, SOCK_STREAM, 0);
    if (count > 2) {
        char text[5];
        double start = now();
        for (int i = 0; i < atoi(arguments[2]); i++) {
            int connection = socket(AF_INET, SOCK_STREAM, 0);
            if (connect(connection, (struct sockaddr *)&address, sizeof address)) return 1;
            if (read(connection, text, 5) != 5 || memcmp(text, "pong\n", 5)) return 2;
            close(connection);
        }
        return printf("did %.0f a second\n", atoi(arguments[2]) / (now() - start)) < 0;
    }
    setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one);
    if (bind(listener, (struct sockaddr *)&address, sizeof address) || listen(listener, 64)) return 3;
    if (fork() == 0) {
        for (int i = 0; i < 32000; i++) memset(malloc(1000), 1, 1000);
        pause();
    }
    for (;;) {
        int connection = accept(listener, 0, 0);
        if (write(connection, "pong\n", 5) != 5) return 4;
        close(connection);
    }
}
"#;

#[test]
fn a_server_is_compared_under_load() {
    let place = Place::new("server");
    let (port, file, page) = (port(), place.path("result.json"), place.path("page.html"));
    let program = place.compile("server", SERVER, &["-w"]);
    let client = |times: u32| format!("'{program}' {port} {times}");
    let command = |load: &str, rounds: [&str; 4]| {
        let mut command = craton(["compare", "--peers", "none", "--ready", &client(1), "--load", load]);
        command.args(rounds).args(["--json", &file, "--html", &page, "--figure", "ops=did ([0-9]+)"]);
        command.args(["--", &program, &port]);
        command
    };
    let right = said(&mut command(&client(500), ["--runs", "1", "--warmup", "1"]));
    assert_eq!((right.status, right.err.as_str()), (0, ""), "{}", right.out);
    for text in ["requests/s", "load's time", "peak PSS", "after load", "compared with glibc"] {
        assert!(right.out.contains(text), "{text}: {}", right.out);
    }
    let document = json(&file);
    for row in document["rows"].as_array().unwrap() {
        assert!(row["load"]["operations_per_s"].as_f64() > Some(1.0), "{row}");
        assert!(row["load"]["after_load_bytes"].as_u64() > Some(32_000_000), "{row}");
        assert!(row["load"]["p99_s"].is_null(), "{row}");
    }
    assert!(document["ratios"]["request_time_vs_glibc"].as_f64() > Some(0.0));
    assert!(fs::read_to_string(&page).unwrap().contains("requests per second"));

    let wrong = said(&mut command("echo no such test; exit 5", ["--runs", "1", "--warmup", "0"]));
    assert_eq!(wrong.status, 1);
    assert!(wrong.out.contains("load failed: exit status: 5") || wrong.err.contains("load failed"), "{wrong:?}");
    assert!(format!("{wrong:?}").contains("no such test"), "{wrong:?}");
}

#[test]
fn a_server_that_never_gets_ready_is_ended_and_the_message_says_what_to_do() {
    let place = Place::new("not-ready");
    let ended = place.path("ended");
    let server =
        format!("trap 'echo ended >>{ended}; exit 0' TERM; echo no licence found >&2; while :; do sleep 0.02; done");
    let mut command = craton(["compare", "--peers", "none", "--runs", "2", "--warmup", "1"]);
    // A busy machine starts the server's shell within two seconds.
    command.args(["--ready", "echo connection refused; exit 1", "--ready-timeout", "2", "--load", "true"]);
    let said = said(command.args(["--", "sh", "-c", &server]));
    assert_eq!(said.status, 1, "{said:?}");
    let text = format!("{} {}", said.out, said.err).split_whitespace().collect::<Vec<_>>().join(" ");
    for part in ["not ready within 2 s", "try the command", "--ready-timeout", "no licence found", "connection refused"]
    {
        assert!(text.contains(part), "{part}: {text}");
    }
    let runs = fs::read_to_string(&ended).unwrap().lines().count();
    assert_eq!(runs, 2, "each allocator's server once, by SIGTERM, and none again: {text}");
}

#[test]
fn options_of_a_server_belong_together() {
    for (args, part) in [
        (vec!["--load", "true"], "--ready"),
        (vec!["--ready", "true"], "--load"),
        (vec!["--duration", "3"], "give --load"),
        (vec!["--ready-timeout", "3"], "give --load"),
        (vec!["--load", "true", "--ready", "true", "--ready-timeout", "0"], "seconds above 0"),
        (vec!["--load", "true", "--ready", "true", "--ready-timeout", "-1"], "seconds above 0"),
        (vec!["--load", "true", "--ready", "true", "--ready-timeout", "soon"], "seconds above 0"),
        (vec!["--load", "true", "--ready", "true", "--figure", "rps=x"], "ops, p50, p99 or p999"),
    ] {
        let said = said(craton(["compare"]).args(args).args(["--", "true"]));
        assert_eq!((said.status, said.out.as_str()), (2, ""));
        assert!(said.err.contains(part), "{}", said.err);
    }
}
