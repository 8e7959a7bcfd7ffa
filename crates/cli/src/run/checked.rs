//! `craton run` with a word about the debugging kit's reports: they are read at the end, named by
//! file and line, suppressed by rules, written as documents, and decide the exit status. Without
//! such a word, but with checks that report, only the lines of the reports' stacks are printed.
//!
//! **Failure.** Bad rules and files that cannot be written end `craton` with status 2 or 1 before
//! anything runs. Where CMD's process was not served to its end, CMD was not checked: status 1.

use super::code_quality;
use super::ended::signal_name;
use super::findings::{Finding, Namer, findings, first};
use super::reports::{self, Reports};
use super::sarif::{self, Invocation};
use super::suppress::Rules;
use super::unserved::Main;
use crate::args;
use crate::failure::Failure;
use crate::options::{self, Setting};
use crate::output::{Output, command};
use crate::terminal::{plain, say};
use craton_inspect::{Call, Published};
use craton_lab::document::Document;
use craton_lab::format::{count, plural};
use craton_lab::ratios::Ratios;
use serde::Serialize;
use std::env;
use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};

const FILE: &str = "debug-";
/// Notes about single processes.
const NAMED: usize = 5;

type Write = fn(&[Finding], &Invocation<'_>, &Path) -> Result<String, Failure>;

/// What `craton` has seen of the processes.
pub struct Seen<'a> {
    /// That ended without `exit`.
    pub left: &'a [Published],
    pub main: &'a Main,
    /// Why CMD's process was not checked.
    pub unserved: Option<String>,
    pub running: Option<String>,
}

pub struct Checked<'a> {
    args: &'a args::Checked,
    rules: Rules,
    outputs: Vec<(Output, Write)>,
    notes: Vec<String>,
    /// At exit, for leaks.
    searches: bool,
    /// No option asks for more than source lines.
    only_lines: bool,
    /// CMD.
    program: String,
}

impl<'a> Checked<'a> {
    /// `None` without an option that asks for it and without a check that reports. `asked`: the
    /// library's options.
    ///
    /// # Errors
    /// As the module says.
    pub fn of(args: &'a args::Checked, asked: &OsStr, program: &OsStr) -> Result<Option<Self>, Failure> {
        let only_lines = !args.is_asked();
        if only_lines && (!options::reports(asked) || options::debug_file(asked).is_some()) {
            return Ok(None);
        }
        let rules = Rules::read(&args.suppress)?;
        if options::debug_file(asked).is_some() {
            let what = "debug_file cannot be set together with --json, --sarif, --code-quality, --suppress";
            let advice = "they read the reports from a file of their own; leave it out";
            return Err(Failure::Usage(format!("{what}, --bugs-exit or --leaks-exit: {advice}")));
        }
        let forms: [(&str, &Option<PathBuf>, Write); 3] = [
            ("--json", &args.json, document),
            ("--sarif", &args.sarif, |findings, invocation, root| Ok(sarif::text(findings, invocation, root))),
            ("--code-quality", &args.code_quality, |findings, invocation, root| {
                Ok(code_quality::text(findings, invocation, root))
            }),
        ];
        let mut outputs: Vec<(Output, Write)> = Vec::new();
        for (option, path, write) in forms {
            let Some(path) = path else { continue };
            if path == Path::new("-") {
                let why = "standard output is CMD's; give a file";
                return Err(Failure::Usage(format!("{option} -: {why}")));
            }
            let output = Output::open(option, path)?;
            if outputs.iter().any(|(other, _)| other.is_same(&output)) {
                let why = "another option writes the same file; give each its own";
                return Err(Failure::Usage(format!("{option} {}: {why}", path.display())));
            }
            outputs.push((output, write));
        }
        let mut notes = Vec::new();
        if !options::checks(asked) {
            notes.push(
                "no check of the debugging kit is on: only samples and wrong frees are reported; -o debug=all turns all on"
                    .to_owned(),
            );
        }
        let (searches, program) = (options::searches_leaks(asked), program.to_string_lossy().into_owned());
        Ok(Some(Self { args, rules, outputs, notes, searches, only_lines, program }))
    }

    pub fn only_lines(&self) -> bool {
        self.only_lines
    }

