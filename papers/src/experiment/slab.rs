//! What the experiments with the program `craton-objects` have in common.
//!
//! **What.** A [`Case`] runs in a process of its own on each allocator that it makes sense on, in turns, round after round; a row is the median over
//! the rounds.
//!
//! **Failure.** A case that an allocator fails at is a row with the reason; one that is not served is not tried again.

use super::{Ask, Findings, text};
use crate::caching::{From, Measurement};
use craton_lab::document::Document;
use craton_lab::measure::{Allocator, Progress, once};
use craton_lab::micro::process::{Ended, Process};
use craton_lab::picture::is_craton;
use craton_lab::ratios::Ratios;
use craton_lab::scratch::Scratch;
use craton_lab::summary::Spread;
use serde::Serialize;
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

/// The longest that a process may take; one takes a tenth of a second.
const LIMIT: Duration = Duration::from_secs(60);

/// What is measured.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Case {
    /// Who serves.
    pub from: From,
    /// A type, or a number of bytes.
    pub what: String,
    /// Objects that are taken at a time.
    pub batch: usize,
}

impl Case {
    /// Whether it is the same on every allocator, since it is in the program.
    fn is_built_in(&self) -> bool {
        !matches!(self.from, From::Malloc | From::Cache)
    }

    fn runs_on(&self, allocator: &Allocator, first: bool) -> bool {
        match self.from {
            From::Malloc => true,
            From::Cache => is_craton(&allocator.name),
            _ => first,
        }
    }
}

/// A row of the document.
#[derive(Clone, Debug, Serialize)]
pub struct ObjectRow {
    /// What was preloaded, or the allocator in the program.
    pub allocator: String,
    /// Who served, by name.
    pub from: &'static str,
    /// What was taken: a type, or bytes.
    pub what: String,
    /// Objects at a time.
    pub batch: usize,
    /// Nanoseconds of one, median; 0 if there is none.
    pub ns_median: f64,
    /// The least.
    pub ns_min: f64,
    /// `ok`, or what went wrong.
    pub status: String,
}

/// Measures all cases.
///
/// # Errors
/// The program is not there, or no place for its output.
pub fn measure(ask: &Ask<'_>, cases: &[Case], rounds: usize) -> Result<Vec<ObjectRow>, String> {
    let program = (ask.tool)("craton-objects")?;
    let program = std::path::absolute(&program).unwrap_or(program);
    let scratch = Scratch::new("what the processes write")?;
    let mut given_up: BTreeMap<&str, String> = BTreeMap::new();
    let total = cases.len() * rounds * ask.allocators.len();
    let (mut rows, mut done) = (Vec::new(), 0);
    for case in cases {
        let on: Vec<&Allocator> =
            ask.allocators.iter().enumerate().filter(|(i, of)| case.runs_on(of, *i == 0)).map(|(_, of)| of).collect();
        let mut found: Vec<Result<Vec<Measurement>, String>> = vec![Ok(Vec::new()); on.len()];
        for round in 0..rounds {
            for (allocator, found) in on.iter().zip(&mut found) {
                if ask.stop.load(Relaxed) {
                    return Ok(rows);
                }
                let now = Progress { allocator: &allocator.name, round: Some(round), done, total };
                (ask.progress)(&format!("{} {}", case.from.name(), case.what), now);
                done += 1;
                let Ok(all) = found else { continue };
                if let Some(why) = given_up.get(allocator.name.as_str()) {
                    *found = Err(why.clone());
                    continue;
                }
                match once(ask, &program, scratch.path(), allocator, case) {
                    None => return Ok(rows),
                    Some(Ok(one)) => all.push(one),
                    Some(Err(why)) => {
                        if why.starts_with(NOT_SERVED) {
                            given_up.insert(&allocator.name, why.clone());
                        }
                        *found = Err(why);
                    }
                }
            }
        }
        rows.extend(on.into_iter().zip(found).map(|(allocator, found)| row(allocator, case, found)));
        // The turns of those that it does not run on.
        done = done.next_multiple_of(rounds * ask.allocators.len());
    }
    Ok(rows)
}

fn row(allocator: &Allocator, case: &Case, found: Result<Vec<Measurement>, String>) -> ObjectRow {
    let (found, status) = match found {
        Ok(found) => (found, "ok".to_owned()),
        Err(why) => (Vec::new(), why),
    };
    let of = |figure: fn(&Measurement) -> f64| Spread::of(found.iter().map(figure));
    ObjectRow {
        allocator: if case.is_built_in() { case.from.name().to_owned() } else { allocator.name.clone() },
        from: case.from.name(),
        what: case.what.clone(),
        batch: case.batch,
        ns_median: of(|one| one.ns_median).map_or(0.0, |spread| spread.median),
        ns_min: of(|one| one.ns_min).map_or(0.0, |spread| spread.min),
        status,
    }
}

const NOT_SERVED: &str = "not served";

