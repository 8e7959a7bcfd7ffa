//! Programs with known leaks and damage, on the real library.

use crate::common::{HEAD, Place, Program, craton, row, said};
use serde_json::Value;
use std::fs;
use std::process::Command;

const LOSES: &str = "static __thread void *of_thread;\n\
    __attribute__((noinline)) static void lose(void) {\n\
        void **a = malloc(48), **b = malloc(48), **c = malloc(48);\n\
        a[0] = b; b[0] = (char *)c + 20; c[0] = 0; printf(\"tree %p\\n\", a);\n\
        void **r = malloc(100), **s = malloc(200);\n\
        r[0] = s; s[0] = r; printf(\"ring %p\\nother %p\\n\", r, s);\n\
        void **large = memset(malloc(300000), 0, 300000), **huge = malloc(40ul << 20);\n\
        huge[0] = 0; printf(\"large %p\\nhuge %p\\n\", large, huge);\n\
        void *f = malloc(64); free(f); printf(\"free %p\\n\", f);\n\
    }\n\
    int main(void) {\n\
        void **keeps = global = malloc(1000); printf(\"kept %p\\n\", keeps);\n\
        memset(keeps, 0, 1000);\n\
        keeps[1] = (char *)malloc(32) + 5; of_thread = malloc(500); keeps[2] = malloc(40ul << 20);\n\
        printf(\"inner %p\\nlocal %p\\nkept_huge %p\\n\", (char *)keeps[1] - 5, of_thread, keeps[2]);\n\
        lose(); wipe(); wait_here(); return 0;\n\
    }\n";

/// By address: size, and the group's count and bytes.
fn lost(row: &Value) -> Vec<(String, u64, u64, u64)> {
    let groups = row["groups"].as_array().unwrap().iter();
    let number = |group: &Value, name: &str| group[name].as_u64().unwrap();
    let group = |g: &Value| {
        let address = g["address"].as_str().unwrap().to_owned();
        (address, number(g, "object_bytes"), number(g, "objects"), number(g, "bytes"))
    };
    let mut all: Vec<_> = groups.map(group).collect();
    all.sort();
    all
}

/// Of [`LOSES`].
fn expected(program: &Program) -> Vec<(String, u64, u64, u64)> {
    let at = |name: &str| program.address(name).to_owned();
    // Of a ring the first object stands for both.
    let (ring, size) = [("ring", 112), ("other", 208)].into_iter().min_by_key(|(name, _)| at(name)).unwrap();
    let large = 300_000u64.next_multiple_of(8192);
    let mut all = vec![
        (at("tree"), 48, 3, 144),
        (at(ring), size, 2, 320),
        (at("large"), large, 1, large),
        (at("huge"), 40 << 20, 1, 40 << 20),
    ];
    all.sort();
    all
}

#[test]
fn what_a_running_process_has_lost_is_found_and_nothing_else() {
    let place = Place::new("core-leaks");
    let program = Program::start(&place, "loses", LOSES);
    let (found, status) = program.row(&["leaks"]);
    assert_eq!((lost(&found), status), (expected(&program), 1));
    let (stats, status) = program.row(&["stats"]);
    assert_eq!(status, 0);
    assert_eq!((stats["huge_objects"].as_u64(), stats["huge_bytes"].as_u64()), (Some(2), Some(80 << 20)));
    let class = stats["classes"].as_array().unwrap().iter().find(|c| c["object_bytes"] == 208).unwrap();
    assert!(class["objects"].as_u64() >= Some(1) && class["slabs"] == 1, "{class}");
    let (verdict, status) = program.row(&["verify"]);
    assert_eq!((verdict["broken"].as_array().map(Vec::len), status), (Some(0), 0), "{verdict}");
    assert!(program.end(), "the process goes on");
}

