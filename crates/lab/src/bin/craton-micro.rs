//! One measurement of malloc and free, as a line of JSON.
//!
//! **Failure.** Exit status 2 for wrong usage, 1 for a refused allocation.

use craton_lab::micro::measurement::{self, Loop, Request};
use craton_lab::micro::pattern::{MOST_BYTES, Pattern};
use craton_lab::print::print;
use std::process::ExitCode;

const USAGE: &str = "\
One measurement of the process's malloc and free: a line of JSON, in nanoseconds for one operation.

Usage: craton-micro PATTERN [--size BYTES] [--threads N] [--count N] [--repetitions N] [--loop also|none|only]

  --size BYTES      size of an object, 8 to 4194304 (default 64)
  --threads N       threads, 1 to 256 (default 1; remote needs 2)
  --count N         operations of each thread in a repetition (default 100000)
  --repetitions N   repetitions that count, after one that does not (default 7)
  --loop WHAT       measure the loop with empty functions: also, not (none), or nothing else (only)
";

fn help() -> String {
    let names: Vec<String> = Pattern::ALL.into_iter().map(Pattern::name).collect();
    format!(
        "{USAGE}\nPatterns: {}\n\nExample: LD_PRELOAD=libcraton.so craton-micro pair --size 256\n",
        names.join(", ")
    )
}

fn number(name: &str, value: &str, least: usize, most: usize) -> Result<usize, String> {
    let parsed = value.parse().ok().filter(|n| (least..=most).contains(n));
    parsed.ok_or_else(|| format!("{name} {value:?}: give a whole number from {least} to {most}"))
}

/// `None`: help.
fn parse(arguments: impl IntoIterator<Item = String>) -> Result<Option<Request>, String> {
    let mut arguments = arguments.into_iter();
    let name = arguments.next().ok_or("name a pattern; --help lists them")?;
    if name == "--help" || name == "-h" {
        return Ok(None);
    }
    let pattern = Pattern::find(&name)?;
    let threads = if pattern == Pattern::Remote { 2 } else { 1 };
    let mut request =
        Request { pattern, size_bytes: 64, threads, count: 100_000, repetitions: 7, with_loop: Loop::Also };
    while let Some(option) = arguments.next() {
        let value = arguments.next().ok_or_else(|| format!("{option} needs a value; --help lists the options"))?;
        match option.as_str() {
            "--size" => request.size_bytes = number(&option, &value, 8, MOST_BYTES)?,
            "--threads" => request.threads = number(&option, &value, threads, 256)?,
            "--count" => request.count = number(&option, &value, 1, 1_000_000_000)?,
            "--repetitions" => request.repetitions = number(&option, &value, 1, 10_000)?,
            "--loop" => {
                request.with_loop = match value.as_str() {
                    "also" => Loop::Also,
                    "none" => Loop::None,
                    "only" => Loop::Only,
                    _ => return Err(format!("--loop {value:?}: give also, none or only")),
                }
            }
            _ => return Err(format!("{option:?} is no option; --help lists them")),
        }
    }
    if !pattern.takes(request.size_bytes) {
        return Err(format!("{name} --size {}: the objects of this size take too much memory", request.size_bytes));
    }
    Ok(Some(request))
}

fn main() -> ExitCode {
    let text = match parse(std::env::args_os().skip(1).map(|a| a.to_string_lossy().into_owned())) {
        Err(why) => {
            eprintln!("craton-micro: {why}");
            return ExitCode::from(2);
        }
        Ok(None) => help(),
        Ok(Some(request)) => match serde_json::to_string(&measurement::measure(&request)) {
            Ok(line) => line + "\n",
            Err(e) => {
                eprintln!("craton-micro: the result is no JSON: {e}");
                return ExitCode::FAILURE;
            }
        },
    };
    if print("craton-micro", &text) { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

#[cfg(test)]
#[path = "craton-micro/tests.rs"]
mod tests;
