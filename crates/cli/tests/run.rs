use crate::common::{Place, craton, library, said, with_default_signals};
use std::ffi::OsStr;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::process::{Command, Stdio};

const SHOW: [&str; 5] = ["run", "--", "sh", "-c", "echo \"$LD_PRELOAD|$CRATON_OPTIONS\""];

#[test]
fn the_program_takes_the_process() {
    let child = craton(["run", "--", "sh", "-c", "echo $$"]).stdout(Stdio::piped()).spawn().unwrap();
    let id = child.id();
    let output = child.wait_with_output().unwrap();
    assert_eq!(String::from_utf8_lossy(&output.stdout).trim(), id.to_string());
}

#[test]
fn status_and_arguments_are_passed_on() {
    for stats in [&["run"] as &[&str], &["run", "--stats"]] {
        let run = |script: &str| said(craton(stats).args(["--", "sh", "-c", script, "sh", "a b", "--stats"]));
        let said = run("printf '%s,' \"$@\"; exit 37");
        assert_eq!((said.status, said.out.as_str()), (37, "a b,--stats,"), "{}", said.err);
        assert_eq!(run("kill -TERM $$").status, 128 + 15);
        assert_eq!(run("kill -KILL $$").status, 128 + 9);
    }
}

#[test]
fn a_program_that_cannot_be_started_is_status_1() {
    let place = Place::new("start");
    let file = place.path("file");
    fs::write(&file, "").unwrap();
    for stats in [&["run"] as &[&str], &["run", "--stats"]] {
        let absent = said(craton(stats).args(["--", "no-such-program-here"]));
        assert_eq!(absent.status, 1);
        assert!(absent.err.contains("craton: cannot run no-such-program-here: "), "{}", absent.err);
        let said = said(craton(stats).args(["--", &file]));
        assert_eq!(said.status, 1);
        assert!(said.err.contains(&file) && said.err.contains("executable"), "{}", said.err);
        for (name, advice) in [
            (place.path(""), "it is a folder"),
            (place.path("absent"), "check its path"),
            ("no-such-program-here".to_owned(), "is on PATH"),
        ] {
            let said = self::said(craton(stats).args(["--", &name]));
            assert!(said.status == 1 && said.err.contains(advice), "{}", said.err);
            assert_eq!(said.err.contains("PATH"), !name.contains('/'), "{}", said.err);
        }
    }
}

#[test]
fn the_environment_is_kept_and_added_to() {
    let library = library().to_str().unwrap();
    let said = |command: &mut Command| said(command).out.trim().to_owned();
    assert_eq!(said(&mut craton(SHOW)), format!("{library}|"));
    let others = "libc.so.6:libm.so.6";
    assert_eq!(said(craton(SHOW).env("LD_PRELOAD", others)), format!("{library}:{others}|"));
    assert_eq!(said(craton(SHOW).env("CRATON_OPTIONS", "thp=never")), format!("{library}|thp=never"));
    let options = |args: &[&str]| craton([&["run"], args, &SHOW[1..]].concat());
    let mut both = options(&["-o", "thp=always", "-o", "stats=0"]);
    assert_eq!(said(&mut both), format!("{library}|thp=always,stats=0"));
    assert_eq!(said(both.env("CRATON_OPTIONS", "thp=never")), format!("{library}|thp=never,thp=always,stats=0"));
}

#[test]
fn a_bad_option_ends_before_anything_runs_but_that_of_the_variable_does_not() {
    for (option, complaint, by_variable) in [
        ("nonsense=1", "there is no option \"nonsense\"", "no such key"),
        ("hard_limit=-5", "bad value", "bad value"),
        ("thread_cache=99999999999999999999", "bad value", "bad value"),
        ("hardened=2", "0 or 1", "0 or 1"),
    ] {
        for stats in [&["run"] as &[&str], &["run", "--stats"]] {
            let said = said(craton(stats).args(["-o", option, "--", "echo", "ran"]));
            assert_eq!((said.status, said.out.as_str()), (2, ""), "{option}: {}", said.err);
            assert!(said.err.contains(option) && said.err.contains(complaint), "{}", said.err);
        }
        let said = said(craton(["run", "--", "sh", "-c", "exit 7"]).env("CRATON_OPTIONS", option));
        assert_eq!(said.status, 7, "{option} kept the program from running: {}", said.err);
        assert!(said.err.contains(option) && said.err.contains(by_variable), "{}", said.err);
    }
}