#[test]
fn a_core_that_was_saved_and_one_of_the_kernel_show_what_the_process_did() {
    let place = Place::new("core-file");
    let program = Program::start(&place, "loses", LOSES);
    let core = place.path("saved.core");
    let saved = said(&mut craton(["core", "--pid", &program.pid(), "save", &core]));
    assert_eq!((saved.status, saved.err.as_str()), (0, ""));
    let expected = expected(&program);
    assert!(program.end());
    let (found, status) = row(&[&core, "leaks"]);
    assert_eq!((lost(&found), status), (expected, 1));
    assert_eq!(row(&[&core, "verify"]).1, 0);
    // Where the kernel writes a core into the process's folder.
    let pattern = fs::read_to_string("/proc/sys/kernel/core_pattern").unwrap_or_default();
    if pattern.trim() == "core" {
        let body = LOSES.replace("wait_here();", "fflush(stdout); abort();");
        let program = place.compile("aborts", &format!("{HEAD}{body}"), &["-w", "-ldl"]);
        let mut shell = Command::new("sh");
        let script = "ulimit -c unlimited && exec \"$0\" run -- \"$1\"";
        shell.args(["-c", script, env!("CARGO_BIN_EXE_craton"), &program]).current_dir(&place.0);
        let ended = said(shell.env("CRATON_LIBRARY", crate::common::library()));
        assert_eq!(ended.status, 128 + libc::SIGABRT, "{}", ended.err);
        let core = fs::read_dir(&place.0).unwrap().flatten().map(|entry| entry.path());
        let is_core = |path: &std::path::PathBuf| path.file_name().unwrap().to_string_lossy().starts_with("core");
        // Unless a limit forbids it.
        if let Some(core) = core.into_iter().find(is_core) {
            let (found, _) = row(&[core.to_str().unwrap(), "leaks"]);
            assert_eq!(lost(&found).len(), 4, "{found}");
        }
    }
}

#[test]
fn a_core_that_was_cut_off_or_is_of_another_program_is_refused_by_a_sentence() {
    let place = Place::new("core-cut");
    let program = Program::start(&place, "loses", LOSES);
    let core = place.path("saved.core");
    assert_eq!(said(&mut craton(["core", "--pid", &program.pid(), "save", &core])).status, 0);
    drop(program);
    let pipe = place.path("pipe");
    assert!(Command::new("mkfifo").arg(&pipe).status().unwrap().success());
    let piped = said(&mut craton(["core", "--exe", &pipe, &core, "stats"]));
    assert!(piped.status == 1 && piped.err.contains("not a file; give the program's file"), "{}", piped.err);
    let whole = fs::read(&core).unwrap();
    let refused = |bytes: &[u8], part: &str| {
        fs::write(&core, bytes).unwrap();
        for command in ["stats", "leaks", "verify", "users"] {
            let said = said(&mut craton(["core", &core, command]));
            let is_short = said.err.lines().count() <= 2 && !said.err.contains("panicked");
            assert!(said.status == 1 && is_short, "{command}: {} {}", said.status, said.err);
            assert!(said.err.contains(part), "{command}: {}", said.err);
        }
    };
    let mut another = whole.clone();
    for at in (0..whole.len() - 8).step_by(8).filter(|at| whole[*at..].starts_with(b"\0CRATONI")) {
        another[at..at + 8].fill(b'x');
    }
    refused(&another, "not running on Craton");
    for part in [2, 8, 100, 10_000] {
        refused(&whole[..whole.len() / part], "");
    }
    refused(&whole[..100], "");
}

#[test]
fn addresses_are_explained() {
    let place = Place::new("core-whatis");
    let program = Program::start(&place, "loses", LOSES);
    let what = |address: &str, plus: u64| {
        let at = u64::from_str_radix(&address[2..], 16).unwrap() + plus;
        let (row, status) = program.row(&["whatis", &format!("{at:#x}")]);
        assert_eq!(status, 0);
        let text = |name: &str| row[name].as_str().unwrap().to_owned();
        (text("kind"), text("state"), text("start"), row["bytes"].as_u64().unwrap(), row["offset"].as_u64().unwrap())
    };
    let class = |state: &str, start: &str, bytes, offset| ("class".into(), state.into(), start.into(), bytes, offset);
    let (kept, free, tree) = (program.address("kept"), program.address("free"), program.address("tree"));
    assert_eq!(what(kept, 999), class("live", kept, 1024, 999));
    assert_eq!(what(free, 0), class("free", free, 64, 0));
    assert_eq!(what(tree, 47), class("live", tree, 48, 47));
    let uncarved = what(free, 8128 - 64);
    assert_eq!((uncarved.0.as_str(), uncarved.1.as_str()), ("class", "uncarved"));
    let (large, huge) = (program.address("large"), program.address("huge"));
    assert_eq!(what(large, 299_999).0, "large");
    assert_eq!(what(huge, 20 << 20), ("huge".into(), "live".into(), huge.into(), 40 << 20, 20 << 20));
    assert_eq!(what("0x10", 0).0, "nothing");
    let text = said(&mut craton(["core", "--pid", &program.pid(), "whatis", free])).out;
    assert!(text.contains("into the object of 64 bytes") && text.contains("free, it was handed out before"), "{text}");
}

