//! `trust`: evidence for a user before malloc serves a program (docs/experiments.md). A missing
//! suite or program is no failure: a row says how to get it.

mod attacks;
mod faults;
mod storms;
mod suites;

use super::sheet::{Fields, Row, Sheet};
use super::{Ask, Findings};
use craton_lab::measure::{Allocator, once};
use craton_lab::ratios::OURS;
use std::ffi::OsString;
use std::path::PathBuf;

type Part = (String, Vec<Row>);
type Run = fn(&Ask<'_>, &Ours) -> Result<Part, String>;

const PARTS: [(&str, Run); 4] =
    [("suites", suites::run), ("attacks", attacks::run), ("faults", faults::run), ("storms", storms::run)];

/// With its processes' variables.
struct Ours {
    library: PathBuf,
    variables: Vec<(OsString, OsString)>,
}

impl Ours {
    fn new(allocators: &[Allocator]) -> Result<Self, String> {
        let craton = allocators.iter().find(|allocator| allocator.name == OURS);
        let craton = craton.ok_or("this experiment is about Craton, which was left out")?;
        let (variables, library) = once::environment(craton)?;
        let library = library.ok_or("Craton has no library here")?;
        Ok(Self { library, variables })
    }
}

pub fn run(ask: &Ask<'_>) -> Result<Findings, String> {
    ask.refuse(&["--peers", "--runs"], "")?;
    let suites = suites::SUITES.iter().map(|suite| suite.name);
    let names: Vec<&str> = PARTS.iter().map(|part| part.0).chain(suites.clone()).collect();
    ask.known("part or suite", &names)?;
    let ours = Ours::new(ask.allocators)?;
    let (mut rows, mut text) = (Vec::new(), String::new());
    for (name, run) in PARTS {
        let has_suite = name == "suites" && suites.clone().any(|suite| ask.wants(suite));
        if ask.stopped() || !ask.wants(name) && !has_suite {
            continue;
        }
        let (table, of) = run(ask, &ours)?;
        let wrong = of.iter().filter(|row| !row.is_ok());
        let wrong: String = wrong.map(|row| format!("{}: {}\n", row.word("name"), row.word("status"))).collect();
        text += &format!("{name}\n{table}{wrong}\n");
        rows.extend(of);
    }
    Sheet::new(ask, rows).measured()?.findings(text)
}

#[cfg(test)]
mod tests;