#[test]
fn options_reach_the_library() {
    let place = Place::new("options");
    let source = "#include <stdlib.h>\nint main(void) { return malloc(100) == NULL; }";
    let said = said(&mut craton(["run", "-o", "stats=1", "--", &place.compile("program", source, &[])]));
    assert_eq!(said.status, 0);
    assert!(said.err.contains("craton: statistics of process"), "{}", said.err);
}

/// `ls` closes standard error before the library's last word.
#[test]
fn a_stats_file_that_cannot_be_written_is_told_with_the_reason() {
    let place = Place::new("unwritable");
    for (path, why) in [(place.path("absent/file"), "no such folder"), (place.path("."), "it is a folder")] {
        let said = said(&mut craton(["run", "-o", &format!("stats_file={path}"), "--", "ls", "/"]));
        assert_eq!(said.status, 0);
        assert_eq!(said.err, format!("craton: stats_file: cannot append to {path}: {why}\n"));
    }
    let option = format!("stats_file={}", place.path("file"));
    let kept = said(&mut craton(["run", "-o", &option, "--", "ls", "/proc/self/fd"]));
    assert!(!kept.out.contains("250") && kept.err.is_empty(), "a descriptor for nothing: {}", kept.out);
    assert!(fs::exists(place.path("file")).unwrap());
}

#[test]
fn a_limit_on_file_sizes_does_not_end_a_program_at_its_end() {
    let place = Place::new("limit");
    let file = place.path("file");
    let script = "ulimit -f 0; exec \"$0\" run -o stats_file=\"$1\" -- \"$2\"";
    let program = place.compile("program", "int main(void) { return 7; }", &[]);
    let mut command = Command::new("sh");
    command.args(["-c", script, env!("CARGO_BIN_EXE_craton"), &file, &program]).env("CRATON_LIBRARY", library());
    let said = said(command.env_remove("CRATON_OPTIONS").env_remove("LD_PRELOAD"));
    assert_eq!(said.status, 7, "{}", said.err);
    assert_eq!(said.err, format!("craton: stats_file: cannot append to {file}: beyond the limit on file sizes\n"));
}

#[test]
fn a_program_without_its_interpreter_is_told() {
    let place = Place::new("interpreter");
    let script = place.path("script");
    fs::write(&script, "#!/no/such/interpreter\n").unwrap();
    fs::set_permissions(&script, fs::Permissions::from_mode(0o755)).unwrap();
    for stats in [&["run"] as &[&str], &["run", "--stats"]] {
        let said = said(craton(stats).args(["--", &script]));
        assert_eq!(said.status, 1);
        assert!(said.err.contains(&script) && said.err.contains("but not the interpreter"), "{}", said.err);
    }
}

#[test]
fn the_table_shows_the_processes_served() {
    let said = said(&mut craton(["run", "--stats", "--", "sh", "-c", "ls / | sort"]));
    assert_eq!(said.status, 0, "{}", said.err);
    assert!(said.out.contains("tmp\n"));
    let row = |exe: &str| said.err.lines().find(|line| line.split_whitespace().nth(1) == Some(exe)).map(str::to_owned);
    for exe in ["ls", "sort"] {
        let row = row(exe).unwrap_or_else(|| panic!("no row of {exe}: {}", said.err));
        let cells: Vec<&str> = row.split_whitespace().collect();
        assert!(cells[0].parse::<u32>().is_ok() && cells[2] != "0" && cells[3] != "0", "{row}");
    }
    assert!(said.err.lines().last().is_some_and(|line| line.starts_with("total")), "{}", said.err);
    for head in ["pid", "program", "cache refills", "large objects", "huge objects", "heap in use", "metadata"] {
        assert!(said.err.contains(head), "{head}: {}", said.err);
    }
}

