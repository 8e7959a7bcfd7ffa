//! Running processes, seen without a stop.

use crate::common::{HEAD, Place, Program, craton, said};
use serde_json::Value;
use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::net::UnixStream;
use std::panic::catch_unwind;
use std::process::{Child, Command, Stdio};

/// 50,000 objects of 800 bytes, 3 large ones, a huge one, and half of 20,000 of 96 bytes.
const HOLDS: &str = "int main(void) {\n\
        for (int i = 0; i < 50000; i++) memset(malloc(800), 1, 800);\n\
        for (int i = 0; i < 3; i++) memset(malloc(1 << 20), 1, 1 << 20);\n\
        memset(malloc(40 << 20), 1, 40 << 20);\n\
        static void *all[20000];\n\
        for (int i = 0; i < 20000; i++) all[i] = memset(malloc(96), 1, 96);\n\
        for (int i = 0; i < 20000; i += 2) free(all[i]);\n\
        wait_here(); return 0;\n\
    }\n";

fn got(pid: &str) -> Value {
    let said = said(&mut craton(["get", pid, "--json", "-"]));
    assert_eq!(said.status, 0, "{}", said.err);
    let document: Value = serde_json::from_str(&said.out).unwrap();
    document["rows"][0].clone()
}

fn row(process: &Value, part: &str, name: &str) -> u64 {
    let rows = process["ledger"][part].as_array().unwrap();
    rows.iter().find(|row| row["name"] == name).unwrap()["bytes"].as_u64().unwrap()
}

fn sum(process: &Value, part: &str) -> u64 {
    process["ledger"][part].as_array().unwrap().iter().map(|row| row["bytes"].as_u64().unwrap()).sum()
}

/// Within 1 % of `bytes`.
fn is_near(value: u64, bytes: u64) -> bool {
    value.abs_diff(bytes) <= bytes / 100
}

/// The rows sum to what the kernel charges, by both of its counts.
fn check(pid: &str) -> Value {
    let process = got(pid);
    let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
    let rss =
        status.lines().find_map(|line| line.strip_prefix("VmRSS:")?.trim().strip_suffix(" kB")?.parse::<u64>().ok());
    let (heap, rest) = (sum(&process, "heap"), sum(&process, "rest"));
    assert!(is_near(heap + rest, rss.unwrap() << 10), "{heap} + {rest} of {rss:?} KiB: {process}");
    let mappings = ["library_bytes", "huge_bytes", "kept_mapping_bytes"].map(|name| row(&process, "heap", name));
    let region = process["ledger"]["region_rss_bytes"].as_u64().unwrap();
    let own = heap - mappings.iter().sum::<u64>();
    // Per-CPU caches and the table of huge objects have their own mappings, of a few pages.
    assert!(own >= region && own - region <= region / 100 + (256 << 10), "{own} of {region}: {process}");
    process
}

#[test]
fn the_ledger_of_a_program_has_what_it_holds() {
    let place = Place::new("live-ledger");
    let program = Program::start(&place, "holds", HOLDS);
    let process = check(&program.pid());
    let live = 50_000 * 816 + 10_000 * 96;
    assert!(is_near(row(&process, "heap", "live_bytes"), live), "{process}");
    assert!(is_near(row(&process, "heap", "large_bytes"), 3 << 20), "{process}");
    assert!(is_near(row(&process, "heap", "huge_bytes"), 40 << 20), "{process}");
    let free = ["slab_free_bytes", "thread_cache_bytes", "transfer_bytes"].map(|name| row(&process, "heap", name));
    assert!(free.iter().sum::<u64>() >= 10_000 * 96 && free[1] > 0, "{process}");
    let class = process["ledger"]["classes"].as_array().unwrap().iter().find(|c| c["object_bytes"] == 816).unwrap();
    assert!(is_near(class["live"].as_u64().unwrap(), 50_000), "{class}");
    assert!(program.end(), "the process goes on");
}

