//! Attacks and planted bugs: the programs of the tests, by their end (docs/experiments.md). A bug
//! without a report does not fail the experiment, since some need other options.

use super::{Ours, Part};
use crate::experiment::Ask;
use crate::experiment::sheet::{Column, Row, Show, json, table, with};
use craton_lab::micro::process::{Ended, Output, Process};
use craton_lab::ratios::OURS;
use craton_lab::scratch::Scratch;
use std::ffi::OsString;
use std::fs;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

macro_rules! sources {
    ($($path:literal)*) => {
        const SOURCES: &[(&str, &str)] = &[$(($path, include_str!(concat!("../../../../", $path)))),*];
    };
}

sources! {
    "crates/preload/include/craton.h"
    "tests/programs/c/check.h"
    "tests/programs/c/attacks.c"
    "tests/programs/c/faulty/faulty.h"
    "tests/programs/c/faulty/overflow.c"
    "tests/programs/c/faulty/freed.c"
    "tests/programs/c/faulty/reads.c"
    "tests/programs/c/faulty/wrong.c"
    "tests/programs/c/faulty/leaks.c"
    "tests/programs/c/faulty/caches.c"
    "tests/programs/c/faulty/cxx.cpp"
}

const ATTACKS: &str = "attacks.c";
const FAULTY: [&str; 7] = [
    "faulty/overflow.c",
    "faulty/freed.c",
    "faulty/reads.c",
    "faulty/wrong.c",
    "faulty/leaks.c",
    "faulty/caches.c",
    "faulty/cxx.cpp",
];
const MODES: [&str; 4] = ["debug=all", "debug=audit,redzone,poison,verify", "guard_sample=1", ""];
/// Correct ones.
const RIGHT: [&str; 2] = ["right_", "kept_"];
/// On guarded pages the program cannot cause it.
const ON_HEAP: &str = "read_before_the_heap";
const LIMIT: Duration = Duration::from_secs(60);
const QUICK_OF: usize = 6;

const COLUMNS: [Column; 8] = [
    ("", "name", Show::Text),
    ("parts", "parts", Show::Count),
    ("found", "found", Show::Count),
    ("harmless", "harmless", Show::Count),
    ("bare crash", "bare", Show::Count),
    ("got through, or missed", "missed", Show::Count),
    ("false reports", "false", Show::Count),
    ("", "note", Show::Text),
];

pub fn run(ask: &Ask<'_>, ours: &Ours) -> Result<Part, String> {
    let scratch = Scratch::new("attacks")?;
    for (path, text) in SOURCES {
        let path = scratch.path().join(path);
        let made = path.parent().map_or(Ok(()), fs::create_dir_all).and_then(|()| fs::write(&path, text));
        made.map_err(|e| format!("cannot write {}: {e}", path.display()))?;
    }
    let mut rows = Vec::new();
    let mut totals = Vec::new();
    for (done, source) in std::iter::once(ATTACKS).chain(FAULTY).enumerate() {
        if ask.stopped() {
            break;
        }
        ask.show(source, OURS, 0, (done, 1 + FAULTY.len()));
        let head = json!({ "part": "attacks", "name": source });
        let program = match compile(ours, scratch.path(), source) {
            Ok(program) => program,
            Err(why) => {
                rows.push(with(head, &json!({ "note": why }), "ok"));
                continue;
            }
        };
        let place = scratch.path();
        if source == ATTACKS {
            let ends = ends_of(ask, ours, place, (source, "", &program));
            let got_through = ends.iter().any(|(_, end)| *end == End::Missed);
            let status = if got_through { format!("failed: {}", not_found(&ends)) } else { "ok".to_owned() };
            rows.push(with(head, &figures(&ends), &status));
            continue;
        }
        for (mode, options) in MODES.iter().enumerate().take(ask.form(1, MODES.len())) {
            let ends = ends_of(ask, ours, place, (source, options, &program));
            if mode == 0 {
                rows.push(with(head.clone(), &figures(&ends), "ok"));
            }
            totals.resize_with(totals.len().max(mode + 1), Vec::new);
            totals[mode].extend(ends);
        }
    }
    for (options, ends) in MODES.iter().zip(&totals) {
        let name =
            if options.is_empty() { "planted bugs, no options".into() } else { format!("planted bugs, {options}") };
        let mut figures = figures(ends);
        figures["note"] = "".into();
        rows.push(with(json!({ "part": "attacks", "name": name }), &figures, "ok"));
    }
    Ok((table(&COLUMNS, &rows), rows))
}

