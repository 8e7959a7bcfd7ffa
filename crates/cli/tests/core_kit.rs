//! The debugging kit, object caches, and programs linked without `craton run`.

use crate::common::{Place, Program, craton, row, said};
use serde_json::Value;
use std::process::Command;

fn number(row: &Value, name: &str) -> u64 {
    row[name].as_u64().unwrap_or_else(|| panic!("no {name} in {row}"))
}

fn comes_from(who: &Value, function: &str) -> bool {
    let frames = who["stack"].as_array().unwrap_or_else(|| panic!("no stack in {who}"));
    frames.iter().any(|frame| frame.as_str().unwrap().contains(&format!(" {function}+0x")))
}

fn what(program: &Program, name: &str, plus: i64) -> Value {
    let at = u64::from_str_radix(&program.address(name)[2..], 16).unwrap().wrapping_add_signed(plus);
    let (row, status) = program.row(&["whatis", &format!("{at:#x}")]);
    assert_eq!(status, 0);
    row
}

/// Keeps, frees and loses buffers, each in a separate function.
const UNDER_THE_KIT: &str = "\
    __attribute__((noinline)) void *keeps(void) { char *p = malloc(24); memset(p, 1, 24); return p; }\n\
    __attribute__((noinline)) void gives(char *p) { free(p); }\n\
    __attribute__((noinline)) void loses(void) { void **p = malloc(77), **q = malloc(40); p[0] = q; q[0] = 0; }\n\
    int main(void) {\n\
        char *k = global = keeps(); char *f = malloc(100); printf(\"kept %p\\nfreed %p\\n\", k, f);\n\
        gives(f); f = 0;\n\
        for (int i = 0; i < 3; i++) loses();\n\
        wipe(); wait_here(); return 0;\n\
    }\n";

#[test]
fn who_had_a_buffer_and_where_lost_ones_come_from_is_known() {
    let place = Place::new("core-kit");
    let program = Program::start_with(&place, "kit", UNDER_THE_KIT, &["debug=audit,redzone,poison,verify"]);
    let kept = what(&program, "kept", 23);
    assert_eq!((kept["kind"].as_str(), kept["state"].as_str()), (Some("buffer"), Some("live")));
    assert_eq!((kept["place"].as_str(), number(&kept, "bytes"), number(&kept, "offset")), (Some("inside"), 24, 23));
    assert!(comes_from(&kept["allocated"], "keeps") && comes_from(&kept["allocated"], "main"), "{kept}");
    assert_eq!(kept["allocated"]["thread"].as_u64(), Some(program.pid().parse().unwrap()));
    assert!(kept["freed"].is_null(), "{kept}");
    for (plus, beyond) in [(24, 1), (31, 8), (-1, -1), (-16, -16)] {
        let beside = what(&program, "kept", plus);
        assert_eq!((beside["place"].as_str(), beside["beyond"].as_i64()), (Some("redzone"), Some(beyond)), "{beside}");
        assert_eq!(beside["start"].as_str(), Some(program.address("kept")));
    }
    let freed = what(&program, "freed", 5);
    assert_eq!((freed["state"].as_str(), number(&freed, "bytes")), (Some("free"), 100));
    assert!(comes_from(&freed["allocated"], "main") && comes_from(&freed["freed"], "gives"), "{freed}");
    let text = said(&mut craton(["core", "--pid", &program.pid(), "whatis", program.address("freed")])).out;
    assert!(text.contains("0 bytes into the buffer of 100 bytes") && text.contains("\n  freed by thread "), "{text}");

    let (found, status) = program.row(&["leaks"]);
    let sites = found["sites"].as_array().unwrap();
    assert_eq!((sites.len(), status, number(&found, "lost_objects")), (1, 1, 6), "{found}");
    assert!(comes_from(&sites[0], "loses"), "{found}");
    assert_eq!(["roots", "objects", "bytes"].map(|name| number(&sites[0], name)), [3, 6, 3 * (77 + 40)], "{found}");
    assert_eq!(found["groups"][0]["kind"].as_str(), Some("buffer"));

    let (stats, _) = program.row(&["stats"]);
    assert!(number(&stats, "buffers") >= 7 && number(&stats, "waiting") >= 1, "{stats}");
    assert_eq!(program.row(&["verify"]).1, 0);

    let (log, status) = program.row(&["log", "--last", "6"]);
    let last = log["transactions"].as_array().unwrap();
    assert_eq!((status, last.len()), (0, 6), "{log}");
    let sizes: Vec<u64> = last.iter().map(|t| number(t, "bytes")).collect();
    assert_eq!(sizes, [40, 77, 40, 77, 40, 77], "the newest first");
    assert!(last.iter().all(|t| t["action"] == "alloc" && comes_from(t, "loses")), "{log}");
    assert!(number(&log, "count") >= 9);
    assert!(program.end());
}