#[test]
fn a_stats_file_of_the_callers_gets_its_lines_too() {
    let place = Place::new("file");
    let file = place.path("stats.json");
    let option = format!("stats_file={file}");
    let said = said(&mut craton(["run", "--stats", "-o", &option, "--", "ls", "/"]));
    assert!(said.err.contains("total"), "{}", said.err);
    let text = fs::read_to_string(&file).unwrap();
    let value: serde_json::Value = serde_json::from_str(text.trim()).unwrap();
    assert_eq!(value["exe"], "ls");
}

#[test]
fn a_program_that_allocates_nothing_was_served_as_well() {
    let said = said(&mut craton(["run", "--stats", "--", "true"]));
    assert_eq!(said.status, 0);
    assert!(said.err.contains(" true ") && said.err.contains("total"), "{}", said.err);
    assert!(!said.err.contains("nothing was served"), "{}", said.err);
}

#[test]
fn nothing_served_is_said_with_the_reason() {
    let place = Place::new("static");
    let program = place.compile("static", "int main(void) { return 5; }", &["-static"]);
    let plain = said(&mut craton(["run", "--", &program]));
    let line =
        format!("craton: {program} is linked statically: Craton serves it only where libcraton.a is linked into it\n");
    assert_eq!((plain.status, plain.err), (5, line));
    let said_static = said(&mut craton(["run", "--stats", "--", &program]));
    assert_eq!(said_static.status, 5);
    assert!(said_static.err.contains("nothing was served") && said_static.err.contains("is linked statically"));
    let source = "#include <signal.h>\nint main(void) { return raise(SIGKILL); }";
    let killed = said(&mut craton(["run", "--stats", "--", &place.compile("killed", source, &["-static"])]));
    assert!(killed.err.contains("nothing was served") && killed.err.contains("signal 9"), "{}", killed.err);
    let source = "#include <unistd.h>\nint main(void) { _exit(0); }";
    let silent = said(&mut craton(["run", "--stats", "--", &place.compile("silent", source, &[])]));
    assert!(silent.err.contains("ended by _exit") && silent.err.contains("total"), "{}", silent.err);
}

/// It would not start.
#[test]
fn a_program_of_musl_runs_without_the_library_and_is_named() {
    let place = Place::new("musl");
    let (program, source) = (place.path("program"), place.path("program.c"));
    fs::write(&source, "#include <stdlib.h>\nint main(void) { return getenv(\"LD_PRELOAD\") ? 1 : 5; }").unwrap();
    match Command::new("musl-gcc").args(["-o", &program, &source]).status() {
        Ok(status) => assert!(status.success()),
        Err(_) => {
            return println!("skipped: no musl-gcc (package musl-tools); src/program/tests.rs reads made-up files");
        }
    }
    let script = place.path("script");
    fs::write(&script, format!("#!{program}\n")).unwrap();
    fs::set_permissions(&script, fs::Permissions::from_mode(0o755)).unwrap();
    for command in [&program, &script] {
        let plain = said(&mut craton(["run", "--", command]));
        let line = "is linked with musl's C library, and libcraton.so with glibc's: it runs without Craton; \
                    build it for glibc to have it served";
        assert_eq!((plain.status, plain.err.as_str()), (5, format!("craton: {program} {line}\n").as_str()));
        let nested = said(craton(["run", "--", command]).env("LD_PRELOAD", library()));
        assert_eq!((nested.status, nested.err), (5, plain.err));
        let stats = said(&mut craton(["run", "--stats", "--", command]));
        assert_eq!(stats.status, 5);
        assert!(stats.err.contains("nothing was served") && stats.err.contains(line), "{}", stats.err);
    }
}