fn compile(ours: &Ours, place: &Path, source: &str) -> Result<PathBuf, String> {
    let compiler = if source.ends_with(".cpp") { "c++" } else { "cc" };
    let program = place.join(source.replace(['/', '.'], "-"));
    let folder = ours.library.parent().unwrap_or(Path::new("/")).display();
    let mut command = Command::new(compiler);
    command.args([
        "-g",
        "-O1",
        "-fno-builtin",
        "-fno-omit-frame-pointer",
        "-w",
        "-pthread",
        "-Wl,-z,dynamic-undefined-weak",
    ]);
    if source.ends_with(".cpp") {
        command.args(["-fsized-deallocation", "-std=c++17"]);
    }
    command.arg(place.join("tests/programs/c").join(source)).arg("-o").arg(&program).arg(&ours.library);
    command.arg(format!("-Wl,--disable-new-dtags,-rpath,{folder}"));
    let output = command.output().map_err(|_| format!("not here: {compiler}; install Debian's g++"))?;
    let said = String::from_utf8_lossy(&output.stderr);
    if output.status.success() { Ok(program) } else { Err(format!("cannot be compiled: {}", said.trim())) }
}

fn parts(source: &str) -> Vec<&'static str> {
    let text = SOURCES.iter().find(|(path, _)| path.ends_with(source)).map_or("", |(_, text)| text);
    let table = ["PARTS[] = {", "parts[] = {"].into_iter().find_map(|head| Some(text.rfind(head)? + head.len()));
    let Some(at) = table else { return Vec::new() };
    let mut names: Vec<&str> = Vec::new();
    let entries = text[at..].split("};").next().unwrap_or("");
    for entry in entries.split(['{', '(']) {
        let name = entry.trim_start_matches('"');
        let name = &name[..name.find(|c: char| !c.is_ascii_alphanumeric() && c != '_').unwrap_or(0)];
        if !name.is_empty() && name != "NULL" && !names.contains(&name) {
            names.push(name);
        }
    }
    names
}

#[derive(Clone, Copy, PartialEq, Debug)]
enum End {
    /// By the library.
    Found,
    Harmless,
    /// A signal, without a word.
    Bare,
    /// A bug without a report, or an attack that succeeded.
    Missed,
    /// A correct program got a report, or failed.
    False,
}

type Ends = Vec<(&'static str, End)>;

fn ends_of(ask: &Ask<'_>, ours: &Ours, place: &Path, (source, options, program): (&str, &str, &Path)) -> Ends {
    let of_all = if ask.quick { QUICK_OF } else { 1 };
    let chosen = parts(source).into_iter().filter(|part| options == MODES[1] || *part != ON_HEAP).step_by(of_all);
    let mut variables = ours.variables.clone();
    variables.push(("CRATON_OPTIONS".into(), options.into()));
    let mut ends = Vec::new();
    for part in chosen {
        let command = [program.into(), OsString::from(part)];
        let ended = Process::start(&command, &variables, place, "part", LIMIT).and_then(|one| one.finish(ask.stop));
        let is_right = RIGHT.iter().any(|right| part.starts_with(right));
        match ended {
            Ok(Ended::Done(output)) if is_right => ends.push((part, judge_right(&output))),
            Ok(Ended::Done(output)) => ends.push((part, judge(&output, source == ATTACKS))),
            Ok(Ended::Stopped) => break,
            Ok(Ended::TimedOut) | Err(_) => ends.push((part, End::Missed)),
        }
    }
    ends
}

fn not_found(ends: &Ends) -> String {
    let is_bad = |end| [End::Bare, End::Missed, End::False].contains(end);
    ends.iter().filter(|(_, end)| is_bad(end)).map(|(part, _)| *part).collect::<Vec<_>>().join(", ")
}

fn figures(ends: &Ends) -> Row {
    let count = |end| ends.iter().filter(|(_, of)| *of == end).count();
    json!({
        "parts": ends.len(), "found": count(End::Found), "harmless": count(End::Harmless), "bare": count(End::Bare),
        "missed": count(End::Missed), "false": count(End::False), "note": not_found(ends),
    })
}

fn judge_right(output: &Output) -> End {
    let is_well = output.status.success() && !output.stderr.contains("BUG ");
    if is_well { End::Harmless } else { End::False }
}

fn judge(output: &Output, is_attack: bool) -> End {
    let is_reported = output.stderr.contains("craton: ") || output.stderr.contains("BUG ");
    match output.status.signal() {
        _ if is_attack && output.stdout.lines().any(|line| line == "harmless") => End::Harmless,
        Some(_) | None if is_reported => End::Found,
        Some(_) => End::Bare,
        None => End::Missed,
    }
}

#[cfg(test)]
mod tests;