/// Loses objects of many sizes by one call, and one object by another.
const LOSES_MANY: &str = "\
    __attribute__((noinline)) void loses(int n) { void **p = malloc(n); p[0] = 0; }\n\
    __attribute__((noinline)) void loses_one(void) { void **p = malloc(5000), **q = malloc(77); p[0] = q; q[0] = 0; }\n\
    int main(void) {\n\
        for (volatile int n = 1; n <= 30; n++) loses(16 * n);\n\
        loses_one(); wipe(); wait_here(); return 0;\n\
    }\n";

#[test]
fn lost_objects_of_many_sizes_are_one_site_and_few_rows() {
    let place = Place::new("core-sizes");
    let program = Program::start_with(&place, "many", LOSES_MANY, &["debug=audit"]);
    let (found, status) = program.row(&["leaks"]);
    let site = |name| found["sites"].as_array().unwrap().iter().find(|site| comes_from(site, name)).unwrap();
    let of = |site: &Value| ["roots", "objects", "bytes", "least_bytes", "most_bytes"].map(|name| number(site, name));
    assert_eq!((of(site("loses")), status), ([30, 30, 16 * 465, 16, 480], 1), "{found}");
    assert_eq!(of(site("loses_one")), [1, 2, 5077, 5000, 5000], "{found}");
    let text = said(&mut craton(["core", "--pid", &program.pid(), "leaks"])).out;
    assert!(text.contains("30 lost objects of 16 to 480 bytes (7,440 bytes), such as 0x"), "{text}");
    assert!(text.contains("1 lost object of 5,000 bytes (2 with those below it, 5,077 bytes), at 0x"), "{text}");
    let rows: Vec<&str> = text.lines().skip_while(|line| !line.contains("size  lost")).skip(1).collect();
    let rows: Vec<Vec<&str>> = rows.iter().map(|row| row.split("  ").map(str::trim).collect()).collect();
    let sizes: Vec<&str> = rows.iter().take(6).map(|row| *row.iter().find(|cell| !cell.is_empty()).unwrap()).collect();
    assert_eq!(sizes, ["16", "32", "48 to 64", "80 to 128", "144 to 256", "272 to 480"], "{text}");
    let all = said(&mut craton(["core", "--pid", &program.pid(), "leaks", "--all"])).out;
    assert!(all.lines().any(|line| line.trim_start().starts_with("464 ")), "a row for each size: {all}");
    assert!(program.end());
}

#[test]
fn samples_of_one_stack_are_one_site() {
    let place = Place::new("core-sampled");
    let loses = LOSES_MANY.replace("n <= 30", "n <= 3");
    let program = Program::start_with(&place, "sampled", &loses, &["guard_sample=1"]);
    let (found, _) = program.row(&["leaks"]);
    let sites = found["sites"].as_array().unwrap();
    let of_loop: Vec<&Value> = sites.iter().filter(|site| comes_from(site, "loses")).collect();
    assert!(of_loop.len() == 1 && number(of_loop[0], "roots") == 3, "{found}");
    assert_eq!(["least_bytes", "most_bytes"].map(|name| number(of_loop[0], name)), [16, 48], "{found}");
    let stacks: Vec<&Value> = sites.iter().map(|site| &site["stack"]).collect();
    assert!(stacks.iter().enumerate().all(|(i, stack)| !stacks[..i].contains(stack)), "{found}");
    assert!(program.end());
}