#[test]
fn a_free_object_that_was_written_is_named_by_verify() {
    let place = Place::new("core-verify");
    let body = "int main(void) {\n\
            void **all[100];\n\
            for (int i = 0; i < 100; i++) all[i] = malloc(160);\n\
            for (int i = 0; i < 100; i++) free(all[i]);\n\
            all[99][0] = (void *)0x4141414141414141; printf(\"written %p\\n\", all[99]);\n\
            wait_here(); _exit(0);\n\
        }\n";
    let program = Program::start(&place, "writes", body);
    let (verdict, status) = program.row(&["verify"]);
    let broken = &verdict["broken"][0];
    let written = u64::from_str_radix(&program.address("written")[2..], 16).unwrap();
    assert_eq!((broken["address"].as_u64(), status), (Some(written), 1), "{verdict}");
    assert!(broken["what"].as_str().unwrap().contains("written after it was freed"), "{broken}");
    assert!(program.end());
}

#[test]
fn threads_and_heaps_of_their_own_hold_objects_too() {
    let place = Place::new("core-threads");
    let body = "static pthread_barrier_t all;\n\
        static void *thread(void *x) {\n\
            void *volatile mine = malloc(3000); void *volatile gone = malloc(2500); gone = 0;\n\
            wipe(); pthread_barrier_wait(&all); pause(); return mine;\n\
        }\n\
        int main(void) {\n\
            void *(*create)(const void *) = dlsym(RTLD_DEFAULT, \"craton_heap_create\");\n\
            void *(*alloc)(void *, size_t) = dlsym(RTLD_DEFAULT, \"craton_heap_alloc\");\n\
            struct { size_t size; const char *name; size_t limit; unsigned flags; } o = { sizeof o, \"mine\", 0, 0 };\n\
            void *heap = create(&o);\n\
            void **own = global = alloc(heap, 700); memset(own, 0, 700); own[3] = alloc(heap, 300000);\n\
            printf(\"own %p\\n\", own);\n\
            pthread_barrier_init(&all, 0, 5);\n\
            for (int i = 0; i < 4; i++) { pthread_t t; pthread_create(&t, 0, thread, 0); }\n\
            pthread_barrier_wait(&all); wipe(); wait_here(); _exit(0);\n\
        }\n";
    let program = Program::start(&place, "threads", body);
    let (found, _) = program.row(&["leaks"]);
    // A thread's stack holds objects. (Uninitialized bytes may point to another object: one group.)
    assert!(lost(&found).iter().all(|group| (2500..3000).contains(&group.1)), "{found}");
    assert_eq!(found["lost_objects"].as_u64(), Some(4), "{found}");
    let (stats, _) = program.row(&["stats"]);
    assert_eq!((stats["heaps"][0]["objects"].as_u64(), stats["heaps"][0]["name"].as_str()), (Some(2), Some("mine")));
    let (what, _) = program.row(&["whatis", program.address("own")]);
    assert_eq!((what["heap"].as_str(), what["state"].as_str()), (Some("mine"), Some("live")));
    let (verdict, status) = program.row(&["verify"]);
    assert_eq!(status, 0, "{verdict}");
}

