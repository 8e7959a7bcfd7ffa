//! Instructions of one operation: the difference between runs of fewer and of more operations, by
//! callgrind. Load changes no instructions, so both run at once.
//!
//! An allocator may fail only under valgrind, if it reserves too much address space.

use super::measurement::Measurement;
use super::process::{Ended, Output, Process};
use std::ffi::{OsStr, OsString};
use std::fs;
use std::io;
use std::path::Path;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

const LIMIT: Duration = Duration::from_secs(60);

#[derive(Debug)]
pub enum Counted {
    Instructions(f64),
    Failed(String),
    NoValgrind(String),
    Stopped,
}

pub struct Subject<'a> {
    pub valgrind: &'a OsStr,
    pub command: Vec<OsString>,
    pub variables: &'a [(OsString, OsString)],
    pub directory: &'a Path,
    pub check: &'a dyn Fn(&Output) -> Result<Measurement, String>,
}

impl Subject<'_> {
    pub fn count(&self, counts: [usize; 2], stop: &AtomicBool) -> Counted {
        let started = counts.map(|count| self.start(count));
        let mut results = Vec::new();
        for (started, count) in started.into_iter().zip(counts) {
            match started.and_then(|process| process.finish(stop)) {
                Err(e) => {
                    let name = self.valgrind.display();
                    return Counted::NoValgrind(format!(
                        "{name} cannot be run: {e}; install valgrind to have instructions counted"
                    ));
                }
                Ok(Ended::Stopped) => return Counted::Stopped,
                Ok(Ended::TimedOut) => {
                    return Counted::Failed(format!("valgrind took longer than {} s", LIMIT.as_secs()));
                }
                Ok(Ended::Done(output)) => match self.read(&output, count) {
                    Ok(result) => results.push(result),
                    Err(why) => return Counted::Failed(why),
                },
            }
        }
        match results[..] {
            [first, second] => per_operation(first, second).map_or_else(Counted::Failed, Counted::Instructions),
            _ => Counted::Failed("two runs were meant to be counted".to_owned()),
        }
    }

    fn start(&self, count: usize) -> io::Result<Process> {
        let _ = fs::remove_file(self.directory.join(file(count)));
        // Relative: valgrind expands '%'.
        let option = format!("--callgrind-out-file={}", file(count));
        let mut command: Vec<OsString> = vec![self.valgrind.into(), "--tool=callgrind".into(), option.into()];
        command.extend(self.command.iter().cloned());
        command.extend(["--count".into(), count.to_string().into()]);
        Process::start(&command, self.variables, self.directory, &file(count), LIMIT)
    }

    fn read(&self, output: &Output, count: usize) -> Result<(usize, u64), String> {
        if let Some(why) = output.failure() {
            return Err(format!("under valgrind: {why}"));
        }
        let measurement = (self.check)(output)?;
        let path = self.directory.join(file(count));
        let text = fs::read(&path).map_err(|e| format!("valgrind left no {}: {e}", file(count)))?;
        let _ = fs::remove_file(&path);
        let instructions = total(&String::from_utf8_lossy(&text)).ok_or("valgrind's file has no total in it")?;
        Ok((measurement.operations, instructions))
    }
}

fn file(count: usize) -> String {
    format!("callgrind.out.{count}")
}

/// Its `totals:` line, else the `summary:`; a line for each thread or dump.
fn total(text: &str) -> Option<u64> {
    let sum = |key: &str| {
        let numbers = text.lines().filter_map(|line| line.strip_prefix(key));
        let first = |rest: &str| rest.split_whitespace().next().and_then(|number| number.parse::<u64>().ok());
        numbers.map(first).reduce(|a, b| Some(a? + b?)).flatten()
    };
    sum("totals:").or_else(|| sum("summary:"))
}

fn per_operation(fewer: (usize, u64), more: (usize, u64)) -> Result<f64, String> {
    if more.0 <= fewer.0 || more.1 < fewer.1 {
        return Err(format!(
            "{} instructions for {} operations but {} for {}: these are no counts of the same program",
            fewer.1, fewer.0, more.1, more.0
        ));
    }
    Ok((more.1 - fewer.1) as f64 / (more.0 - fewer.0) as f64)
}

#[cfg(test)]
mod tests;