#[test]
fn closed_pages_are_explained_and_need_not_be_read() {
    let place = Place::new("core-guard");
    let program = Program::start_with(&place, "guard", UNDER_THE_KIT, &["debug=all"]);
    let page = 4096 - i64::from_str_radix(&program.address("kept")[2..], 16).unwrap() % 4096;
    let beyond = |row: &Value| (row["place"].as_str().unwrap().to_owned(), row["beyond"].as_i64().unwrap());
    let kept = what(&program, "kept", page);
    assert_eq!(beyond(&kept), ("closed-page".to_owned(), page - 23), "{kept}");
    assert!(comes_from(&kept["allocated"], "keeps"), "{kept}");
    assert_eq!(beyond(&what(&program, "kept", page - 1)).0, "redzone");
    let freed = what(&program, "freed", 99);
    assert_eq!((freed["state"].as_str(), freed["place"].as_str()), (Some("free"), Some("inside")));
    assert!(comes_from(&freed["freed"], "gives"), "{freed}");
    let (found, _) = program.row(&["leaks"]);
    assert_eq!(number(&found, "lost_bytes"), 3 * (77 + 40), "{found}");
    // In a core closed pages are missing.
    let core = place.path("saved.core");
    assert_eq!(said(&mut craton(["core", "--pid", &program.pid(), "save", &core])).status, 0);
    let (found, _) = row(&[&core, "leaks"]);
    assert_eq!(number(&found, "lost_bytes"), 3 * (77 + 40), "{found}");
    assert!(comes_from(&found["sites"][0], "loses"), "{found}");
}

#[test]
fn buffers_that_wait_are_not_counted_as_in_use() {
    let place = Place::new("core-waiting");
    let body = "int main(void) {\n\
            static void *all[100];\n\
            for (int i = 0; i < 100; i++) all[i] = malloc(2000);\n\
            for (int i = 0; i < 90; i++) free(all[i]);\n\
            free(malloc(500000)); wait_here(); return 0;\n\
        }\n";
    let program = Program::start_with(&place, "waiting", body, &["debug=poison"]);
    let (stats, _) = program.row(&["stats"]);
    // Only a word around the 2000 bytes keeps the buffer from the object's start.
    let class = stats["classes"]
        .as_array()
        .unwrap()
        .iter()
        .find(|c| number(c, "object_bytes") >= 2000 && number(c, "waiting") > 0);
    let class = class.unwrap_or_else(|| panic!("{stats}"));
    assert_eq!((number(class, "objects"), number(class, "waiting")), (10, 90), "{stats}");
    assert_eq!((number(&stats, "large_objects"), number(&stats, "waiting") >= 91), (0, true), "{stats}");
}

#[test]
fn without_a_log_it_is_said_how_to_have_one() {
    let place = Place::new("core-nolog");
    let program = Program::start(&place, "plain", "int main(void) { global = malloc(9); wait_here(); return 0; }\n");
    let said = said(&mut craton(["core", "--pid", &program.pid(), "log"]));
    assert!(said.status == 1 && said.out.is_empty(), "{}", said.out);
    assert!(said.err.contains("keeps no log; `craton set PID debug=audit`"), "{}", said.err);
}

const CACHES: &str = "\
    struct options { size_t size; const char *name; size_t object_size, align; int (*make)(void *, void *); void (*end)(void *, void *);\n\
        void (*reclaim)(void *); void *argument; size_t limit_objects, limit_bytes; unsigned ms, flags; };\n\
    static int make(void *object, void *x) { void **o = object; o[0] = memset(malloc(500), 0, 500); o[1] = 0; return 0; }\n\
    int main(void) {\n\
        void *(*create)(const void *) = dlsym(RTLD_DEFAULT, \"craton_cache_create\");\n\
        void *(*alloc)(void *) = dlsym(RTLD_DEFAULT, \"craton_cache_alloc\");\n\
        void (*give)(void *, void *) = dlsym(RTLD_DEFAULT, \"craton_cache_free\");\n\
        struct options o = { sizeof o, \"plain things\", 40 };\n\
        struct options c = { sizeof c, \"made things\", 200, 16, make };\n\
        c.argument = memset(malloc(600), 0, 600); printf(\"argument %p\\n\", c.argument); c.ms = o.ms = -1;\n\
        void *plain = create(&o), *made = create(&c);\n\
        c.argument = 0;\n\
        void ***kept = global = alloc(plain); memset(kept, 0, 40);\n\
        void **lost = alloc(plain); memset(lost, 0, 40); printf(\"kept %p\\nlost %p\\n\", kept, lost);\n\
        lost[2] = memset(malloc(300), 0, 300);\n\
        kept[1] = alloc(made); printf(\"made %p\\n\", kept[1]);\n\
        void *few[50];\n\
        for (int i = 0; i < 50; i++) few[i] = alloc(made);\n\
        printf(\"free %p\\nowned %p\\n\", few[7], *(void **)few[7]);\n\
        for (int i = 0; i < 50; i++) { give(made, few[i]); few[i] = 0; }\n\
        lost = 0; wipe(); wait_here(); _exit(0);\n\
    }\n";