#[test]
fn a_program_of_another_users_rights_is_named_and_the_dynamic_linker_is_not() {
    let place = Place::new("set-uid");
    let program = place.compile("raised", "int main(void) { return 5; }", &[]);
    fs::set_permissions(&program, fs::Permissions::from_mode(0o4755)).unwrap();
    let own = said(&mut craton(["run", "--", &program]));
    assert_eq!((own.status, own.err.as_str()), (5, ""), "its user is this one");
    if std::os::unix::fs::chown(&program, Some(1), None).is_ok() {
        fs::set_permissions(&program, fs::Permissions::from_mode(0o4755)).unwrap();
        let other = said(&mut craton(["run", "--", &program]));
        assert!(
            other.status == 5 && other.err.starts_with(&format!("craton: {program} runs set-uid")),
            "{}",
            other.err
        );
    } else {
        println!("skipped: files cannot be given to another user");
    }
    let linker = "/lib64/ld-linux-x86-64.so.2";
    if fs::exists(linker).unwrap() {
        assert_eq!(said(&mut craton(["run", "--", linker, "/bin/true"])).err, "");
    }
}

#[test]
fn signals_are_sent_on_to_the_program() {
    use std::io::{BufRead, BufReader};
    for (signal, name) in [
        (libc::SIGINT, "INT"),
        (libc::SIGTERM, "TERM"),
        (libc::SIGHUP, "HUP"),
        (libc::SIGQUIT, "QUIT"),
        (libc::SIGUSR1, "USR1"),
        (libc::SIGUSR2, "USR2"),
        (libc::SIGALRM, "ALRM"),
        (libc::SIGWINCH, "WINCH"),
    ] {
        let script = format!("trap 'echo got {name}; exit 9' {name}; echo ready; while :; do sleep 0.02; done");
        let mut child = with_default_signals(&mut craton(["run", "--stats", "--", "sh", "-c", &script]))
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
        assert_eq!(lines.next().unwrap().unwrap(), "ready");
        // SAFETY: touches no memory; the child is not reaped.
        unsafe { libc::kill(child.id() as i32, signal) };
        assert_eq!(lines.next().unwrap().unwrap(), format!("got {name}"));
        assert_eq!(child.wait().unwrap().code(), Some(9));
    }
}

#[test]
fn a_signal_that_the_caller_ignores_stays_ignored() {
    let mut command = Command::new("sh");
    command.args(["-c", "trap '' HUP; exec \"$@\"", "sh", env!("CARGO_BIN_EXE_craton"), "run", "--stats", "--"]);
    command.args(["sh", "-c", "kill -HUP $PPID; kill -HUP $$; exit 7"]).env("CRATON_LIBRARY", library());
    assert_eq!(said(&mut command).status, 7);
}

#[test]
fn the_library_is_found_beside_the_program_and_in_lib() {
    let place = Place::new("places");
    fs::create_dir_all(place.path("bin")).unwrap();
    fs::create_dir_all(place.path("lib/craton")).unwrap();
    // A program that a child has open for writing does not start.
    let copied = Command::new("cp").args([env!("CARGO_BIN_EXE_craton"), &place.path("bin/craton")]).status();
    assert!(copied.unwrap().success());
    let run = || {
        let mut command = Command::new(place.path("bin/craton"));
        said(command.args(SHOW).env_remove("CRATON_LIBRARY").env_remove("LD_PRELOAD").env_remove("CRATON_OPTIONS"))
    };
    let none = run();
    assert_eq!(none.status, 1);
    let paths = ["bin/libcraton.so", "lib/libcraton.so", "lib/craton/libcraton.so"].map(|path| place.path(path));
    assert!(paths.iter().all(|path| none.err.contains(path.as_str())), "{}", none.err);
    for path in paths.iter().rev() {
        fs::copy(library(), path).unwrap();
        assert_eq!(run().out.trim(), format!("{path}|"));
    }
}