#[test]
fn options_are_set_in_a_running_process() {
    let place = Place::new("core-set");
    let file = place.path("stats");
    let body = "int main(void) {\n\
            puts(\"ready\"); fflush(stdout);\n\
            struct pollfd in = { 0, POLLIN, 0 };\n\
            while (poll(&in, 1, 5) == 0) {\n\
                static void *all[4000];\n\
                for (int i = 0; i < 4000; i++) all[i] = malloc(1000);\n\
                for (int i = 0; i < 4000; i++) free(all[i]);\n\
            }\n\
            return 0;\n\
        }\n";
    let program = Program::start(&place, "works", body);
    let set = |settings: &[&str]| said(&mut craton([&["set", &program.pid()], settings].concat()));
    let done = set(&["release_rate=0", &format!("stats_file={file}"), "--wait", "60"]);
    assert_eq!((done.status, done.err.as_str()), (0, ""));
    let pid = program.pid();
    assert_eq!(done.out, format!("process {pid}: release_rate=0 (was auto)\nprocess {pid}: stats_file={file}\n"));
    let refused = set(&["page_heap=frames", "--wait", "60"]);
    assert!(refused.status == 2 && refused.err.contains("at the start only: craton run -o"), "{}", refused.err);
    for (setting, what) in
        [("no_such_key=1", "there is no option \"no_such_key\""), ("thp=sometimes", "auto, always or never")]
    {
        let refused = set(&["quarantine=1M", setting, "--wait", "60"]);
        assert!(refused.status == 2 && refused.err.contains(what), "{}", refused.err);
    }
    assert!(program.end());
    assert!(fs::read_to_string(&file).unwrap().contains("\"exe\":\"works\""));
}

#[test]
fn a_process_whose_cache_serves_all_that_it_asks_for_is_reached() {
    let place = Place::new("core-served");
    // One object again and again takes no slow path.
    let body = "int main(void) {\n\
            for (int i = 0; i < 1000; i++) { free(malloc(100)); }\n\
            size_t (*usable)(void *) = dlsym(RTLD_DEFAULT, \"malloc_usable_size\");\n\
            puts(\"ready\"); fflush(stdout);\n\
            struct pollfd in = { 0, POLLIN, 0 };\n\
            for (int followed = 0; poll(&in, 1, 1) == 0;) {\n\
                void *volatile p = malloc(100);\n\
                if (usable(p) == 100 && !followed) { followed = 1; FILE *f = fopen(FOLLOWED, \"w\"); fclose(f); }\n\
                free(p);\n\
            }\n\
            return 0;\n\
        }\n";
    for caches in ["caches=thread", "caches=cpu"] {
        let followed = place.path(&format!("followed-{caches}"));
        let body = format!("#define FOLLOWED \"{followed}\"\n{body}");
        let program = Program::start_with(&place, "served", &body, &[caches]);
        let done = said(&mut craton(["set", &program.pid(), "debug=audit,redzone", "quarantine=1M", "--wait", "60"]));
        assert_eq!((done.status, done.err.as_str()), (0, ""), "{caches}");
        let since = std::time::Instant::now();
        while !std::path::Path::new(&followed).exists() {
            assert!(since.elapsed().as_secs() < 60, "{caches}: the thread does not follow");
            std::thread::sleep(std::time::Duration::from_millis(5));
        }
        let some = said(&mut craton(["set", &program.pid(), "quarantine=2M", "audit_log=5", "--wait", "60"]));
        assert!(some.status == 1 && some.err.lines().count() == 1, "{}", some.err);
        assert!(some.err.contains("option \"audit_log=5\": bad"), "{}", some.err);
        assert!(program.end());
    }
}

#[test]
fn a_process_that_uses_an_object_cache_alone_is_reached() {
    let place = Place::new("core-cached");
    let body = "struct options { size_t size; const char *name; size_t object_size, align; void *f[4]; size_t limits[2]; unsigned ms, flags; };\n\
        int main(void) {\n\
            void *(*create)(const void *) = dlsym(RTLD_DEFAULT, \"craton_cache_create\");\n\
            void *(*alloc)(void *) = dlsym(RTLD_DEFAULT, \"craton_cache_alloc\");\n\
            void (*give)(void *, void *) = dlsym(RTLD_DEFAULT, \"craton_cache_free\");\n\
            struct options o = { sizeof o, \"things\", 40 };\n\
            void *cache = create(&o);\n\
            for (int i = 0; i < 100; i++) give(cache, alloc(cache));\n\
            puts(\"ready\"); fflush(stdout);\n\
            struct pollfd in = { 0, POLLIN, 0 };\n\
            while (poll(&in, 1, 1) == 0) give(cache, alloc(cache));\n\
            return 0;\n\
        }\n";
    let program = Program::start(&place, "cached", body);
    for _ in 0..3 {
        let done = said(&mut craton(["set", &program.pid(), "quarantine=1M", "--wait", "60"]));
        assert_eq!((done.status, done.err.as_str()), (0, ""));
    }
    let (verdict, status) = program.row(&["verify"]);
    assert_eq!(status, 0, "{verdict}");
    assert!(program.end());
}