    /// A note about each process that ended, or became another program, without the checks of the
    /// exit.
    fn unchecked(&self, left: &[Published], main: &Main) -> Vec<String> {
        // The end of CMD's own process is known.
        let ended = left.iter().filter(|p| self.searches || p.pid != main.pid);
        let ended: Vec<&Published> = ended.filter(|p| !main.is_lost(p) && !craton_inspect::is_running(p.pid)).collect();
        let leaks = if self.searches { "leaks were not looked for" } else { "" };
        let one = |p: &&Published| {
            let who = format!("process {} ({})", p.pid, plain(&p.exe));
            let exec = "a program that it became by exec, and that cannot be served, was not checked";
            match (self.searches, p.pid == main.pid) {
                (_, true) => format!("{who} did not end by exit, but by a signal or _exit: {leaks}"),
                (true, false) => {
                    format!("{who} did not end by exit, but by a signal, _exit or exec: {leaks}, and {exec}")
                }
                (false, false) => format!("{who} did not end by exit, but by a signal, _exit or exec: {exec}"),
            }
        };
        let mut notes: Vec<String> = ended.iter().take(NAMED).map(one).collect();
        if let more @ 1.. = ended.len().saturating_sub(NAMED) {
            notes.push(format!("the same holds for {} other processes", count(more as u64)));
        }
        notes
    }

    /// The processes' option.
    pub fn setting(folder: &Path) -> Setting {
        Setting::debug_file(folder.join(format!("{FILE}%p")).as_os_str())
    }

    /// Reads the reports in `folder` and writes the documents; returns the exit status. `status`:
    /// of the program.
    ///
    /// # Errors
    /// A document cannot be written.
    pub fn end(mut self, folder: &Path, status: u8, seen: Seen<'_>) -> Result<u8, Failure> {
        let Seen { left, main, unserved, running } = seen;
        let root = root();
        let found = read(folder);
        if self.only_lines {
            let all: Vec<_> = found.into_iter().flat_map(|(_, reports)| reports.all).collect();
            let findings = findings(&all, &mut Namer::new(root.clone()), &self.rules);
            say(&lines(&findings, &root));
            return Ok(status);
        }
        for (pid, reports) in &found {
            let told: u64 = reports.all.iter().map(|report| report.lost.objects + report.lost.held_objects).sum();
            if told < reports.lost_objects {
                let (lost, told) = (plural(reports.lost_objects, "buffer"), count(told));
                let who = format!("process {pid} ({})", plain(&reports.program));
                self.notes.push(format!("{who} has lost {lost}, of which the reports name {told}"));
            }
        }
        let all: Vec<_> = found.into_iter().flat_map(|(_, reports)| reports.all).collect();
        let findings = findings(&all, &mut Namer::new(root.clone()), &self.rules);
        self.notes.extend(self.unchecked(left, main));
        self.notes.extend(running);
        let suppressed = findings.iter().filter(|finding| finding.is_suppressed()).count();
        if suppressed > 0 {
            self.notes.push(format!("{} suppressed by rules", many(suppressed, "finding")));
        }
        let unused =
            self.rules.unused().map(|rule| format!("{}: the rule matched no report: {}", rule.place, rule.text));
        self.notes.extend(unused);

        let of_kind = |is_leak| findings.iter().filter(|f| !f.is_suppressed() && f.is_leak() == is_leak).count();
        let (bugs, leaks) = (of_kind(false), of_kind(true));
        let own = |asked: Option<u8>, default| Some(asked.unwrap_or(default)).filter(|own| *own != 0);
        let chosen = match (bugs, leaks, status) {
            (1.., _, _) => own(self.args.bugs_exit, args::Checked::BUGS_EXIT),
            (0, 1.., 0) => own(self.args.leaks_exit, args::Checked::LEAKS_EXIT),
            (0, 0, 0) if unserved.is_some() => Some(1),
            _ => None,
        };
        let chosen = chosen.unwrap_or(status);
        let has_suppressed_bug = findings.iter().any(|finding| finding.is_suppressed() && !finding.is_leak());
        if bugs == 0 && has_suppressed_bug && status != 0 {
            let signal = status.checked_sub(128).filter(|signal| *signal > 0);
            let signal = signal.map_or(String::new(), |signal| format!(" ({})", signal_name(signal.into())));
            let why = "a rule hides the report of a bug, which still ended its process";
            self.notes.push(format!("{why}: the status is CMD's, {status}{signal}"));
        }
        say(&summary(&findings, &root, unserved.iter().chain(&self.notes), bugs, leaks));
        let typed: Vec<String> = command().iter().map(|word| word.to_string_lossy().into_owned()).collect();
        let invocation = Invocation {
            command: &typed,
            program: &self.program,
            status: chosen,
            unserved: unserved.as_deref(),
            notes: &self.notes,
        };
        for (output, write) in &mut self.outputs {
            output.write(&write(&findings, &invocation, &root)?)?;
        }
        Ok(chosen)
    }
}