#[test]
fn a_library_that_cannot_be_preloaded_is_refused() {
    let place = Place::new("refused");
    let link = place.path("a b.so");
    std::os::unix::fs::symlink(library(), &link).unwrap();
    let text = place.path("text.so");
    fs::write(&text, "INPUT(libcraton.so.1) and more\n").unwrap();
    // Another machine's.
    let other = place.path("other.so");
    let mut bytes = fs::read(library()).unwrap();
    bytes[18] = 183;
    fs::write(&other, &bytes).unwrap();
    bytes[18] = 62;
    let name = b"craton_segment";
    while let Some(at) = bytes.windows(name.len()).position(|window| window == name) {
        bytes[at] = b'k';
    }
    let strange = place.path("strange.so");
    fs::write(&strange, bytes).unwrap();
    for (path, status, reason) in [
        (place.path("absent.so"), 2, "cannot be read: No such file"),
        (place.path(""), 2, "is a directory"),
        (text, 2, "is no shared library"),
        (other, 2, "is a shared library for another machine (AArch64, 64 bits, not "),
        (strange, 2, "is a shared library, but not Craton's"),
        (link, 1, "a space or a colon"),
    ] {
        let said = said(craton(SHOW).env("CRATON_LIBRARY", &path));
        assert_eq!(said.status, status, "{path}: {}", said.err);
        let path = path.trim_end_matches('/');
        assert!(said.err.contains(path) && said.err.contains(reason), "{path}: {}", said.err);
        assert!(said.err.contains("CRATON_LIBRARY") && said.out.is_empty(), "the program does not run: {}", said.out);
    }
}

const ENDS: &str = r#"
    #include <signal.h>
    #include <stdio.h>
    #include <stdlib.h>
    #include <string.h>
    #include <sys/wait.h>
    #include <unistd.h>
    static void grow(int n, int size) { while (n--) if (!memset(malloc(size), 1, size)) abort(); }
    int main(int argc, char **argv) {
        grow(20000, 800);
        switch (argv[1][0]) {
        case 'k': return raise(SIGKILL);
        case 'a': abort();
        case '_': _exit(3);
        case 'e': return execl("/bin/sh", "sh", "-c", "kill -TERM $$", NULL);
        case 'f':
            if (!fork()) { grow(20000, 2000); raise(SIGKILL); }
            return !wait(NULL);
        }
        return 0;
    }"#;

#[test]
fn a_process_that_ends_without_exit_leaves_its_statistics() {
    let place = Place::new("ends");
    let program = place.compile("grower", ENDS, &["-g"]);
    for (how, status, name, end) in [
        ("kill", 137, "(grower)", "ended by SIGKILL: heap 1"),
        ("abort", 134, "(grower)", "ended by SIGABRT: heap 1"),
        ("_exit", 3, "(grower)", "ended by _exit: heap 1"),
        ("exec", 143, "(sh)", "ended by SIGTERM: heap "),
        ("fork", 0, "(grower)", "ended by a signal, _exit or exec: heap "),
    ] {
        let said = said(&mut craton(["run", "--stats", "--", &program, how]));
        assert_eq!(said.status, status, "{how}: {}", said.err);
        let line = said.err.lines().find(|line| line.contains(end)).unwrap_or_else(|| panic!("{how}: {}", said.err));
        assert!(line.contains(name), "{line}");
        let size = if how == "fork" { "2,048" } else { "816" };
        let most = format!(" MiB in objects of {size} bytes, most from grow ");
        assert!(how == "exec" || line.contains(&most) && line.contains("grower.c:8"), "{line}");
        assert!(!said.err.contains("nothing was served") && said.err.contains("\ntotal"), "{}", said.err);
    }
    let exits = said(&mut craton(["run", "--stats", "--", &program, "0"]));
    assert!(exits.err.contains("\ncraton: processes served") && !exits.err.contains("ended by"), "{}", exits.err);
}