/// A program that stands still once it has printed a line; killed when dropped.
struct Held {
    child: Child,
    /// A program whose output has no reader would end.
    output: Box<dyn BufRead>,
}

impl Held {
    fn run(options: &[&str], command: &[&str], input: &[u8], last: impl Fn(&str) -> bool) -> Self {
        let args: Vec<&str> = [&["run"], options, &["--"], command].concat();
        let mut command = craton(&args);
        command.stdin(Stdio::piped()).stdout(Stdio::piped());
        // Both on one pipe, as in a terminal.
        let (reader, writer) = std::io::pipe().unwrap();
        command.stdout(writer.try_clone().unwrap()).stderr(writer);
        let mut child = command.spawn().unwrap();
        drop(command);
        let mut input_of_child = child.stdin.take().unwrap();
        input_of_child.write_all(input).unwrap();
        child.stdin = Some(input_of_child);
        let mut held = Self { child, output: Box::new(BufReader::new(reader)) };
        let mut line = Vec::new();
        while !last(&String::from_utf8_lossy(&line)) {
            line.clear();
            assert!(held.output.read_until(b'\n', &mut line).unwrap() > 0, "{args:?} has ended");
        }
        held
    }

    /// The rows sum to what the kernel charges; a program that is still at work gets some tries.
    fn check(&self) {
        let pid = self.child.id().to_string();
        let holds = || catch_unwind(|| check(&pid)).is_ok();
        assert!((0..4).any(|_| holds()), "the ledger of process {pid} has another sum, four times");
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn ready(line: &str) -> bool {
    line.trim_end() == "ready"
}

#[test]
fn the_ledgers_of_interpreters_sum_to_their_memory() {
    let wait = "print('ready', flush=True); sys.stdin.read()";
    let python = format!("import sys, json; a = [json.dumps(list(range(i % 90))) for i in range(40000)]; {wait}");
    let threads = format!(
        "import sys, threading; a = []; t = [threading.Thread(target=lambda: a.extend(bytearray(i) for i in range(9000))) \
         for _ in range(6)]; [x.start() for x in t]; [x.join() for x in t]; {wait}"
    );
    let perl = "my %h = map { $_ => 'x' x ($_ % 300) } 1..50000; $| = 1; print \"ready\\n\"; <STDIN>;";
    let awk = "BEGIN { for (i = 0; i < 60000; i++) a[i] = i \" some text\"; print \"ready\"; fflush(); getline }";
    let bash = "for i in {1..20000}; do a[i]=text$i; done; echo ready; read";
    let node = "const a = []; for (let i = 0; i < 100000; i++) a.push({ i, text: 'some ' + i }); console.log('ready'); \
                process.stdin.on('data', () => console.log(a.length));";
    let sql = "create table t(a, b); with recursive n(i) as (select 1 union all select i + 1 from n where i < 100000) \
               insert into t select i, hex(randomblob(20)) from n; select 'ready';\n";
    let programs: [(&[&str], &[&str], &str); 7] = [
        (&[], &["/usr/bin/python3", "-c", &python], ""),
        (&["-o", "caches=cpu"], &["/usr/bin/python3", "-c", &threads], ""),
        (&["-o", "thp=always"], &["perl", "-e", perl], ""),
        (&[], &["awk", awk], ""),
        (&["-o", "hardened=1"], &["bash", "-c", bash], ""),
        (&[], &["node", "-e", node], ""),
        (&[], &["sqlite3", ":memory:"], sql),
    ];
    for (options, command, input) in programs {
        Held::run(options, command, input.as_bytes(), ready).check();
    }
}

#[test]
fn the_ledgers_of_tools_that_wait_for_their_reader_sum_to_their_memory() {
    let place = Place::new("live-tools");
    let (text, source) = (place.path("text"), place.path("source.c"));
    let line = |i: u64| format!("{:x} some text\n", i.wrapping_mul(0x9e37_79b9_7f4a_7c15));
    fs::write(&text, (0..200_000).map(line).collect::<String>()).unwrap();
    let function =
        |i: u32| format!("int f{i}(int a, int b) {{ return a * {i} + b / (a + {i}) - (b << {}); }}\n", i % 31);
    fs::write(&source, (0..4000).map(function).collect::<String>()).unwrap();
    let compiler = said(std::process::Command::new("gcc").arg("-print-prog-name=cc1")).out;
    for command in [&["sort", &text] as &[&str], &[compiler.trim_end(), "-quiet", &source, "-o", "-"]] {
        // The first of a long output, which fills the pipe.
        Held::run(&[], command, b"", |line| !line.is_empty()).check();
    }
}

#[test]
fn the_ledgers_of_servers_sum_to_their_memory() {
    let place = Place::new("live-servers");
    let socket = place.path("redis");
    let command =
        ["redis-server", "--port", "0", "--unixsocket", &socket, "--save", "", "--dir", place.0.to_str().unwrap()];
    let redis = Held::run(&[], &command, b"", |line| line.contains("eady to accept connections"));
    let script = "for i = 1, 100000 do redis.call('set', 'key:' .. i, string.rep('x', 50)) end return 'OK'";
    let filled = said(std::process::Command::new("redis-cli").args(["-s", &socket, "eval", script, "0"]));
    assert_eq!(filled.out.trim_end(), "OK", "{}", filled.err);
    redis.check();

    let socket = place.path("memcached");
    let command = ["memcached", "-s", &socket, "-u", "root", "-vv"];
    let memcached = Held::run(&[], &command, b"", |line| line.contains("server listening"));
    let mut stream = UnixStream::connect(&socket).unwrap();
    // It prints lines for each, which no test reads.
    let value = "v".repeat(60_000);
    for key in 0..400 {
        write!(stream, "set {key} 0 0 {} noreply\r\n{value}\r\n", value.len()).unwrap();
    }
    stream.write_all(b"version\r\n").unwrap();
    assert!(stream.read(&mut [0; 100]).unwrap() > 0);
    memcached.check();
}

#[test]
fn keys_are_chosen_by_name_and_set_says_what_it_did() {
    let place = Place::new("live-keys");
    let program = Program::start_with(&place, "holds", HOLDS, &["quarantine=1M"]);
    let pid = program.pid();
    let chosen = said(&mut craton(["get", &pid, "quarantine", "pid", "ledger.huge_bytes", "thp"]));
    let lines: Vec<&str> = chosen.out.lines().collect();
    assert_eq!(
        (lines[0], lines[1], lines[3]),
        ("quarantine 1M", format!("pid {pid}").as_str(), "thp auto"),
        "{}",
        chosen.err
    );
    assert_eq!(lines[2], format!("ledger.huge_bytes {}", 40 << 20));
    let whole = said(&mut craton(["get", &pid]));
    for text in ["(holds)", "  quarantine", "  heap_in_use_bytes", "  live_bytes", "  anonymous_bytes", "  rss_bytes"] {
        assert!(whole.out.contains(text), "{text}: {}", whole.out);
    }
    let once = said(&mut craton(["top", &pid, "--once"]));
    assert!(
        once.status == 0 && once.out.contains("(holds)") && once.out.contains("size class"),
        "{}{}",
        once.out,
        once.err
    );
    assert!(!once.out.contains('\x1b') && once.out.lines().all(|line| line.chars().count() <= 80), "{}", once.out);
    let list = said(&mut craton(["top", "--once"]));
    // A library of another name is not found.
    let is_named = crate::common::library().ends_with("libcraton.so");
    assert_eq!(list.out.lines().any(|line| line.contains(&pid) && line.contains("holds")), is_named, "{}", list.out);
    drop(program);
}

#[test]
fn what_cannot_be_read_is_told() {
    let place = Place::new("live-wrong");
    let wrong = |args: &[&str], status: i32, text: &str| {
        let said = said(&mut craton(args));
        assert!(said.status == status && said.err.contains(text) && said.out.is_empty(), "{args:?}: {}", said.err);
    };
    wrong(&["get", "4194305"], 1, "there is no process 4194305");
    wrong(&["top", "4194305"], 1, "there is no process 4194305");
    wrong(&["get", &std::process::id().to_string()], 1, "not running on Craton");
    wrong(&["get", "1", "heap_in_us_bytes"], 2, "did you mean `heap_in_use_bytes`?");
    wrong(&["get", "-7"], 2, "not a process id");
    wrong(&["top", "me"], 2, "not a process id");
    wrong(&["get", &place.path("absent")], 1, "neither a process nor a file");
    fs::create_dir(place.path("folder")).unwrap();
    wrong(&["get", &place.path("folder")], 1, "stats_dir=FOLDER");
    fs::write(place.path("folder/7-1.stats"), "").unwrap();
    wrong(&["get", &place.path("folder")], 1, "the newest is ");
    let file = place.path("file");
    fs::write(&file, "text").unwrap();
    wrong(&["get", &file], 1, "no page of Craton's statistics");
    let mut page = vec![0; 4096];
    page[..16].copy_from_slice(b"\0CRATON1\x09\0\0\0\0\0\0\0");
    fs::write(&file, &page).unwrap();
    wrong(&["get", &file], 1, "statistics of version 9");
    page[8] = 1;
    fs::write(&file, &page).unwrap();
    wrong(&["get", &file, "ledger.rss_bytes"], 1, "has ended");
    let killed = said(&mut craton(["get", &file, "refills"]));
    assert_eq!((killed.status, killed.out.as_str()), (0, "refills 0\n"), "{}", killed.err);
}

#[test]
fn a_library_of_another_version_is_named_and_changes_nothing() {
    let place = Place::new("live-version");
    let program = place.compile("waits", &format!("{HEAD}int main(void) {{ free(malloc(9)); wait_here(); }}"), &["-w"]);
    let library = fs::read(crate::common::library()).unwrap();
    // The table of names, and the page of statistics: a version of 32 and one of 64 bits follow.
    for (magic, everyone) in [(b"\0CRATONI", true), (b"\0CRATON1", false)] {
        let mut other = library.clone();
        let places: Vec<usize> = (0..other.len() - 12)
            .step_by(8)
            .filter(|at| other[*at..].starts_with(magic) && other[at + 8] == 1)
            .collect();
        assert!(!places.is_empty());
        places.iter().for_each(|at| other[at + 8] = 7);
        let path = place.path("libcraton.so");
        let _ = fs::remove_file(&path);
        fs::write(&path, other).unwrap();
        let program = Program::run(Command::new(&program).env("LD_PRELOAD", &path));
        let pid = program.pid();
        let commands: [&[&str]; 7] = [
            &["get", &pid],
            &["get", &pid, "soft_limit"],
            &["top", &pid, "--once"],
            &["set", &pid, "soft_limit=1G", "--wait", "1"],
            &["profile", &pid],
            &["core", "--pid", &pid, "stats"],
            &["core", "--pid", &pid, "leaks"],
        ];
        for (i, args) in commands.iter().enumerate() {
            let said = said(&mut craton(*args));
            let is_told = said.err.contains("version 7") && said.err.contains("use the `craton` that came with");
            let is_short = said.err.lines().count() <= 2 && !said.err.contains("panicked");
            assert!(is_short && (is_told || !everyone && i > 2), "{args:?}: {}", said.err);
            assert!(said.status == 1 || !is_told && said.status < 4, "{args:?}: {}", said.status);
        }
        let list = said(&mut craton(["top", "--once"]));
        assert!(list.status == 0 && !list.err.contains("panicked"), "{}", list.err);
        assert!(fs::metadata(format!("/proc/{pid}")).is_ok(), "the process goes on");
    }
}