#[test]
fn threads_follow_at_their_next_free() {
    let place = Place::new("core-threads-follow");
    let body = "static atomic_int followed, stop;\n\
        static size_t (*usable)(void *);\n\
        static void *thread(void *x) {\n\
            for (int i = 0; i < 5000; i++) { free(malloc(100)); }\n\
            for (int seen = 0; !stop;) {\n\
                void *volatile p = malloc(100);\n\
                if (usable(p) == 100 && !seen) { seen = 1; followed++; }\n\
                free(p); usleep(100);\n\
            }\n\
            return x;\n\
        }\n\
        int main(void) {\n\
            usable = dlsym(RTLD_DEFAULT, \"malloc_usable_size\");\n\
            pthread_t all[3]; for (int i = 0; i < 3; i++) pthread_create(&all[i], 0, thread, 0);\n\
            puts(\"ready\"); fflush(stdout);\n\
            for (int i = 0; followed < 3; i++) { if (i == 60000) return 1; usleep(1000); }\n\
            stop = 1; for (int i = 0; i < 3; i++) pthread_join(all[i], 0);\n\
            char c; while (read(0, &c, 1) > 0); return 0;\n\
        }\n";
    for caches in ["caches=thread", "caches=auto"] {
        let body = format!("#include <stdatomic.h>\n{body}");
        let program = Program::start_with(&place, "follow", &body, &[caches]);
        let done = said(&mut craton(["set", &program.pid(), "debug=redzone:100", "--wait", "60"]));
        assert_eq!((done.status, done.err.as_str()), (0, ""), "{caches}");
        assert!(program.end(), "{caches}: all threads have followed");
    }
}

#[test]
fn a_process_that_sleeps_keeps_the_request_and_does_it_when_it_wakes() {
    let place = Place::new("core-sleeps");
    let errors = place.path("errors");
    let body = format!(
        "int main(void) {{\n\
            freopen(\"{errors}\", \"w\", stderr);\n\
            global = malloc(10); wait_here();\n\
            /* Awake: the first slow request reads what waits. */\n\
            global = malloc(5000);\n\
            int (*get)(const char *, char *, size_t) = dlsym(RTLD_DEFAULT, \"craton_option_get\");\n\
            char rate[32], size[32]; get(\"release_rate\", rate, 32); get(\"quarantine\", size, 32);\n\
            return strcmp(rate, \"4096\") || strcmp(size, \"8192\");\n\
        }}\n"
    );
    let program = Program::start(&place, "sleeps", &body);
    for setting in ["release_rate=4096", "hard_limit=1T", "soft_limit=2T", "quarantine=8192"] {
        let said = said(&mut craton(["set", &program.pid(), setting, "--wait", "0.05"]));
        assert!(said.status == 3 && said.err.contains("has not read the request in 0.05 s"), "{}", said.err);
        assert!(said.err.contains("The request stays with it") && said.err.contains("gdb -p"), "{}", said.err);
    }
    let long = format!("stats_file={}", "x".repeat(511));
    let refused = said(&mut craton(["set", &program.pid(), &long, &long, "--wait", "0.05"]));
    assert!(refused.status == 1 && refused.err.contains("at most 640"), "{}", refused.err);
    assert!(program.end(), "what waited was set");
    let told = fs::read_to_string(&errors).unwrap();
    let refusal = "craton: option \"soft_limit=2T\": more than the hard limit";
    assert!(told.starts_with(refusal) && told.lines().count() == 1, "{told}");
}

#[test]
fn a_process_that_is_stopped_is_said_to_be() {
    let place = Place::new("core-stopped");
    let program = Program::start(&place, "stopped", "int main(void) { global = malloc(10); wait_here(); return 0; }\n");
    // SAFETY: touches no memory; the child is not reaped.
    let signal = |number| assert_eq!(unsafe { libc::kill(program.pid().parse().unwrap(), number) }, 0);
    signal(libc::SIGSTOP);
    let said = said(&mut craton(["set", &program.pid(), "quarantine=1M", "--wait", "0.05"]));
    signal(libc::SIGCONT);
    assert!(said.status == 3 && said.err.contains("is stopped") && said.err.contains("kill -CONT"), "{}", said.err);
    assert!(program.end());
}