#[test]
fn objects_of_caches_are_known_kept_and_lost_as_others_are() {
    let place = Place::new("core-caches");
    let program = Program::start(&place, "caches", CACHES);
    let kept = what(&program, "kept", 39);
    assert_eq!((kept["kind"].as_str(), kept["state"].as_str()), (Some("cache"), Some("live")), "{kept}");
    assert_eq!((kept["cache"].as_str(), number(&kept, "offset")), (Some("plain things"), 39));
    let made = what(&program, "made", 100);
    assert_eq!((made["cache"].as_str(), made["state"].as_str()), (Some("made things"), Some("live")), "{made}");
    assert_eq!(
        number(&made, "bytes"),
        200,
        "the object's size, as in `stats`, not the distance to the next one: {made}"
    );
    let behind = what(&program, "made", 203);
    assert_eq!((number(&behind, "bytes"), behind["beyond"].as_i64()), (200, Some(4)), "{behind}");
    let free = what(&program, "free", 0);
    assert_eq!((free["cache"].as_str(), free["state"].as_str()), (Some("made things"), Some("free")), "{free}");
    assert!(["array", "depot", "slab"].contains(&free["place"].as_str().unwrap()), "{free}");

    // The argument and free constructed objects keep what they point to.
    let (found, status) = program.row(&["leaks"]);
    assert_eq!((number(&found, "lost_objects"), status), (2, 1), "{found}");
    let group = &found["groups"][0];
    assert_eq!((group["kind"].as_str(), group["cache"].as_str()), (Some("cache"), Some("plain things")), "{found}");
    assert_eq!((group["address"].as_str(), number(group, "object_bytes")), (Some(program.address("lost")), 40));

    let (stats, _) = program.row(&["stats"]);
    let line = |name: &str| {
        let caches = stats["caches"].as_array().unwrap().iter();
        caches.into_iter().find(|c| c["name"] == name).unwrap_or_else(|| panic!("{stats}")).clone()
    };
    let (plain, made) = (line("plain things"), line("made things"));
    assert_eq!((number(&plain, "objects"), number(&made, "objects")), (2, 1), "{stats}");
    let free: u64 = ["in_arrays", "in_depot", "on_slabs"].iter().map(|name| number(&made, name)).sum();
    assert_eq!((free, number(&made, "constructed")), (50, 51), "{made}");
    assert!(number(&made, "total") >= 51 && number(&made, "object_bytes") == 200 && number(&made, "slabs") >= 1);
    let (verdict, status) = program.row(&["verify"]);
    assert_eq!((status, verdict["broken"].as_array().map(Vec::len)), (0, Some(0)), "{verdict}");
    let text = said(&mut craton(["core", "--pid", &program.pid(), "stats"])).out;
    assert!(text.contains("made things"), "{text}");
}

#[test]
fn a_core_of_a_process_with_caches_has_only_what_they_use() {
    let place = Place::new("core-caches-saved");
    let program = Program::start(&place, "caches", CACHES);
    let (live, _) = program.row(&["leaks"]);
    let core = place.path("saved.core");
    assert_eq!(said(&mut craton(["core", "--pid", &program.pid(), "save", &core])).status, 0);
    // All reserved address space would be 64 GiB of holes.
    let bytes = std::fs::metadata(&core).unwrap().len();
    assert!(bytes < 1 << 30, "{bytes} bytes");
    let (found, _) = row(&[&core, "leaks"]);
    assert_eq!((&found["lost_objects"], &found["lost_bytes"]), (&live["lost_objects"], &live["lost_bytes"]), "{found}");
    assert_eq!(what(&program, "free", 0)["state"], row(&[&core, "whatis", program.address("free")]).0["state"]);
    assert_eq!(row(&[&core, "verify"]).1, 0);
}

