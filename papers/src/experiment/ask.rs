//! The settings of an experiment, and their checks.
//!
//! **Failure.** Errors for unused options and unknown names begin with the option.

use super::series::Case;
use craton_lab::measure::{Allocator, Progress};
use std::ffi::{OsStr, OsString};
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

/// How an experiment shall be done.
#[derive(Clone, Copy)]
pub struct Ask<'a> {
    /// The experiment's name.
    pub name: &'a str,
    /// Whether in the quick form.
    pub quick: bool,
    /// The allocators, glibc's first, then Craton.
    pub allocators: &'a [Allocator],
    /// Whether peers were named: a quick form then omits none.
    pub peers_asked: bool,
    /// Rounds; if not given, each experiment has a default.
    pub runs: Option<usize>,
    /// The workloads to do, by name; all, if empty.
    pub only: &'a [String],
    /// Where the lab's program of that name is, which allocators are preloaded into.
    pub tool: &'a dyn Fn(&str) -> Result<PathBuf, String>,
    /// The command line, for the document.
    pub command: &'a [OsString],
    /// Set to end early.
    pub stop: &'a AtomicBool,
    /// Called before each run with the name of what runs.
    pub progress: &'a dyn Fn(&str, Progress<'_>),
}

impl Ask<'_> {
    /// The value for the quick or the full form.
    pub fn form<T>(&self, quick: T, full: T) -> T {
        if self.quick { quick } else { full }
    }

    /// Rounds that count: those asked for, or the form's own number.
    pub fn rounds(&self, quick: usize, full: usize) -> usize {
        self.runs.unwrap_or(self.form(quick, full))
    }

    /// Whether the caller wants to stop.
    pub fn stopped(&self) -> bool {
        self.stop.load(Relaxed)
    }

    /// Shows what runs next.
    pub fn show(&self, what: &str, allocator: &str, round: usize, (done, total): (usize, usize)) {
        (self.progress)(what, Progress { allocator, round: Some(round), done, total });
    }

    /// Whether `name` is to be done.
    pub fn wants(&self, name: &str) -> bool {
        self.only.is_empty() || self.only.iter().any(|only| only == name)
    }

    /// Refuses those of `--peers`, `--runs`, `--only` in `options`; the experiment is `why`.
    pub fn refuse(&self, options: &[&str], why: &str) -> Result<(), String> {
        let given = [(self.peers_asked, "--peers"), (self.runs.is_some(), "--runs"), (!self.only.is_empty(), "--only")];
        match given.into_iter().find(|(given, option)| *given && options.contains(option)) {
            Some((_, option)) => Err(format!("{}{why} has no use for {option}; leave it out", self.name)),
            None => Ok(()),
        }
    }

    /// Refuses names of `--only` not among `names`, each a `kind`. Error: the name, and `names`.
    pub fn known(&self, kind: &str, names: &[impl AsRef<str>]) -> Result<(), String> {
        let names: Vec<&str> = names.iter().map(AsRef::as_ref).collect();
        match self.only.iter().find(|only| !names.contains(&only.as_str())) {
            Some(unknown) => Err(format!("--only {unknown}: no such {kind} here; choose of: {}", names.join(", "))),
            None => Ok(()),
        }
    }

    /// Keeps the cases asked for. Error: an unknown or repeated name.
    pub fn choose(&self, cases: &mut Vec<Case>) -> Result<(), String> {
        if let Some(place) = (1..self.only.len()).find(|i| self.only[..*i].contains(&self.only[*i])) {
            return Err(format!("--only names {} twice; take one out", self.only[place]));
        }
        self.known("workload", &cases.iter().map(|case| case.name.as_str()).collect::<Vec<_>>())?;
        cases.retain(|case| self.wants(&case.name));
        Ok(())
    }

    /// The program that runs workloads. Error: it is not there.
    pub fn craton_work(&self) -> Result<OsString, String> {
        (self.tool)("craton-work").map(OsString::from)
    }
}

/// A workload as a case, at `percent`; the proof of service is one for all.
pub fn workload(program: &OsStr, name: &str, percent: u64) -> Case {
    let command = vec![program.to_owned(), name.into(), "--percent".into(), percent.to_string().into()];
    Case { name: name.to_owned(), command, prove: false }
}