#[test]
fn a_stats_dir_keeps_the_files_of_killed_processes_alone() {
    let place = Place::new("stats-dir");
    let (program, folder) = (place.compile("grower", ENDS, &["-g"]), place.path("stats"));
    fs::create_dir(&folder).unwrap();
    let option = format!("stats_dir={folder}");
    let run = |how: &str| said(&mut craton(["run", "-o", &option, "--", &program, how]));
    let files = || {
        let mut files: Vec<_> = fs::read_dir(&folder).unwrap().map(|entry| entry.unwrap().path()).collect();
        files.sort_by_key(|file| std::cmp::Reverse(file.extension().map(OsStr::to_owned)));
        files
    };
    assert_eq!((run("0").status, files().len()), (0, 0));
    let killed = run("kill");
    assert!(killed.status == 137 && killed.err.is_empty(), "{}", killed.err);
    let bytes = fs::read(&files()[0]).unwrap();
    assert!(files().len() == 2 && bytes.len() == 4096 && bytes.starts_with(b"\0CRATON1"));
    assert!(files().iter().all(|file| fs::metadata(file).unwrap().permissions().mode() & 0o777 == 0o600));
    let [page, profile] = [0, 1].map(|i| files()[i].to_str().unwrap().to_owned());
    let got = said(&mut craton(["get", &page]));
    assert!(got.out.contains("objects of 816 bytes, most from grow "), "{}{}", got.out, got.err);
    let table = said(&mut craton(["profile", &profile]));
    assert!(table.status == 0 && table.out.contains("grower.c:8"), "{}{}", table.out, table.err);
    // A copy that was cut tells nothing, and does no harm.
    let whole = fs::read(&profile).unwrap();
    fs::write(&profile, &whole[..whole.len() / 3]).unwrap();
    let got = said(&mut craton(["get", &page]));
    assert!(got.status == 0 && got.out.contains("objects of 816 bytes\n"), "{}{}", got.out, got.err);
    // Another run's file is not ours to report.
    let both = said(&mut craton(["run", "--stats", "-o", &option, "--", &program, "kill"]));
    assert_eq!(both.err.matches("ended by").count(), 1, "{}", both.err);
    let absent = said(&mut craton(["run", "-o", "stats_dir=/nonexistent", "--", &program, "0"]));
    assert_eq!(absent.status, 0);
    let line = "craton: stats_dir: cannot create a file in /nonexistent: no such folder; statistics go with a process that is \
        killed\n";
    assert_eq!(absent.err, line);
}

/// The child holds the pipes; it ends when its input does.
const OUTLIVES: &str = "#include <stdio.h>\n#include <stdlib.h>\n#include <string.h>\n#include <unistd.h>\n\
    int main(void) { if (fork()) return 0; setsid(); memset(malloc(3000), 1, 3000);\n\
    char c; while (read(0, &c, 1) > 0); fputs(\"the daemon ends\\n\", stderr);\n\
    return system(\"true\"); }\n";

#[test]
fn a_process_that_outlives_the_run_is_named_and_its_messages_reach_standard_error() {
    let place = Place::new("outlives");
    let (program, errors, file) =
        (place.compile("outlives", OUTLIVES, &[]), place.path("errors"), place.path("o.json"));
    for options in [&["--stats"] as &[&str], &["-o", "debug=leak,audit", "--json", &file]] {
        let mut command = craton([&["run"], options, &["--", &program]].concat());
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(fs::File::create(&errors).unwrap());
        let mut child = command.spawn().unwrap();
        let (input, mut output) = (child.stdin.take(), child.stdout.take().unwrap());
        assert_eq!(child.wait().unwrap().code(), Some(0));
        let text = fs::read_to_string(&errors).unwrap();
        let line =
            text.lines().find(|line| line.contains("1 process still runs: ")).unwrap_or_else(|| panic!("{text}"));
        assert!(line.ends_with(" (outlives); its later messages reach standard error alone"), "{line}");
        drop(input);
        // The daemon has the pipe, too.
        std::io::copy(&mut output, &mut std::io::sink()).unwrap();
        let all = fs::read_to_string(&errors).unwrap();
        let (before, later) = all.split_at(text.len());
        assert_eq!(before, text);
        let (first, reports) = later.split_once('\n').unwrap();
        assert_eq!(first, "the daemon ends");
        match options.len() {
            1 => assert_eq!(reports, "", "no line about the folder that is gone"),
            _ => assert!(reports.starts_with("craton: BUG leak: ") && !reports.contains("stats_"), "{reports}"),
        }
    }
    let notes: serde_json::Value = serde_json::from_str(&fs::read_to_string(&file).unwrap()).unwrap();
    assert!(notes["notes"].to_string().contains("1 process still runs: "), "{notes}");
}

