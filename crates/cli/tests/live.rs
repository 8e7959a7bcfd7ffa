//! Running processes, seen without a stop.

use crate::common::{Place, Program, craton, said};
use serde_json::Value;
use std::fs;

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

#[test]
fn the_ledgers_of_real_programs_sum_to_their_memory() {
    let wait = "print('ready', flush=True); sys.stdin.read()";
    let python = format!("import sys, json; a = [json.dumps(list(range(i % 90))) for i in range(40000)]; {wait}");
    let threads = format!(
        "import sys, threading; a = []; t = [threading.Thread(target=lambda: a.extend(bytearray(i) for i in range(9000))) \
         for _ in range(6)]; [x.start() for x in t]; [x.join() for x in t]; {wait}"
    );
    let perl = "my %h = map { $_ => 'x' x ($_ % 300) } 1..50000; $| = 1; print \"ready\\n\"; <STDIN>;";
    let awk = "BEGIN { for (i = 0; i < 60000; i++) a[i] = i \" some text\"; print \"ready\"; fflush(); getline }";
    let bash = "for i in {1..20000}; do a[i]=text$i; done; echo ready; read";
    let programs: [(&[&str], &[&str]); 5] = [
        (&[], &["python3", "-c", &python]),
        (&["-o", "caches=cpu"], &["python3", "-c", &threads]),
        (&["-o", "thp=always"], &["perl", "-e", perl]),
        (&[], &["awk", awk]),
        (&["-o", "hardened=1"], &["bash", "-c", bash]),
    ];
    for (options, command) in programs {
        let args: Vec<&str> = [&["run"], options, &["--"], command].concat();
        let program = Program::run(&mut craton(&args));
        check(&program.pid());
        program.end();
    }
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
    wrong(&["get", &place.path("absent")], 1, "absent");
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
