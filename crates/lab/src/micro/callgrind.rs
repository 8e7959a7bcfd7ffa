//! Instructions of one operation: the difference between runs of fewer and of more operations, by
//! callgrind. Load changes no instructions, so both run at once.
//!
//! An allocator may fail only under valgrind, if it reserves too much address space.

use super::measurement::Measurement;
use super::process::{Ended, Output, Process};
use std::ffi::{OsStr, OsString};
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
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

/// A run whose instructions are counted.
pub struct Counting {
    process: Process,
    file: PathBuf,
}

impl Counting {
    /// `name`: of files in the directory, which the run has as its own.
    pub fn start(
        valgrind: &OsStr,
        command: &[OsString],
        variables: &[(OsString, OsString)],
        directory: &Path,
        name: &str,
        limit: Duration,
    ) -> io::Result<Self> {
        let name = format!("callgrind.out.{name}");
        let file = directory.join(&name);
        let _ = fs::remove_file(&file);
        // Relative: valgrind expands '%'.
        let option = format!("--callgrind-out-file={name}");
        let mut words: Vec<OsString> = vec![valgrind.into(), "--tool=callgrind".into(), option.into()];
        words.extend(command.iter().cloned());
        Process::start(&words, variables, directory, &name, limit).map(|process| Self { process, file })
    }

    /// Also returns the file for [`instructions`].
    pub fn finish(self, stop: &AtomicBool) -> io::Result<(Ended, PathBuf)> {
        self.process.finish(stop).map(|ended| (ended, self.file))
    }
}

/// Instructions of a run that succeeded. Removes its file.
pub fn instructions(output: &Output, file: &Path) -> Result<u64, String> {
    if let Some(why) = output.failure() {
        return Err(format!("under valgrind: {why}"));
    }
    let text = fs::read(file).map_err(|e| format!("valgrind left no {}: {e}", file.display()))?;
    let _ = fs::remove_file(file);
    total(&String::from_utf8_lossy(&text)).ok_or("valgrind's file has no total in it".to_owned())
}

/// `error`: from the start of a run.
pub fn no_valgrind(valgrind: &OsStr, error: &io::Error) -> String {
    format!("{} cannot be run: {error}; install valgrind to have instructions counted", valgrind.display())
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
        for started in started {
            match started.and_then(|counting| counting.finish(stop)) {
                Err(e) => return Counted::NoValgrind(no_valgrind(self.valgrind, &e)),
                Ok((Ended::Stopped, _)) => return Counted::Stopped,
                Ok((Ended::TimedOut, _)) => {
                    return Counted::Failed(format!("valgrind took longer than {} s", LIMIT.as_secs()));
                }
                Ok((Ended::Done(output), file)) => match self.read(&output, &file) {
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

    fn start(&self, count: usize) -> io::Result<Counting> {
        let mut command = self.command.clone();
        command.extend(["--count".into(), count.to_string().into()]);
        Counting::start(self.valgrind, &command, self.variables, self.directory, &count.to_string(), LIMIT)
    }

    fn read(&self, output: &Output, file: &Path) -> Result<(usize, u64), String> {
        let instructions = instructions(output, file)?;
        (self.check)(output).map(|measurement| (measurement.operations, instructions))
    }
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