#[test]
fn objects_of_caches_under_the_kit_have_owners() {
    let place = Place::new("core-kit-caches");
    let program = Program::start_with(&place, "caches", CACHES, &["debug=audit,redzone,verify"]);
    let made = what(&program, "made", 200);
    assert_eq!((made["kind"].as_str(), made["cache"].as_str()), (Some("buffer"), Some("made things")), "{made}");
    assert_eq!((made["beyond"].as_i64(), number(&made, "bytes")), (Some(1), 200));
    assert!(comes_from(&made["allocated"], "main"), "{made}");
    let (stats, _) = program.row(&["stats"]);
    let caches = stats["caches"].as_array().unwrap();
    let objects = |name: &str| caches.iter().find(|c| c["name"] == name).map(|c| number(c, "objects"));
    assert_eq!((objects("plain things"), objects("made things")), (Some(2), Some(1)), "{stats}");
    let (found, _) = program.row(&["leaks"]);
    let lost = found["groups"].as_array().unwrap().iter().find(|g| g["address"] == program.address("lost"));
    let lost = lost.unwrap_or_else(|| panic!("{found}"));
    assert_eq!((lost["cache"].as_str(), number(lost, "objects")), (Some("plain things"), 2), "{found}");
    assert_eq!(program.row(&["verify"]).1, 0);
}

#[test]
fn what_a_freed_huge_object_holds_keeps_nothing() {
    let place = Place::new("core-kept");
    // The kept mapping has the only pointer to an object.
    let body = "int main(void) {\n\
            enum { MIB = 1 << 20 };\n\
            char **huge = 0;\n\
            for (int i = 0; i < 4; i++) { free(huge); huge = malloc(64 * MIB); memset(huge, 0, 4096); }\n\
            huge[5] = memset(malloc(120), 0, 120); printf(\"lost %p\\nhuge %p\\n\", huge[5], huge);\n\
            free(huge); huge = 0; wipe(); wait_here(); _exit(0);\n\
        }\n";
    let program = Program::start_with(&place, "kept", body, &["background=1"]);
    let (found, status) = program.row(&["leaks"]);
    assert_eq!((number(&found, "lost_objects"), status), (1, 1), "{found}");
    assert_eq!(found["groups"][0]["address"].as_str(), Some(program.address("lost")));
}

#[test]
fn the_kit_is_turned_on_in_a_program_that_runs_and_off_again() {
    let place = Place::new("core-live");
    let body = "__attribute__((noinline)) void *makes(void) { char *p = malloc(3000); p[0] = 1; return p; }\n\
        int main(void) {\n\
            static void *ring[2000]; puts(\"ready\"); fflush(stdout);\n\
            struct pollfd in = { 0, POLLIN, 0 };\n\
            for (unsigned i = 0; poll(&in, 1, 1) == 0; i++) {\n\
                for (int k = 0; k < 2000; k++) ring[k] = makes();\n\
                for (int k = 3; k < 2000; k++) free(ring[k]);\n\
                free(global); free(ring[1]); free(ring[2]);\n\
                global = ring[0];\n\
            }\n\
            return 0;\n\
        }\n";
    let program = Program::start(&place, "live", body);
    let set = |setting: &str| {
        let said = said(&mut craton(["set", &program.pid(), setting, "--wait", "60"]));
        assert_eq!((said.status, said.err.as_str()), (0, ""));
    };
    let newest = || program.row(&["log", "--last", "1"]).0;
    set("debug=audit,redzone,poison");
    // Sooner or later a buffer is live when the log is read.
    let of_makes = |t: &&Value| t["action"] == "alloc" && t["bytes"] == 3000;
    let found = (0..2000).find_map(|_| {
        let log = program.row(&["log", "--last", "3000"]).0;
        let t = log["transactions"].as_array().unwrap().iter().find(of_makes)?;
        assert!(comes_from(t, "makes"), "{t}");
        let (buffer, _) = program.row(&["whatis", t["address"].as_str().unwrap()]);
        (buffer["kind"] == "buffer").then_some(buffer)
    });
    let buffer = found.expect("the log fills");
    assert!(comes_from(&buffer["allocated"], "makes") && comes_from(&buffer["allocated"], "main"), "{buffer}");
    set("debug=none");
    let ends = (0..2000).any(|_| {
        let before = number(&newest(), "count");
        std::thread::sleep(std::time::Duration::from_millis(20));
        number(&newest(), "count") == before && before > 0
    });
    assert!(ends, "the log comes to rest");
    assert!(program.end());
}