#[test]
fn a_program_that_exec_made_unserved_is_named_and_one_that_ends_by_underscore_exit_is_not() {
    let place = Place::new("exec-static");
    let program = place.compile("static", "int main(void) { return 5; }", &["-static"]);
    let ran = said(&mut craton(["run", "--stats", "--", "bash", "-c", "exec \"$0\"", &program]));
    assert_eq!(ran.status, 5, "{}", ran.err);
    assert!(ran.err.contains(" (bash) became static by exec, which was not served: "), "{}", ran.err);
    assert!(!ran.err.contains("ended by"), "{}", ran.err);
    let source = "#include <unistd.h>\nint main(void) { _exit(3); }";
    let ends = said(&mut craton(["run", "--stats", "--", &place.compile("ends", source, &[])]));
    assert!(
        ends.status == 3 && !ends.err.contains("not served") && ends.err.contains("ended by _exit"),
        "{}",
        ends.err
    );
    let json = place.path("programs.json");
    let all =
        ["run", "--stats", "--stats-json", &json, "--", "bash", "-c", "ls /dev/null; exec env A=b tail /dev/null"];
    let several = said(&mut craton(all));
    assert!(several.err.contains("4 programs of 2 processes"), "{}", several.err);
    let document: serde_json::Value = serde_json::from_str(&fs::read_to_string(&json).unwrap()).unwrap();
    let rows = document["rows"].as_array().unwrap();
    let main = rows.iter().find(|row| row["exe"] == "bash").unwrap()["pid"].clone();
    let programs: Vec<(&str, bool)> = rows
        .iter()
        .filter(|row| row["pid"] == main)
        .map(|row| (row["exe"].as_str().unwrap(), row["exited"] == true))
        .collect();
    assert_eq!(programs, [("bash", false), ("env", false), ("tail", true)], "{document}");
    let first = said(&mut craton(["run", "--stats", "--", "env", "A=b", "true"]));
    assert!(first.status == 0 && !first.err.contains("by exec"), "{}", first.err);
}

/// Of a process that has more than the others.
const HOLDS: &str = "#include <stdlib.h>\n#include <string.h>\n\
    int main(void) { for (int i = 0; i < 50000; i++) memset(malloc(800), 1, 800);\n\
    memset(malloc(40 << 20), 1, 40 << 20); return 0; }\n";