/// One process; none if stopped.
fn once(
    ask: &Ask<'_>,
    program: &Path,
    directory: &Path,
    allocator: &Allocator,
    case: &Case,
) -> Option<Result<Measurement, String>> {
    let plain = Allocator::glibc();
    let (variables, library) = match once::environment(if case.is_built_in() { &plain } else { allocator }) {
        Ok(environment) => environment,
        Err(why) => return Some(Err(format!("{NOT_SERVED}: {why}"))),
    };
    let mut command = vec![program.as_os_str().to_owned()];
    let count = if ask.quick { 20_000 } else { 200_000 };
    let repetitions = if ask.quick { 5 } else { 9 };
    command.extend([case.from.name(), &case.what, "--batch"].map(OsString::from));
    let words =
        [case.batch.to_string(), "--count".into(), count.to_string(), "--repetitions".into(), repetitions.to_string()];
    command.extend(words.map(OsString::from));
    let ended = Process::start(&command, &variables, directory, "object", LIMIT).and_then(|one| one.finish(ask.stop));
    let output = match ended {
        Err(e) => return Some(Err(format!("cannot start {}: {e}", program.display()))),
        Ok(Ended::Stopped) => return None,
        Ok(Ended::TimedOut) => return Some(Err(format!("took longer than {} s", LIMIT.as_secs()))),
        Ok(Ended::Done(output)) => output,
    };
    if library.as_deref().is_some_and(|library| once::was_refused(library, &output.stderr)) {
        return Some(Err(format!("{NOT_SERVED}: {} cannot be preloaded", allocator.name)));
    }
    if let Some(why) = output.failure() {
        return Some(Err(format!("failed: {why}")));
    }
    Some(parse(&output.stdout, library.as_ref()))
}

/// The measurement in a line, if the allocator served it.
fn parse(line: &str, library: Option<&PathBuf>) -> Result<Measurement, String> {
    let found: Measurement =
        serde_json::from_str(line.trim()).map_err(|e| format!("{line:?} is no result of craton-objects: {e}"))?;
    let is_c_library = |path: &Path| path.file_name().is_some_and(|n| n.to_string_lossy().starts_with("libc.so"));
    if is_c_library(Path::new(&found.malloc_from)) != library.is_none_or(|library| is_c_library(library)) {
        return Err(format!("{NOT_SERVED}: malloc came from {}", found.malloc_from));
    }
    Ok(found)
}

/// The geometric mean of `ours` by `theirs`, over what both have figures of.
pub fn ratio(rows: &[ObjectRow], ours: (&str, &str), theirs: (&str, &str)) -> Option<f64> {
    let of = |(allocator, from): (&str, &str), like: &ObjectRow| {
        let same = |row: &&ObjectRow| row.allocator == allocator && row.from == from && row.status == "ok";
        rows.iter().filter(same).find(|row| row.what == like.what && row.batch == like.batch).map(|row| row.ns_median)
    };
    let all: Vec<f64> = rows
        .iter()
        .filter(|row| row.allocator == ours.0 && row.from == ours.1)
        .filter_map(|row| Some((of(ours, row)? / of(theirs, row)?).ln()))
        .collect();
    (!all.is_empty()).then(|| (all.iter().sum::<f64>() / all.len() as f64).exp())
}

/// The allocators that a document compares, by their names and who serves.
pub fn servers(rows: &[ObjectRow]) -> Vec<(&str, &str)> {
    let mut servers: Vec<(&str, &str)> = Vec::new();
    for row in rows {
        if !servers.contains(&(&row.allocator, row.from)) {
            servers.push((&row.allocator, row.from));
        }
    }
    servers
}

/// A server's name in tables.
pub fn name((allocator, from): (&str, &str)) -> String {
    match from {
        "cache" => format!("{allocator} cache"),
        "malloc" => allocator.to_owned(),
        _ => from.to_owned(),
    }
}

/// A line for each thing and batch, a column for each server; then what failed.
pub fn table(rows: &[ObjectRow]) -> String {
    let servers = servers(rows);
    let mut lines = vec![vec!["what".to_owned(), "batch".to_owned()]];
    lines[0].extend(servers.iter().map(|server| name(*server)));
    let mut places: Vec<(&str, usize)> = Vec::new();
    for row in rows {
        if !places.contains(&(&row.what, row.batch)) {
            places.push((&row.what, row.batch));
        }
    }
    for (what, batch) in places {
        let cell = |(allocator, from): &(&str, &str)| {
            let same = |row: &&ObjectRow| row.allocator == *allocator && row.from == *from && row.status == "ok";
            let found = rows.iter().filter(same).find(|row| row.what == what && row.batch == batch);
            found.map_or("-".to_owned(), |row| format!("{:.2}", row.ns_median))
        };
        lines.push([what.to_owned(), batch.to_string()].into_iter().chain(servers.iter().map(cell)).collect());
    }
    let failed = rows.iter().filter(|row| row.status != "ok").map(|row| {
        format!("{}, {}, batches of {}: {}\n", name((&row.allocator, row.from)), row.what, row.batch, row.status)
    });
    craton_lab::format::table(&lines, &[0]) + &failed.collect::<String>()
}

/// The findings of rows.
///
/// # Errors
/// A number that the document cannot hold.
pub fn findings(
    ask: &Ask<'_>,
    experiment: &str,
    rows: Vec<ObjectRow>,
    (ratios, notes): (BTreeMap<String, f64>, String),
    picture: impl FnOnce(&Document<ObjectRow>) -> String,
) -> Result<Findings, String> {
    let mut document = Document::new(experiment, ask.command, ask.allocators, rows, &Ratios::default());
    document.ratios = ratios;
    let ratios: String = document.ratios.iter().map(|(name, ratio)| format!("{name} {ratio:.3}\n")).collect();
    Ok(Findings {
        text: format!("ns of an object, taken and given back (median)\n{}\n{ratios}\n{notes}", table(&document.rows)),
        pictures: vec![(String::new(), picture(&document))],
        failed: document.rows.iter().filter(|row| row.status != "ok").count(),
        document: text(&document)?,
    })
}

#[cfg(test)]
mod tests;
