//! `craton get`: options, counters and the ledger of a running process; the counters of one that
//! was killed. A key is an option, a counter, or `ledger.` and a row's name.

use crate::args;
use crate::failure::Failure;
use crate::output::{Output, command};
use crate::run::contents;
use crate::terminal::plain;
use crate::usage::nearest;
use craton_inspect::{ClassShare, Ledger, Published, Watch, ledger};
use craton_lab::document::Document;
use craton_lab::format;
use craton_lab::ratios::Ratios;
use craton_tables::counters::{CACHE_MODES, LIMIT_SOURCES, PROCESS, Unit, word};
use craton_tables::options::OPTIONS;
use serde::Serialize;
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

#[derive(Serialize)]
struct Process {
    pid: u32,
    exe: String,
    options: BTreeMap<&'static str, String>,
    numbers: BTreeMap<&'static str, u64>,
    /// Of a running process.
    ledger: Option<Ledger>,
    /// Of a process that has ended.
    classes: Vec<ClassShare>,
    /// What most of its heap was for.
    #[serde(skip)]
    last: Option<String>,
}

pub fn get(args: &args::Get) -> Result<ExitCode, Failure> {
    let unknown = args.keys.iter().find(|key| !keys().any(|(name, _)| name == **key));
    if let Some(unknown) = unknown {
        return Err(Failure::Usage(no_such_key(unknown)));
    }
    let mut json = Output::json(args.json.as_deref())?;
    let process = read(&args.target)?;
    let text = if args.keys.is_empty() { whole(&process) } else { chosen(&process, &args.keys)? };
    Output::beside(json.as_ref()).write(&text).map_err(|e| format!("cannot print the values: {e}"))?;
    if let Some(json) = &mut json {
        json.document(&Document::new("get", &command(), &[], vec![process], &Ratios::default()))?;
    }
    Ok(ExitCode::SUCCESS)
}

fn read(target: &str) -> Result<Process, Failure> {
    let (page, ledger) = match target.parse::<u32>() {
        Ok(pid) => {
            let page = Watch::open(pid)?.page()?;
            (page, Some(ledger(pid)?))
        }
        Err(_) => (of_file(Path::new(target))?, None),
    };
    let set = |key: &str| page.options.iter().find(|(name, _)| *name == key).map(|(_, value)| value.clone());
    let options = OPTIONS.iter().map(|row| (row.key, set(row.key).unwrap_or_else(|| row.default.to_owned())));
    let (options, numbers) = (options.collect(), page.numbers().collect());
    let last = ledger.is_none().then(|| contents(&page));
    let classes = if ledger.is_some() { Vec::new() } else { page.classes };
    Ok(Process { pid: page.pid, exe: page.exe, options, numbers, ledger, classes, last })
}

/// Of a `stats_dir`.
fn of_file(file: &Path) -> Result<Published, Failure> {
    let name = plain(&file.display().to_string());
    if file.is_dir() {
        let newest = newest_in(file).map_or_else(
            || "it has none with the end `.stats`; `craton run -o stats_dir=FOLDER -- CMD` makes them".to_owned(),
            |newest| format!("the newest is {}", plain(&newest.display().to_string())),
        );
        return Err(format!("{name} is a folder; give a file in it: {newest}").into());
    }
    if !file.exists() {
        return Err(format!("there is neither a process nor a file {name}").into());
    }
    Ok(Published::read(file).map_err(|why| plain(&why))?)
}

fn newest_in(folder: &Path) -> Option<PathBuf> {
    Published::files(folder).max_by_key(|path| fs::metadata(path).and_then(|file| file.modified()).ok())
}

fn keys() -> impl Iterator<Item = (String, Unit)> {
    let options = OPTIONS.iter().map(|row| (row.key.to_owned(), Unit::Text));
    let numbers = PROCESS.iter().map(|counter| (counter.name.to_owned(), counter.unit));
    let rows = ["rss_bytes", "pss_bytes", "swap_bytes", "heap_bytes"].into_iter();
    let rows = rows.chain(Ledger::ROWS).map(|name| (format!("ledger.{name}"), Unit::Bytes));
    options.chain(numbers).chain(rows)
}

fn no_such_key(wrong: &str) -> String {
    let names: Vec<String> = keys().map(|(name, _)| name).collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let meant = nearest(wrong, &names).map_or(String::new(), |name| format!("did you mean `{name}`? "));
    format!("there is no key \"{}\"; {meant}`craton get PID` shows all of them", plain(wrong))
}

/// `None`: a ledger's row of a process that has ended.
fn value(process: &Process, key: &str) -> Option<String> {
    if let Some(value) = process.options.get(key) {
        return Some(value.clone());
    }
    if let Some(value) = process.numbers.get(key) {
        return Some(value.to_string());
    }
    let (ledger, name) = (process.ledger.as_ref()?, key.strip_prefix("ledger.")?);
    ledger.value(name).map(|bytes| bytes.to_string())
}

fn chosen(process: &Process, keys: &[String]) -> Result<String, Failure> {
    let line = |key: &String| match value(process, key) {
        Some(value) => Ok(format!("{key} {}\n", plain(&value))),
        None => {
            let why = format!("process {} has ended, and the kernel's part of its ledger with it", process.pid);
            Err(Failure::Failed(format!("{key}: {why}; ask for counters, such as heap_in_use_bytes")))
        }
    };
    keys.iter().map(line).collect()
}

fn whole(process: &Process) -> String {
    let last = process.last.as_ref().map_or(String::new(), |last| format!(": {last}"));
    let mut text = format!("process {} ({}){last}\n\noptions\n", process.pid, plain(&process.exe));
    for (key, value) in &process.options {
        text += &format!("  {key:26} {}\n", if value.is_empty() { "-".to_owned() } else { plain(value) });
    }
    text += "\ncounters\n";
    for counter in PROCESS {
        let value = process.numbers.get(counter.name).copied().unwrap_or(0);
        let meaning = match (counter.unit, counter.name) {
            (Unit::Bytes, _) if value >= 1 << 10 => format!("  {}", format::bytes(value)),
            (_, "cache_mode") => format!("  {}", word(CACHE_MODES, value)),
            (_, "memory_limit_source") => format!("  {}", word(LIMIT_SOURCES, value)),
            _ => String::new(),
        };
        text += &format!("  {:26} {value:>16}{meaning}\n", counter.name);
    }
    match &process.ledger {
        Some(ledger) => {
            text += "\nledger: memory that the kernel charges\n";
            text += &ledger_text(ledger);
        }
        None => {
            text += "\nsize classes, when the process ended\n";
            for class in &process.classes {
                let memory = format::bytes(class.memory_bytes);
                text += &format!("  {:>8} bytes {:>12} out {memory:>12}\n", class.object_bytes, class.objects_out);
            }
        }
    }
    text
}

pub fn ledger_text(ledger: &Ledger) -> String {
    let row = |name: &str, bytes: u64, text: &str| format!("  {name:20} {:>12}  {text}\n", format::bytes(bytes));
    let mut text = String::new();
    for part in ledger.heap.iter().chain(&ledger.rest).filter(|row| row.bytes > 0) {
        text += &row(part.name, part.bytes, part.text);
    }
    text += &row("rss_bytes", ledger.rss_bytes, "sum");
    text += &row("heap_bytes", ledger.heap_bytes, "of these, the heap: the rows up to library_bytes");
    text += &row("pss_bytes", ledger.pss_bytes, "shared pages divided among their processes");
    if ledger.swap_bytes > 0 {
        text += &row("swap_bytes", ledger.swap_bytes, "in the swap besides");
    }
    text
}

#[cfg(test)]
mod tests;