#[test]
fn what_the_memory_of_the_largest_process_was_for_is_shown_at_its_exit() {
    let place = Place::new("ledger");
    let (program, file) = (place.compile("holds", HOLDS, &[]), place.path("run.json"));
    let command = ["--", "sh", "-c", "true; \"$0\"; ls / >/dev/null", &program];
    let said = said(&mut craton([&["run", "--stats", "--stats-json", &file], command.as_slice()].concat()));
    assert_eq!(said.status, 0, "{}", said.err);
    let head = said.err.lines().position(|line| line.starts_with("craton: memory of process ")).unwrap();
    assert!(said.err.lines().nth(head).unwrap().ends_with("(holds) at its exit"), "{}", said.err);
    for row in ["live_bytes", "huge_bytes", "code_bytes", "rss_bytes", "heap_bytes"] {
        assert!(said.err.lines().any(|line| line.trim_start().starts_with(row)), "{row}: {}", said.err);
    }
    let document: serde_json::Value = serde_json::from_str(&fs::read_to_string(&file).unwrap()).unwrap();
    let rows = document["rows"].as_array().unwrap();
    let names: Vec<&str> = rows.iter().map(|row| row["exe"].as_str().unwrap()).collect();
    assert!(names.contains(&"holds") && names.contains(&"ls"), "{names:?}");
    // Some shells end by _exit.
    for row in rows.iter().filter(|row| row["exited"] == true) {
        let ledger = &row["ledger"];
        let parts = ["heap", "rest"].into_iter().flat_map(|part| ledger[part].as_array().unwrap());
        let sum: u64 = parts.map(|row| row["bytes"].as_u64().unwrap()).sum();
        let rss = ledger["rss_bytes"].as_u64().unwrap();
        assert!(rss > 0 && sum.abs_diff(rss) <= rss / 100, "{sum} of {rss}: {row}");
    }
    let holds = rows.iter().find(|row| row["exe"] == "holds").unwrap();
    let row = |name: &str| {
        let all = holds["ledger"]["heap"].as_array().unwrap();
        all.iter().find(|row| row["name"] == name).unwrap()["bytes"].as_u64().unwrap()
    };
    assert_eq!(row("huge_bytes"), 40 << 20);
    assert!(row("live_bytes").abs_diff(50_000 * 816) <= 50_000 * 816 / 100, "{holds}");
    let wrong = self::said(&mut craton(["run", "--stats-json", &file, "--", "true"]));
    assert!(wrong.status == 2 && wrong.err.contains("--stats"), "{}", wrong.err);
}

/// Prints whether the kernel takes names of mappings, the option afterwards, and the library's
/// names.
const NAMES: &str = "\
    #define _GNU_SOURCE\n#include <dlfcn.h>\n#include <stdio.h>\n#include <stdlib.h>\n#include <string.h>\n\
    #include <sys/mman.h>\n#include <sys/prctl.h>\n\
    int main(void) {\n\
        void *page = mmap(0, 4096, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);\n\
        int takes = prctl(0x53564d41, 0, page, 4096, \"probe\") == 0;\n\
        char *huge = malloc(40 << 20), line[512], value[16] = \"\"; huge[0] = 1;\n\
        long (*get)(const char *, char *, size_t) = dlsym(RTLD_DEFAULT, \"craton_option_get\");\n\
        get(\"name_mappings\", value, sizeof value);\n\
        printf(\"takes %d option %s\", takes, value);\n\
        FILE *maps = fopen(\"/proc/self/maps\", \"r\");\n\
        while (fgets(line, sizeof line, maps)) {\n\
            char *name = strstr(line, \"[anon:craton: \");\n\
            if (name) printf(\" %.*s\", (int)strcspn(name, \"\\n\"), name);\n\
        }\n\
        return 0;\n\
    }\n";

#[test]
fn mappings_have_names_where_the_kernel_takes_them() {
    let place = Place::new("names");
    let program = place.compile("names", NAMES, &["-ldl"]);
    let run = |value: &str| {
        let said = said(&mut craton(["run", "-o", &format!("name_mappings={value}"), "--", &program]));
        assert!(said.status == 0 && said.err.is_empty(), "{}", said.err);
        said.out
    };
    let off = run("0");
    assert!(off.ends_with("option 0"), "{off}");
    let on = run("1");
    if off.starts_with("takes 1") {
        assert!(on.starts_with("takes 1 option 1"), "{on}");
        for name in ["heap", "metadata", "huge objects and caches", "tables"] {
            assert!(on.contains(&format!("[anon:craton: {name}]")), "{name}: {on}");
        }
    } else {
        // The first refusal turned them off.
        assert_eq!(on, "takes 0 option 0");
    }
}