const ALONE: &str = "__attribute__((noinline)) static void lose(void) { void **p = malloc(333); p[0] = 0; printf(\"lost %p\\n\", p); }\n\
    int main(void) { global = malloc(50); lose(); wipe(); wait_here(); return 0; }\n";

#[test]
fn a_program_that_is_linked_statically_is_read_too() {
    let place = Place::new("core-static");
    let library = crate::common::library().with_file_name("libcraton.a");
    let program = place.compile(
        "alone",
        &format!("{}{ALONE}", crate::common::HEAD),
        &["-w", "-static", library.to_str().unwrap(), "-lpthread", "-ldl"],
    );
    let program = Program::run(&mut Command::new(program));
    let (found, status) = program.row(&["leaks"]);
    assert_eq!(status, 1, "{found}");
    let lost = found["groups"].as_array().unwrap().iter().any(|g| g["address"] == program.address("lost"));
    assert!(lost && number(&found, "lost_objects") == 1, "{found}");
    assert_eq!(program.row(&["verify"]).1, 0);
    assert!(program.end());
}

#[test]
fn a_rust_program_with_craton_as_its_allocator_is_read_too() {
    let program = crate::common::cargo_program("craton-programs", "craton-rust");
    let program = Program::run(Command::new(program).arg("waits"));
    let (found, status) = program.row(&["leaks"]);
    let lost = found["groups"].as_array().unwrap().iter().find(|g| g["address"] == program.address("lost"));
    let lost = lost.unwrap_or_else(|| panic!("{found}"));
    assert_eq!((status, number(lost, "object_bytes")), (1, 3264), "{found}");
    assert!(found["groups"].as_array().unwrap().iter().all(|g| g["address"] != program.address("kept")), "{found}");
    assert_eq!(program.row(&["whatis", program.address("kept")]).0["state"], "live");
    assert_eq!(program.row(&["verify"]).1, 0);
    let profile = said(&mut craton(["profile", &program.pid()]));
    assert!(format!("{}{}", profile.out, profile.err).contains("small objects"), "{}{}", profile.out, profile.err);
    assert!(program.end());
}

#[test]
fn a_program_that_lost_nothing_is_referred_to_the_profile() {
    let place = Place::new("core-keeps");
    let body = "int main(void) { global = malloc(1000); wipe(); wait_here(); return 0; }\n";
    let program = Program::start(&place, "keeps", body);
    let found = said(&mut craton(["core", "--pid", &program.pid(), "leaks"]));
    assert!(found.status == 0 && found.out.contains(": 0 lost objects, "), "{} {}", found.out, found.err);
    assert!(found.out.ends_with(&format!("`craton profile {}` shows who holds what lives\n", program.pid())));
}

#[test]
fn samples_tell_where_lost_objects_come_from() {
    const LOSES: &str = "__attribute__((noinline)) static void lose_one(void) { memset(malloc(800), 1, 800); }\n\
        int main(void) { for (int i = 0; i < 4000; i++) lose_one(); wipe(); wait_here(); return 0; }\n";
    let place = Place::new("core-sampled");
    let program = Program::start_with(&place, "loses", LOSES, &["profile=16K"]);
    let (found, status) = program.row(&["leaks"]);
    let site = &found["sampled"][0];
    assert!(status == 1 && site["stack"][0].as_str().is_some_and(|call| call.contains(" lose_one+0x")), "{found}");
    let objects = site["objects"].as_u64().unwrap();
    assert!((2000..8000).contains(&objects), "{site}");
    let text = said(&mut craton(["core", "--pid", &program.pid(), "leaks"])).out;
    assert!(text.contains(" lost objects, estimated from ") && text.contains("debug=audit"), "{text}");
    assert!(program.end());
}