#[test]
fn a_debugger_has_a_process_that_sleeps_do_what_waits() {
    if !std::path::Path::new("/usr/bin/gdb").exists() {
        println!("skipped: no gdb");
        return;
    }
    let place = Place::new("core-gdb");
    let body = "int main(void) { global = malloc(10); wait_here(); return 0; }\n";
    let program = Program::start(&place, "sleeps", body);
    let set = || said(&mut craton(["set", &program.pid(), "quarantine=1M", "--wait", "0.05"]));
    let first = set();
    assert_eq!(first.status, 3, "{}", first.err);
    let advice = first.err.trim_end().rsplit("now: ").next().unwrap();
    let gdb = said(Command::new("sh").args(["-c", advice]));
    if gdb.err.contains("ptrace: Operation not permitted") {
        println!("skipped: gdb may not trace here");
    } else if gdb.err.contains("extended state") {
        // Older debuggers do not know newer processors' registers, and the process dies.
        println!("skipped: gdb does not know this processor: {}", gdb.err);
        return;
    } else {
        let mut asked = craton(["core", "--pid", &program.pid(), "stats"]);
        let asked = said(&mut asked);
        assert_eq!((asked.status, asked.err.as_str()), (0, ""), "the process goes on");
        assert!(gdb.out.contains("$1 = "), "{} {}", gdb.out, gdb.err);
        // Behind a waiting request there would be no room for this one.
        let [long, more] = [format!("stats_file={}", "x".repeat(500)), format!("stats_file={}", "x".repeat(108))];
        let next = said(&mut craton(["set", &program.pid(), &long, &more, "--wait", "0.05"]));
        assert_eq!(next.status, 3, "{}", next.err);
    }
    assert!(program.end());
}

#[test]
fn wrong_calls_say_what_to_do() {
    let wrong = |args: &[&str], status: i32, what: &str| {
        let said = said(&mut craton(args));
        assert!(said.status == status && said.err.contains(what), "{args:?}: {} {}", said.status, said.err);
    };
    wrong(&["core", "stats"], 2, "give a core file, or --pid PID");
    for number in ["0", "-1", "abc", "", "4294967296"] {
        let what = format!("invalid value '{number}' for '--pid <PID>': not a process id");
        wrong(&["core", "--pid", number, "stats"], 2, &what);
        wrong(&["core", "stats", "--pid", number], 2, &what);
        wrong(&["set", number, "thp=auto"], 2, &what.replace("--pid <PID>", "<PID>"));
    }
    wrong(
        &["core", "log", "--pid", "1", "--last", "-1"],
        2,
        "invalid value '-1' for '--last <N>': give a whole number",
    );
    wrong(&["core", "stats", "core.1"], 2, "the core file comes before the command, such as: craton core core.1 stats");
    wrong(&["set", "--pid", "1", "thp=auto"], 2, "the process id comes first");
    wrong(&["core", "--pid", "1", "whatis", "-1"], 2, "hexadecimal");
    wrong(&["core", "--pid", "1", "whatis", "here"], 2, "hexadecimal");
    wrong(&["core", "a", "--pid", "1", "stats"], 2, "cannot be used with the core file a");
    wrong(&["core", "a", "stats", "--pid", "1"], 2, "cannot be used with the core file a");
    wrong(&["core", "--pid", "1", "stats", "--exe", "b"], 2, "cannot be used with --exe b");
    wrong(&["core", "/no/such/core", "stats"], 1, "cannot be opened");
    wrong(&["core", "1234567", "stats"], 1, "give a core file, or --pid 1234567 for a running process");
    wrong(&["core", "/bin/sh", "stats"], 1, "no core");
    let place = Place::new("wrong");
    let pipe = place.path("pipe");
    assert!(Command::new("mkfifo").arg(&pipe).status().unwrap().success());
    wrong(&["core", &pipe, "stats"], 1, "not a file; give a core file, or --pid PID");
    wrong(&["core", "/etc/passwd", "stats"], 1, "`craton core --pid PID save FILE`");
    wrong(&["core", "--pid", "4194305", "stats"], 1, "there is no process 4194305");
    wrong(&["set", "4194305", "thp=auto"], 1, "there is no process 4194305");
    wrong(&["set", "1", "a"], 2, "KEY=VALUE");
    // A PID namespace may have no kernel thread.
    if fs::read_to_string("/proc/2/comm").is_ok_and(|name| name == "kthreadd\n") {
        wrong(&["core", "--pid", "2", "stats"], 1, "process 2 ");
        wrong(&["set", "2", "thp=auto"], 1, "process 2 ");
    }
    let mut other = Command::new("sleep").arg("60").spawn().unwrap();
    let pid = other.id().to_string();
    wrong(&["core", "--pid", &pid, "stats"], 1, "not running on Craton");
    wrong(&["core", "stats", "--pid", &pid], 1, "not running on Craton");
    wrong(&["core", "--pid", &pid, "save", &pipe], 1, "not an ordinary file; give a path where");
    wrong(&["set", &pid, "thp=auto"], 1, "not running on Craton");
    other.kill().unwrap();
    other.wait().unwrap();
}

