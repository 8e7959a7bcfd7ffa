//! The settings of an experiment. Errors begin with the option.

use super::series::Case;
use craton_lab::measure::{Allocator, Progress};
use std::ffi::{OsStr, OsString};
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

#[derive(Clone, Copy)]
pub struct Ask<'a> {
    pub name: &'a str,
    pub quick: bool,
    /// glibc's first, then Craton.
    pub allocators: &'a [Allocator],
    /// A quick form then omits none.
    pub peers_asked: bool,
    pub runs: Option<usize>,
    /// Empty: all.
    pub only: &'a [String],
    pub tool: &'a dyn Fn(&str) -> Result<PathBuf, String>,
    pub command: &'a [OsString],
    pub stop: &'a AtomicBool,
    pub progress: &'a dyn Fn(&str, Progress<'_>),
}

impl Ask<'_> {
    pub fn form<T>(&self, quick: T, full: T) -> T {
        if self.quick { quick } else { full }
    }

    pub fn rounds(&self, quick: usize, full: usize) -> usize {
        self.runs.unwrap_or(self.form(quick, full))
    }

    pub fn stopped(&self) -> bool {
        self.stop.load(Relaxed)
    }

    pub fn show(&self, what: &str, allocator: &str, round: usize, (done, total): (usize, usize)) {
        (self.progress)(what, Progress { allocator, round: Some(round), done, total });
    }

    pub fn wants(&self, name: &str) -> bool {
        self.only.is_empty() || self.only.iter().any(|only| only == name)
    }

    pub fn refuse(&self, options: &[&str], why: &str) -> Result<(), String> {
        let given = [(self.peers_asked, "--peers"), (self.runs.is_some(), "--runs"), (!self.only.is_empty(), "--only")];
        match given.into_iter().find(|(given, option)| *given && options.contains(option)) {
            Some((_, option)) => Err(format!("{}{why} has no use for {option}; leave it out", self.name)),
            None => Ok(()),
        }
    }

    /// Refuses names of `--only` not among `names`, each a `kind`.
    pub fn known(&self, kind: &str, names: &[impl AsRef<str>]) -> Result<(), String> {
        let names: Vec<&str> = names.iter().map(AsRef::as_ref).collect();
        match self.only.iter().find(|only| !names.contains(&only.as_str())) {
            Some(unknown) => Err(format!("--only {unknown}: no such {kind} here; choose of: {}", names.join(", "))),
            None => Ok(()),
        }
    }

    pub fn choose(&self, cases: &mut Vec<Case>) -> Result<(), String> {
        if let Some(place) = (1..self.only.len()).find(|i| self.only[..*i].contains(&self.only[*i])) {
            return Err(format!("--only names {} twice; take one out", self.only[place]));
        }
        self.known("workload", &cases.iter().map(|case| case.name.as_str()).collect::<Vec<_>>())?;
        cases.retain(|case| self.wants(&case.name));
        Ok(())
    }

    pub fn craton_work(&self) -> Result<OsString, String> {
        (self.tool)("craton-work").map(OsString::from)
    }
}

/// One proof of service is for all.
pub fn workload(program: &OsStr, name: &str, percent: u64) -> Case {
    let command = vec![program.to_owned(), name.into(), "--percent".into(), percent.to_string().into()];
    Case { name: name.to_owned(), command, prove: false }
}
