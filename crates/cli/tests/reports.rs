//! The debugging kit's reports as documents, with rules and exit statuses.

use crate::common::{Place, Said, craton, said};
use serde_json::Value;
use std::fs;
use std::process::Command;

/// Lines matter: the tests name them.
const SOURCE: &str = "#include <stdlib.h>
#include <string.h>
#include <unistd.h>
__attribute__((noinline)) char *take(int n) {
    return malloc(n);
}
__attribute__((noinline)) void give(char *p) {
    free(p);
}
__attribute__((noinline)) void lose(int n) {
    char *volatile p = take(n); p = 0;
}
int main(int argc, char **argv) {
    if (argc > 1 && !strcmp(argv[1], \"leak\")) for (int i = 0; i < 3; i++) lose(24);
    if (argc > 1 && !strcmp(argv[1], \"leak\")) lose(1000);
    if (argc > 1 && !strcmp(argv[1], \"uaf\")) { char *p = take(24); give(p); return p[3]; }
    if (argc > 1 && !strcmp(argv[1], \"over\")) { char *p = take(24); p[24] = 1; give(p); }
    if (argc > 1 && !strcmp(argv[1], \"twice\")) { char *volatile p = take(24); give(p); give(p); }
    if (argc > 1 && !strcmp(argv[1], \"leave\")) { lose(24); _exit(0); }
    if (argc > 2) return atoi(argv[2]);
    return 0;
}
";

struct World {
    place: Place,
    program: String,
}

impl World {
    fn new(name: &str) -> Self {
        let place = Place::new(name);
        // The root of the sources.
        fs::create_dir(place.path(".git")).unwrap();
        let program = place.compile("program", SOURCE, &["-g", "-w"]);
        Self { place, program }
    }

    fn run(&self, options: &[&str], program: &[&str]) -> Said {
        said(&mut self.command(options, program))
    }

    fn command(&self, options: &[&str], program: &[&str]) -> Command {
        let mut command = craton([&["run", "-o", "debug=all"], options, &["--", &self.program], program].concat());
        command.current_dir(&self.place.0);
        command
    }

    fn document(&self, name: &str) -> Value {
        let text = fs::read_to_string(self.place.path(name)).unwrap();
        serde_json::from_str(&text).unwrap_or_else(|e| panic!("{e}: {text}"))
    }

    /// A file of rules.
    fn rules(&self, text: &str) -> String {
        let path = self.place.path("rules");
        fs::write(&path, text).unwrap();
        path
    }
}

/// The text behind the processes' reports.
fn source_lines(ran: &Said) -> Option<&str> {
    let (reports, lines) = ran.err.split_once("craton: source lines of the reports\n")?;
    assert!(reports.contains("craton: BUG "), "{}", ran.err);
    Some(lines)
}

#[test]
fn source_lines_follow_reports_of_which_no_document_is_made() {
    let world = World::new("lines");
    let ran = world.run(&[], &["uaf"]);
    let lines = source_lines(&ran).unwrap_or_else(|| panic!("{}", ran.err));
    for part in [
        "craton: use-after-free at program.c:16 in main: read from a buffer after it was freed\n\
         craton:   found\ncraton:     #0 at program.c:16 in main\n",
        "craton:   allocated\ncraton:     #0 at program.c:5 in take\ncraton:     #1 at program.c:16 in main\n",
        "craton:   freed\ncraton:     #0 at program.c:8 in give\ncraton:     #1 at program.c:16 in main\n",
        // Without a line as in a report.
        " in __libc_start_main (",
    ] {
        assert!(lines.contains(part), "{part}: {}", ran.err);
    }
    // The status is the program's.
    assert_eq!(ran.status, 139, "{}", ran.err);
    let file = format!("debug_file={}", world.place.path("reports"));
    let alone = world.run(&["-o", &file], &["uaf"]);
    assert_eq!((alone.status, source_lines(&alone)), (139, None), "{}", alone.err);
    let leaks = world.run(&[], &["leak", "7"]);
    assert_eq!(leaks.status, 7);
    let lines = source_lines(&leaks).unwrap_or_default();
    assert!(lines.contains("craton: leak at program.c:5 in take: nothing leads to 3 buffers of 72 bytes\n"), "{lines}");
    assert!(lines.contains("craton:     #1 at program.c:11 in lose\n"), "{lines}");
    let clean = world.run(&[], &["nothing", "3"]);
    assert_eq!((clean.status, clean.err.as_str()), (3, ""));
}

#[test]
fn reports_without_lines_are_printed_once() {
    let place = Place::new("no-lines");
    let program = place.compile("program", SOURCE, &["-w"]);
    let ran = said(&mut craton(["run", "-o", "debug=all", "--", &program, "twice"]));
    assert_eq!((ran.status, source_lines(&ran)), (134, None), "{}", ran.err);
    assert_eq!(ran.err.matches("double-free").count(), 1, "{}", ran.err);
}

/// A program that cannot be watched runs as before.
#[test]
fn without_room_for_reports_the_program_runs() {
    let world = World::new("no-room");
    let mut command = world.command(&[], &["uaf"]);
    let ran = said(command.env("TMPDIR", "/proc"));
    assert_eq!((ran.status, source_lines(&ran)), (139, None), "{}", ran.err);
    assert!(ran.err.contains("craton: BUG use-after-free"), "{}", ran.err);
}

fn place_of(finding: &Value) -> (String, u64, String) {
    let text = |name: &str| finding["place"][name].as_str().unwrap_or_default().to_owned();
    let file = text("file").rsplit('/').next().unwrap_or_default().to_owned();
    (file, finding["place"]["line"].as_u64().unwrap_or(0), text("function"))
}

fn at(line: u64, function: &str) -> (String, u64, String) {
    ("program.c".to_owned(), line, function.to_owned())
}

#[test]
fn bugs_and_leaks_have_file_and_line_and_statuses_of_their_own() {
    let world = World::new("reports");
    for (mode, checks, kind, place, status) in [
        ("leak", "all", "leak", at(5, "take"), 98),
        ("uaf", "all", "use-after-free", at(16, "main"), 99),
        // Found by the free, which is not to blame.
        ("over", "audit,redzone", "overflow", at(5, "take"), 99),
        ("twice", "all", "double-free", at(8, "give"), 99),
    ] {
        let ran = world.run(&["-o", &format!("debug={checks}"), "--json", "out.json"], &[mode]);
        assert_eq!(ran.status, status, "{mode}: {}", ran.err);
        let document = world.document("out.json");
        assert_eq!(document["name"], "reports");
        let first = &document["rows"][0];
        assert_eq!((first["kind"].as_str(), place_of(first)), (Some(kind), place), "{mode}: {document:#}");
        let allocated = first["stacks"]["allocated"].as_array().unwrap();
        assert!(allocated.iter().any(|call| call["function"] == "main" && call["line"].is_u64()), "{document:#}");
        let line = format!("craton: {kind} at program.c:{} in ", first["place"]["line"]);
        assert!(ran.err.contains(&line), "no {line:?} in {}", ran.err);
    }
    let clean = world.run(&["--json", "out.json"], &[]);
    assert_eq!((clean.status, clean.err.as_str()), (0, "craton: 0 bugs, 0 leaks\n"));
    assert_eq!(world.document("out.json")["rows"], Value::Array(Vec::new()));
}

#[test]
fn leaks_of_one_place_are_one_finding_also_of_several_processes() {
    let world = World::new("reports-many");
    let script = format!("{0} leak; {0} leak & wait; exit 0", world.program);
    let ran = said(
        craton(["run", "-o", "debug=leak,audit", "--json", "out.json", "--", "sh", "-c", &script])
            .current_dir(&world.place.0),
    );
    assert_eq!(ran.status, 98, "{}", ran.err);
    let document = world.document("out.json");
    // The shell has leaks, too.
    let rows: Vec<&Value> = document["rows"].as_array().unwrap().iter().filter(|row| place_of(row).1 == 5).collect();
    let number = |row: &Value, name: &str| row[name].as_u64().unwrap();
    assert_eq!(rows.len(), 2, "{document:#}");
    let small = rows.iter().find(|row| number(row, "objects") == 6).unwrap();
    assert_eq!((number(small, "bytes"), number(small, "times")), (6 * 24, 2), "{small}");
    assert_eq!(small["processes"].as_array().unwrap().len(), 2);
    assert_eq!(small["message"], "nothing leads to 6 buffers of 144 bytes");
}

#[test]
fn statuses_can_be_chosen_and_a_failure_of_the_program_outweighs_leaks() {
    let world = World::new("reports-status");
    for (options, program, status) in [
        (&["--leaks-exit", "7"] as &[&str], &["leak"] as &[&str], 7),
        (&["--leaks-exit", "0"], &["leak"], 0),
        (&["--leaks-exit=7"], &["leak", "5"], 5),
        (&["--leaks-exit=7", "--bugs-exit", "0"], &["twice"], 134),
        (&["--bugs-exit", "31"], &["twice"], 31),
        (&["--bugs-exit", "31"], &["none", "5"], 5),
    ] {
        let ran = world.run(options, program);
        assert_eq!(ran.status, status, "{options:?} {program:?}: {}", ran.err);
    }
    for wrong in ["-1", "256", "x", ""] {
        let ran = world.run(&[&format!("--leaks-exit={wrong}")], &["leak"]);
        assert_eq!((ran.status, ran.out.as_str()), (2, ""), "{wrong}: {}", ran.err);
        assert!(ran.err.contains("give a status from 0 to 255"), "{}", ran.err);
    }
}

#[test]
fn rules_suppress_by_function_file_and_library_and_unused_ones_are_listed() {
    let world = World::new("reports-rules");
    for (rules, status) in [
        ("leak function=lose", 0),
        ("leak function=los?\n", 0),
        ("* file=program.c", 0),
        ("leak,overflow library=prog*am # a comment", 0),
        ("leak function=\"lose\" library=*/program", 0),
        ("overflow function=lose", 98),
        ("leak function=los", 98),
        ("leak function=lose file=other.c", 98),
        ("leak function=lose library=libc.so*", 98),
    ] {
        let file = world.rules(rules);
        let ran = world.run(&["--suppress", &file, "--json", "out.json"], &["leak"]);
        assert_eq!(ran.status, status, "{rules}: {}", ran.err);
        let document = world.document("out.json");
        let by: Vec<&Value> = document["rows"].as_array().unwrap().iter().map(|row| &row["suppressed_by"]).collect();
        let unused = format!("{file}:1: the rule matched no report: {}", rules.split(" #").next().unwrap().trim());
        if status == 0 {
            assert_eq!(by, [&format!("{file}:1"), &format!("{file}:1")], "{rules}");
            assert!(ran.err.contains("craton: 0 bugs, 0 leaks\n"), "{}", ran.err);
            assert!(ran.err.contains("craton: 2 findings suppressed by rules\n"), "{}", ran.err);
            assert!(!ran.err.contains("matched no report"), "{}", ran.err);
        } else {
            assert!(by.iter().all(|by| by.is_null()), "{rules}");
            assert!(ran.err.contains(&format!("craton: {unused}\n")), "{}", ran.err);
            assert!(document["notes"].as_array().unwrap().contains(&unused.into()));
        }
    }
    // A suppressed bug has still ended the program.
    let file = world.rules("double-free function=give");
    let ran = world.run(&["--suppress", &file, "--json", "out.json"], &["twice"]);
    let note = "a rule hides the report of a bug, which still ended its process: the status is CMD's, 134 (SIGABRT)";
    assert!(ran.status == 134 && ran.err.contains("(program) ended by SIGABRT"), "{}", ran.err);
    assert!(ran.err.contains(&format!("craton: {note}\n")), "{}", ran.err);
    let document = world.document("out.json");
    assert!(document["notes"].as_array().unwrap().contains(&note.into()), "{document:#}");
    assert_eq!((&document["status"], &document["unserved"]), (&134.into(), &Value::Null));
    let rows = document["rows"].as_array().unwrap();
    assert!(rows.len() == 1 && rows[0]["programs"] == serde_json::json!(["program"]), "{document:#}");
}

#[test]
fn wrong_rules_are_refused_with_their_line_before_anything_runs() {
    let world = World::new("reports-wrong");
    for (rules, line, why) in [
        ("# fine\n\nleek function=f", 3, "\"leek\" is no kind of report; did you mean \"leak\"?"),
        ("leak", 1, "the rule has no condition"),
        ("leak function", 1, "\"function\" is no condition"),
        ("leak func=f", 1, "\"func\" is no condition; conditions: function=, file=, library="),
        ("leak file=", 1, "file= has no pattern"),
        ("leak function=\"f", 1, "a quotation mark is not closed"),
        ("function=f", 1, "\"function=f\" is no kind of report"),
    ] {
        let file = world.rules(rules);
        let ran = world.run(&["--suppress", &file, "--json", "new.json"], &["leak"]);
        assert_eq!((ran.status, ran.out.as_str()), (2, ""), "{rules}: {}", ran.err);
        assert!(ran.err.starts_with(&format!("craton: {file}:{line}: {why}")), "{rules}: {}", ran.err);
        assert!(!fs::exists(world.place.path("new.json")).unwrap());
    }
    let ran = world.run(&["--suppress", "/nonexistent"], &["leak"]);
    assert!(ran.status == 2 && ran.err.contains("/nonexistent: cannot be read"), "{}", ran.err);
}

#[test]
fn files_that_cannot_be_written_end_before_anything_runs() {
    let world = World::new("reports-files");
    for (options, status, why) in [
        (&["--json", "/nonexistent/x"] as &[&str], 1, "cannot write /nonexistent/x"),
        (&["--sarif", "-"], 2, "--sarif -: standard output is CMD's"),
        (&["--json", "a", "--sarif", "a"], 2, "--sarif a: another option writes the same file"),
        (&["--json", "a", "-o", "debug_file=/tmp/x"], 2, "debug_file cannot be set together"),
    ] {
        let ran = world.run(options, &["leak"]);
        assert_eq!((ran.status, ran.out.as_str()), (status, ""), "{options:?}: {}", ran.err);
        assert!(ran.err.contains(why) && !ran.err.contains("BUG"), "{options:?}: {}", ran.err);
    }
}

#[test]
fn a_run_that_checked_nothing_fails_and_one_without_checks_is_told() {
    let place = Place::new("reports-nothing");
    let program = place.compile("program", "int main(void) { return 0; }", &["-static"]);
    let ran = said(craton(["run", "-o", "debug=all", "--sarif", "out.sarif", "--", &program]).current_dir(&place.0));
    assert_eq!(ran.status, 1, "{}", ran.err);
    assert!(ran.err.contains("nothing was served"), "{}", ran.err);
    let sarif = fs::read_to_string(place.path("out.sarif")).unwrap();
    let sarif: Value = serde_json::from_str(&sarif).unwrap();
    assert_eq!(sarif["runs"][0]["invocations"][0]["executionSuccessful"], false);
    let ran = said(craton(["run", "--sarif", "out.sarif", "--", "ls", "/"]).current_dir(&place.0));
    assert_eq!(ran.status, 0);
    assert!(ran.err.contains("no check of the debugging kit is on"), "{}", ran.err);
}

#[test]
fn a_program_that_exec_made_unserved_does_not_pass() {
    let place = Place::new("reports-exec");
    let program = place.compile("static", "int main(int argc, char **argv) { return argc - 1; }", &["-static"]);
    let run = |script: &str| {
        let files = ["--json", "out.json", "--sarif", "out.sarif", "--code-quality", "quality.json"];
        let command = ["--", "bash", "-c", script, &program];
        let ran = said(craton([&["run", "-o", "debug=redzone"], &files[..], &command].concat()).current_dir(&place.0));
        let read =
            |name: &str| -> Value { serde_json::from_str(&fs::read_to_string(place.path(name)).unwrap()).unwrap() };
        (ran, read("out.json"), read("out.sarif"), read("quality.json"))
    };
    for (script, status) in [("exec \"$0\"", 1), ("true | cat; exec \"$0\"", 1), ("exec \"$0\" a b c", 3)] {
        let (ran, document, sarif, quality) = run(script);
        assert_eq!(ran.status, status, "{script}: {}", ran.err);
        let line = ran.err.lines().find(|line| line.contains("became static by exec")).unwrap_or_default();
        let text = line.strip_prefix("craton: ").unwrap_or_else(|| panic!("{script}: {}", ran.err));
        assert_eq!((&document["unserved"], &document["status"]), (&text.into(), &status.into()), "{script}");
        schema::check(&sarif);
        let invocation = &sarif["runs"][0]["invocations"][0];
        assert_eq!(invocation["executionSuccessful"], false, "{script}");
        let first = &invocation["toolExecutionNotifications"][0];
        assert_eq!((&first["level"], &first["message"]["text"]), (&"error".into(), &text.into()), "{script}");
        assert_eq!(
            (&quality[0]["check_name"], &quality[0]["location"]["path"]),
            (&"craton/not-served".into(), &"bash".into())
        );
    }
    // Bash ends by exit, dash by _exit: neither is another program.
    for script in ["exit 0", "exec dash -c 'exit 0'"] {
        let (ran, document, _, quality) = run(script);
        assert_eq!((ran.status, &document["unserved"]), (0, &Value::Null), "{script}: {}", ran.err);
        assert_eq!(quality, Value::Array(Vec::new()), "{script}");
    }
}

#[test]
fn the_library_s_own_report_is_a_finding_also_without_a_check() {
    let world = World::new("reports-own");
    let ran = said(
        craton(["run", "--json", "out.json", "--sarif", "out.sarif", "--", &world.program, "twice"])
            .current_dir(&world.place.0),
    );
    assert_eq!(ran.status, 99, "{}", ran.err);
    let first = &world.document("out.json")["rows"][0];
    assert_eq!((first["kind"].as_str(), place_of(first)), (Some("double-free"), at(8, "give")), "{first:#}");
    assert!(first["message"].as_str().unwrap().contains("double free of a 32-byte object"), "{first:#}");
    schema::check(&world.document("out.sarif"));
    assert!(ran.err.contains("craton: double-free at program.c:8 in give: free("), "{}", ran.err);

    let source = "#include <stdlib.h>\nint main(int c, char **v) {\n\
        char *volatile p = malloc(24); static char own[99];\n\
        if (c == 1) free(p + 8);\n if (c == 2) free(own + 32);\n if (c == 3) { free(p); p = realloc(p, 50); }\n\
        if (c == 4) for (int i = 0; i < 9; i++) { char *volatile q = malloc(24); free(q); *(long *)q ^= 0x5555; }\n\
        if (c == 4) for (int i = 0; i < 999; i++) p = malloc(24);\n return 0; }";
    let program = world.place.compile("wrong", source, &["-g", "-w"]);
    for (args, kind, line) in [
        (&[] as &[&str], "bad-free", 4),
        (&["a"], "bad-free", 5),
        (&["a", "b"], "use-after-free", 6),
        (&["a", "b", "c"], "damage", 8),
    ] {
        let command = [&["run", "--json", "out.json", "--", &program], args].concat();
        let ran = said(craton(command).current_dir(&world.place.0));
        let first = &world.document("out.json")["rows"][0];
        assert_eq!((ran.status, first["kind"].as_str()), (99, Some(kind)), "{args:?}: {}", ran.err);
        assert_eq!(first["place"]["line"], line, "{first:#}");
    }
}

#[test]
fn the_kit_appends_its_reports_to_the_file_that_the_option_names() {
    let world = World::new("reports-file");
    let file = world.place.path("reports-%p");
    let ran = world.run(&["-o", &format!("debug_file={file}")], &["leak"]);
    assert_eq!(ran.status, 0, "without the options above the status is the program's: {}", ran.err);
    let of_reports = |entry: fs::DirEntry| {
        let name = entry.file_name().into_string().unwrap();
        name.starts_with("reports-").then(|| fs::read_to_string(entry.path()).unwrap())
    };
    let found: Vec<String> =
        fs::read_dir(&world.place.0).unwrap().filter_map(|entry| of_reports(entry.unwrap())).collect();
    let [found] = &found[..] else { panic!("{found:?}") };
    let (head, reports) = found.split_once('\n').unwrap();
    assert!(head.starts_with("craton: reports of process ") && head.ends_with(" (program)"), "{head}");
    assert_eq!(reports, ran.err);
    let lost = world.run(&["-o", "debug_file=/nonexistent/reports"], &["leak"]);
    assert!(lost.status == 0 && lost.err.contains("craton: BUG leak: "), "{}", lost.err);
}

mod schema;

#[test]
fn the_sarif_document_has_what_the_schema_requires() {
    let world = World::new("reports-sarif");
    for (mode, kind, level) in [("uaf", "use-after-free", "error"), ("leak", "leak", "warning")] {
        let ran = world.run(&["--sarif", "out.sarif", "--code-quality", "out.json"], &[mode]);
        assert!(ran.status > 90, "{}", ran.err);
        let sarif = world.document("out.sarif");
        schema::check(&sarif);
        let run = &sarif["runs"][0];
        let result = &run["results"][0];
        assert_eq!((result["ruleId"].as_str(), result["level"].as_str()), (Some(kind), Some(level)));
        let place = &result["locations"][0]["physicalLocation"];
        assert_eq!(place["artifactLocation"]["uri"], "program.c", "{result:#}");
        assert!(place["region"]["startLine"].is_u64(), "{result:#}");
        let root = run["originalUriBaseIds"]["%SRCROOT%"]["uri"].as_str().unwrap();
        assert!(root.starts_with("file:///") && root.ends_with('/'), "{root}");
        if mode == "uaf" {
            let related = result["relatedLocations"].as_array().unwrap();
            let lines: Vec<&Value> = related.iter().map(|it| &it["physicalLocation"]["region"]["startLine"]).collect();
            assert_eq!(lines, [5, 8], "allocated and freed: {result:#}");
            assert!(result["message"]["text"].as_str().unwrap().contains("[Allocated here](1)"), "{result:#}");
        }
        let issues = world.document("out.json");
        let issue = &issues[0];
        assert_eq!(
            (issue["check_name"].as_str(), &issue["location"]["path"]),
            (Some(&*format!("craton/{kind}")), &"program.c".into())
        );
        assert!(issue["location"]["lines"]["begin"].is_u64() && issue["fingerprint"].is_string(), "{issue}");
    }
}

#[test]
fn a_program_without_lines_is_named_by_its_file() {
    let world = World::new("reports-bare");
    let bare = world.place.path("bare");
    assert!(Command::new("strip").args(["-o", &bare, &world.program]).status().unwrap().success());
    let all = ["run", "-o", "debug=all", "--sarif", "out.sarif", "--code-quality", "out.json", "--", &bare, "twice"];
    let ran = said(craton(all).current_dir(&world.place.0));
    assert_eq!(ran.status, 99, "{}", ran.err);
    let sarif = world.document("out.sarif");
    schema::check(&sarif);
    let place = &sarif["runs"][0]["results"][0]["locations"][0]["physicalLocation"];
    assert_eq!(
        (&place["artifactLocation"]["uri"], &place["region"]["startLine"]),
        (&"bare".into(), &1.into()),
        "{place}"
    );
    assert_eq!(world.document("out.json")[0]["location"]["path"], "bare");
    let line = ran.err.lines().find(|line| line.starts_with("craton: double-free in ")).unwrap_or_default();
    assert!(line.contains("bare+0x") && line.contains(": freed a buffer"), "{}", ran.err);
    let plain = world.place.compile("plain", SOURCE, &["-w"]);
    let ran =
        said(craton(["run", "-o", "debug=all", "--json", "o", "--", &plain, "twice"]).current_dir(&world.place.0));
    for line in
        ["double-free in give (plain): freed a buffer", "  allocated in take (plain)\n", "  freed in give (plain)\n"]
    {
        assert!(ran.err.contains(&format!("craton: {line}")), "{line}: {}", ran.err);
    }
}

#[test]
fn a_process_in_which_nobody_looked_for_leaks_is_named() {
    let world = World::new("unsearched");
    let said = world.run(&["--json", "out.json"], &["leave"]);
    let note = "(program) did not end by exit, but by a signal or _exit: leaks were not looked for";
    assert!(said.status == 0 && said.err.contains("0 bugs, 0 leaks") && said.err.contains(note), "{}", said.err);
    let notes = world.document("out.json")["notes"].to_string();
    assert!(notes.contains(note), "{notes}");
    let quiet = world.run(&["-o", "debug=redzone", "--json", "out.json"], &["leave"]);
    assert!(!quiet.err.contains(note), "{}", quiet.err);
}