#[test]
fn of_a_hardened_process_stats_leaks_and_verify_are_right_and_what_waits_is_free() {
    let place = Place::new("core-hardened");
    // Both freed objects wait; one is lost.
    let body = "int main(void) {\n\
            void **kept = global = malloc(1000); printf(\"kept %p\\n\", kept);\n\
            memset(kept, 0, 1000); kept[1] = malloc(300); printf(\"inner %p\\n\", kept[1]);\n\
            void *churn[200];\n\
            for (int i = 0; i < 200; i++) memset(churn[i] = malloc(48), 1, 48);\n\
            for (int i = 0; i < 200; i++) free(churn[i]);\n\
            memset(churn, 0, sizeof churn);\n\
            void *waits = malloc(208); free(waits); printf(\"waits %p\\n\", waits); waits = 0;\n\
            void **lost = malloc(160); lost[0] = 0; printf(\"lost %p\\n\", lost); lost = 0;\n\
            wipe(); wait_here(); return 0;\n\
        }\n";
    let program = Program::start_with(&place, "hardened", body, &["hardened=1"]);
    let (found, status) = program.row(&["leaks"]);
    // A larger class may have lent it.
    let lost: Vec<_> = lost(&found).into_iter().map(|(address, _, objects, _)| (address, objects)).collect();
    assert_eq!((lost, status), (vec![(program.address("lost").to_owned(), 1)], 1), "{found}");
    let (verdict, status) = program.row(&["verify"]);
    assert_eq!((verdict["broken"].as_array().map(Vec::len), status), (Some(0), 0), "{verdict}");
    let (what, _) = program.row(&["whatis", program.address("waits")]);
    assert_eq!(what["state"].as_str(), Some("free"), "{what}");
    let (stats, status) = program.row(&["stats"]);
    assert_eq!(status, 0);
    let live = |size: u64| {
        let class = stats["classes"].as_array().unwrap().iter().find(|c| c["object_bytes"] == size).unwrap();
        class["objects"].as_u64().unwrap()
    };
    // Some of the 200 churned ones wait.
    assert!(live(48) < 50, "{stats}");
}

const HOLDS: &str = "struct node { const void *table; struct node *next; char text[48]; };\n\
    const void *const _ZTV3Foo[4] = { 0, &global, &global, &global };\n\
    static struct node *node(const char *text, struct node *next) {\n\
        struct node *n = memset(malloc(sizeof *n), 0, sizeof *n);\n\
        n->table = &_ZTV3Foo[2]; n->next = next; strcpy(n->text, text); printf(\"%s %p\\n\", text, n); return n; }\n\
    __attribute__((noinline)) static void make(void) {\n\
        global = node(\"first\", node(\"second\", node(\"third\", 0))); node(\"lost\", 0); }\n\
    int main(void) { make(); wipe(); wait_here(); return 0; }\n";

#[test]
fn holders_of_an_object_and_the_way_to_it_are_shown() {
    let place = Place::new("core-refs");
    let program = Program::start(&place, "holds", HOLDS);
    let (found, status) = program.row(&["refs", program.address("third")]);
    assert_eq!(status, 0);
    let holders = found["holders"].as_array().unwrap();
    assert_eq!((holders.len(), &holders[0]["object"]), (1, &program.address("second").into()), "{found}");
    assert_eq!((&holders[0]["offset"], &holders[0]["into"]), (&8.into(), &0.into()), "{found}");
    let path = found["path"].as_array().unwrap();
    let objects: Vec<&str> = path[1..].iter().map(|holder| holder["object"].as_str().unwrap()).collect();
    assert_eq!(objects, [program.address("first"), program.address("second")], "{found}");
    assert_eq!((&path[0]["kind"], &path[0]["name"]), (&"variable".into(), &"global".into()), "{found}");

    let (lost, _) = program.row(&["refs", program.address("lost")]);
    assert_eq!((lost["holders"].as_array().map(Vec::len), lost["path"].as_array().map(Vec::len)), (Some(0), Some(0)));
    let nowhere = said(&mut craton(["core", "--pid", &program.pid(), "refs", "0x10"]));
    assert_eq!(nowhere.status, 1);
    assert!(nowhere.err.contains("no live object is at 0x10; `whatis 0x10`"), "{}", nowhere.err);
    assert!(program.end());
}

