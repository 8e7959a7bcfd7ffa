//! Programs whose n-th system call of the library fails, for each n up to [`MOST`]; last all of a
//! kind from some n on.
//!
//! *Unharmed*: the same output, status 0. *Refused*: another status, or aborts itself. A signal,
//! another output with status 0, or twice the memory is a failure.

use super::{Ours, Part};
use crate::experiment::Ask;
use crate::experiment::sheet::{Column, Row, Show, json, table, with};
use crate::trust::client::WRONG;
use crate::trust::faults::{CALLS, Fault, Place, Run, run as supervise};
use craton_lab::ratios::OURS;
use craton_lab::scratch::Scratch;
use std::ffi::OsString;
use std::fs;
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

const MOST: u64 = 200;
const LIMIT: Duration = Duration::from_secs(20);
/// Beyond twice a run without a fault.
const SPARE_BYTES: u64 = 64 << 20;

/// Name, package, and a script that prints the command, a word a line.
type Program = (&'static str, &'static str, &'static str);

const PROGRAMS: &[Program] = &[
    ("python3", "python3", include_str!("faults/python3.sh")),
    ("perl", "perl", include_str!("faults/perl.sh")),
    ("git", "git", include_str!("faults/git.sh")),
    ("sqlite3", "sqlite3", include_str!("faults/sqlite3.sh")),
    ("sort", "coreutils", include_str!("faults/sort.sh")),
    ("gcc", "gcc", include_str!("faults/gcc.sh")),
    ("xz", "xz-utils", include_str!("faults/xz.sh")),
];
const QUICK: [&str; 1] = ["sort"];

const COLUMNS: [Column; 8] = [
    ("", "name", Show::Text),
    ("calls", "calls", Show::Count),
    ("kinds", "kinds", Show::Count),
    ("runs", "runs", Show::Count),
    ("unharmed", "unharmed", Show::Count),
    ("refused", "refused", Show::Count),
    ("failed", "failed", Show::Count),
    ("", "note", Show::Text),
];

pub fn run(ask: &Ask<'_>, ours: &Ours) -> Result<Part, String> {
    let scratch = Scratch::new("programs whose system calls fail")?;
    let client = (ask.tool)("craton-client")?;
    let client = format!("printf '%s\\n' '{}' --operations 20000 --live 64", client.display());
    let client: (&str, &str, &str) = ("craton-client", "", &client);
    let programs: Vec<_> =
        PROGRAMS.iter().copied().filter(|program| !ask.quick || QUICK.contains(&program.0)).chain([client]).collect();
    let mut rows = Vec::new();
    for program in programs {
        if ask.stopped() {
            break;
        }
        let directory = scratch.path().join(program.0);
        fs::create_dir(&directory).map_err(|e| format!("cannot make {}: {e}", directory.display()))?;
        rows.push(of_program(ask, ours, program, &directory));
    }
    Ok((table(&COLUMNS, &rows), rows))
}

/// For a reproducible output.
const FIXED: [(&str, &str); 4] =
    [("LC_ALL", "C"), ("PYTHONMALLOC", "malloc"), ("PYTHONHASHSEED", "0"), ("PERL_HASH_SEED", "0")];

fn of_program(ask: &Ask<'_>, ours: &Ours, (name, package, script): (&str, &str, &str), directory: &Path) -> Row {
    let head = json!({ "part": "faults", "name": name });
    let command = match prepare(script, directory) {
        Ok(command) => command,
        Err(_) if !on_path(name) => {
            let note = format!("not here: install Debian's {package}");
            return with(head, &json!({ "note": note }), "ok");
        }
        Err(why) => return with(head, &json!({}), &format!("failed: {why}")),
    };
    let fixed = FIXED.iter().map(|(key, value)| (OsString::from(key), OsString::from(value)));
    let variables: Vec<_> = ours.variables.iter().cloned().chain(fixed).collect();
    let place = Place { directory, variables: &variables, library: &ours.library };
    let whole = match supervise(&command, &place, None, LIMIT) {
        Ok(whole) if whole.status.is_some_and(|status| status.success()) => whole,
        Ok(whole) => return with(head, &json!({}), &format!("failed without a fault: {}", whole.stderr.trim())),
        Err(why) if why.starts_with("seccomp refused") => return with(head, &json!({ "note": why }), "ok"),
        Err(why) => return with(head, &json!({}), &format!("failed: {why}")),
    };
    let faults: Vec<Fault> = whole.counts.iter().enumerate().flat_map(|(call, n)| plan(ask.quick, call, *n)).collect();
    let (mut unharmed, mut refused, mut wrong) = (0, Vec::new(), Vec::new());
    for (done, fault) in faults.iter().enumerate() {
        if ask.stopped() {
            break;
        }
        ask.show(&format!("{name}, {} fails", CALLS[fault.call].0), OURS, 0, (done, faults.len()));
        match supervise(&command, &place, Some(*fault), LIMIT).and_then(|run| judge(&run, &whole)) {
            Ok(Verdict::Unharmed) => unharmed += 1,
            Ok(Verdict::Refused) => refused.push(describe(fault)),
            Err(why) => wrong.push(format!("{}: {why}", describe(fault))),
        }
    }
    let status = if wrong.is_empty() { "ok".to_owned() } else { format!("failed:\n  {}", wrong.join("\n  ")) };
    let kinds = whole.counts.iter().filter(|n| **n > 0).count();
    let figures = json!({
        "calls": whole.counts.iter().sum::<u64>(), "kinds": kinds, "runs": unharmed + refused.len() + wrong.len(),
        "unharmed": unharmed, "refused": refused.len(), "failed": wrong.len(), "note": refused.join(", "),
    });
    with(head, &figures, &status)
}

fn describe(fault: &Fault) -> String {
    let name = CALLS[fault.call].0;
    if fault.last == fault.first {
        format!("{name} {}", fault.first)
    } else {
        format!("{name} from {} on", fault.first)
    }
}

fn plan(quick: bool, call: usize, count: u64) -> Vec<Fault> {
    let most = count.min(MOST);
    let one = |n| Fault { call, first: n, last: n };
    let mut faults: Vec<Fault> = (1..=most).filter(|n| !quick || [1, most].contains(n)).map(one).collect();
    // Memory has run out.
    let mut from = [1, count / 4, count / 2, count / 4 * 3].to_vec();
    from.retain(|first| *first > 0 && *first < count);
    from.dedup();
    from.truncate(if quick { 1 } else { 4 });
    faults.extend(from.into_iter().map(|first| Fault { call, first, last: u64::MAX }));
    faults
}

#[derive(Debug, PartialEq)]
enum Verdict {
    Unharmed,
    Refused,
}

fn judge(run: &Run, whole: &Run) -> Result<Verdict, String> {
    let said = run.stderr.lines().next_back().unwrap_or("");
    let Some(status) = run.status else { return Err(format!("took longer than {} s: {said}", LIMIT.as_secs())) };
    let is_librarys = run.stderr.contains("craton: ");
    match (status.signal(), status.code()) {
        (Some(libc::SIGABRT), _) if !is_librarys => Ok(Verdict::Refused),
        (Some(signal), _) => Err(format!("signal {signal}: {said}")),
        (_, Some(WRONG)) => Err(format!("wrong: {said}")),
        (_, Some(0)) if run.stdout != whole.stdout => Err("ended well with another output".to_owned()),
        (_, Some(0)) if run.peak_rss_bytes > 2 * whole.peak_rss_bytes + SPARE_BYTES => {
            Err(format!("took {} bytes, and {} without the fault", run.peak_rss_bytes, whole.peak_rss_bytes))
        }
        (_, Some(0)) => Ok(Verdict::Unharmed),
        _ => Ok(Verdict::Refused),
    }
}

fn prepare(script: &str, directory: &Path) -> Result<Vec<OsString>, String> {
    let mut shell = Command::new("sh");
    shell.args(["-euc", script]).current_dir(directory).env_remove("LD_PRELOAD");
    let output = shell.output().map_err(|e| format!("cannot start sh: {e}"))?;
    if !output.status.success() {
        return Err(format!("the inputs were not made: {}", String::from_utf8_lossy(&output.stderr).trim()));
    }
    Ok(String::from_utf8_lossy(&output.stdout).lines().map(OsString::from).collect())
}

fn on_path(program: &str) -> bool {
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path).any(|directory| directory.join(program).is_file())
}

#[cfg(test)]
mod tests;