#[derive(Serialize)]
struct Reported {
    #[serde(flatten)]
    document: Document<Finding>,
    /// Of `craton`.
    status: u8,
    /// Why CMD's process was not checked.
    unserved: Option<String>,
}

fn document(findings: &[Finding], invocation: &Invocation<'_>, _root: &Path) -> Result<String, Failure> {
    let mut document = Document::new("reports", &command(), &[], findings.to_vec(), &Ratios::default());
    document.notes = invocation.notes.to_vec();
    let unserved = invocation.unserved.map(str::to_owned);
    let text = serde_json::to_string_pretty(&Reported { document, status: invocation.status, unserved });
    Ok(text.map_err(|e| format!("cannot write the reports as JSON: {e}"))? + "\n")
}

/// By process, in the order of their numbers, and by program.
fn read(folder: &Path) -> Vec<(u32, Reports)> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let pid = |name: &str| name.strip_prefix(FILE)?.parse::<u32>().ok();
    let mut found: Vec<(u32, Vec<Reports>)> = entries
        .filter_map(|entry| {
            let pid = pid(entry.file_name().to_str()?)?;
            Some((pid, reports::parse(pid, &String::from_utf8_lossy(&fs::read(entry.path()).ok()?))))
        })
        .collect();
    found.sort_by_key(|(pid, _)| *pid);
    found.into_iter().flat_map(|(pid, programs)| programs.into_iter().map(move |own| (pid, own))).collect()
}

/// Of the sources: the work tree of git around the present folder, else the folder.
fn root() -> PathBuf {
    let here = env::current_dir().unwrap_or_else(|_| "/".into());
    let top = here.ancestors().find(|folder| folder.join(".git").exists());
    top.map_or_else(|| here.clone(), Path::to_owned)
}

fn summary<'a>(
    findings: &[Finding],
    root: &Path,
    notes: impl Iterator<Item = &'a String>,
    bugs: usize,
    leaks: usize,
) -> String {
    let mut text = format!("craton: {}, {}\n", many(bugs, "bug"), many(leaks, "leak"));
    for finding in findings.iter().filter(|finding| !finding.is_suppressed()) {
        let line = format!("{}{}: {}", finding.kind, place(finding.shown(), root), finding.message);
        text += &format!("craton: {}\n", plain(&line));
        for (role, calls) in finding.stacks().skip(1) {
            let call = first(calls);
            if call.is_some() {
                text += &format!("craton:   {}{}\n", role.name(), plain(&place(call, root)));
            }
        }
    }
    notes.for_each(|note| text += &format!("craton: {}\n", plain(note)));
    text
}

/// All stacks of the findings that have a source line.
fn lines(findings: &[Finding], root: &Path) -> String {
    let mut text = String::new();
    for finding in findings.iter().filter(|finding| finding.place.is_some()) {
        let line = format!("{}{}: {}", finding.kind, place(finding.shown(), root), finding.message);
        text += &format!("craton: {}\n", plain(&line));
        for (role, calls) in finding.stacks().filter(|(_, calls)| !calls.is_empty()) {
            text += &format!("craton:   {}\n", role.name());
            for (i, call) in calls.iter().enumerate() {
                text += &format!("craton:     #{i}{}\n", plain(&place(Some(call), root)));
            }
        }
    }
    match text.is_empty() {
        true => text,
        false => format!("craton: source lines of the reports\n{text}"),
    }
}

/// ` at src/get.c:7 in get`; without lines ` in get (build/server)`, and without symbols ` in
/// build/server+0x1234`.
fn place(call: Option<&Call>, root: &Path) -> String {
    let Some(Call { function, file, line, module }) = call else { return String::new() };
    let inside = |path: &str| Path::new(path).strip_prefix(root).unwrap_or(Path::new(path)).display().to_string();
    match (file, line) {
        (Some(file), Some(line)) => format!(" at {}:{line} in {function}", inside(file)),
        _ if module.is_empty() || function.contains("+0x") => format!(" in {function}"),
        _ => format!(" in {function} ({})", inside(module)),
    }
}

fn many(n: usize, what: &str) -> String {
    format!("{} {what}{}", count(n as u64), if n == 1 { "" } else { "s" })
}