#[test]
fn the_words_of_an_object_are_shown_with_what_they_point_to() {
    let place = Place::new("core-dump");
    let program = Program::start(&place, "holds", HOLDS);
    let (found, _) = program.row(&["dump", program.address("second")]);
    let words = found["words"].as_array().unwrap();
    assert_eq!((&found["bytes"], words.len()), (&64.into(), 8), "{found}");
    assert!(words[0]["points_to"].as_str().unwrap().contains("Foo"), "{found}");
    assert_eq!(words[1]["value"], program.address("third"));
    assert_eq!((&words[1]["points_to"], &words[2]["text"]), (&"object of 64 bytes".into(), &"second..".into()));
    let said = said(&mut craton(["core", "--pid", &program.pid(), "dump", program.address("second"), "--bytes", "16"]));
    assert!(said.out.contains("and 48 bytes more") && said.out.lines().count() == 4, "{}", said.out);
    assert!(program.end());
}

#[test]
fn live_objects_are_counted_by_their_users_and_first_words() {
    let place = Place::new("core-users");
    let program = Program::start(&place, "holds", HOLDS);
    let (found, _) = program.row(&["users"]);
    let users = found["users"].as_array().unwrap();
    let foo = users.iter().find(|user| user["kind"] == "type").unwrap();
    assert_eq!((&foo["name"][0], &foo["objects"], &foo["bytes"]), (&"Foo".into(), &4.into(), &256.into()), "{found}");
    let sum: u64 = users.iter().map(|user| user["bytes"].as_u64().unwrap()).sum();
    assert_eq!(Some(sum), found["bytes"].as_u64());
    let (found, _) = program.row(&["histogram"]);
    let rows = found["rows"].as_array().unwrap();
    let foo = rows.iter().find(|row| row["first_word"].as_str().unwrap().contains("Foo")).unwrap();
    assert_eq!((&foo["object_bytes"], &foo["objects"]), (&64.into(), &4.into()), "{found}");
    assert!(program.end());
}

#[test]
fn with_recorded_stacks_a_user_is_an_allocation_site() {
    let place = Place::new("core-sites");
    let program = Program::start_with(&place, "holds", HOLDS, &["debug=audit"]);
    let (found, _) = program.row(&["users"]);
    let site = found["users"].as_array().unwrap().iter().find(|user| user["kind"] == "site").unwrap();
    assert!(site["name"].as_array().unwrap().iter().any(|frame| frame.as_str().unwrap().contains("node+")), "{found}");
    assert!(program.end());
}

#[test]
fn a_prompt_takes_the_same_commands() {
    let place = Place::new("core-shell");
    let program = Program::start(&place, "holds", HOLDS);
    let ask = |lines: &str| {
        let file = place.path("lines");
        fs::write(&file, lines).unwrap();
        let input = fs::File::open(&file).unwrap();
        said(craton(["core", "--pid", &program.pid(), "shell"]).stdin(input))
    };
    let right = ask(&format!("# why?\nrefs {}\n\nhistogram\n", program.address("third")));
    assert_eq!((right.status, right.err.as_str()), (0, ""));
    assert!(
        right.out.contains("it is alive because of") && right.out.contains("first word points to"),
        "{}",
        right.out
    );
    let wrong = ask("reffs 0x10\nrefs 0x10\nshell\nstats\n");
    assert_eq!(wrong.status, 1);
    for text in ["did you mean `refs`?", "no live object is at 0x10", "this is the prompt already"] {
        assert!(wrong.err.contains(text), "{text}: {}", wrong.err);
    }
    assert!(wrong.out.contains("live objects"), "{}", wrong.out);
    assert!(program.end());
}
