//! Common parts of the experiments with `craton-objects`. An unserved case is not retried.

use super::sheet::{self, Fields, Map, Row, Sheet, distinct, json};
use super::tool::{NOT_SERVED, Tool};
use super::{Ask, Findings};
use crate::caching::{From, Measurement};
use craton_lab::measure::Allocator;
use craton_lab::picture::is_craton;
use craton_lab::ratios::Ratios;
use craton_lab::summary::Spread;
use std::collections::BTreeMap;
use std::time::Duration;

const LIMIT: Duration = Duration::from_secs(60);

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Case {
    pub from: From,
    /// A type, or bytes.
    pub what: String,
    pub batch: usize,
}

impl Case {
    /// The same on every allocator.
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

pub fn measure(ask: &Ask<'_>, cases: &[Case], rounds: usize) -> Result<Vec<Row>, String> {
    let (tool, plain) = (Tool::new(ask, "craton-objects", LIMIT)?, Allocator::glibc());
    let mut given_up: BTreeMap<&str, String> = BTreeMap::new();
    let total = cases.len() * rounds * ask.allocators.len();
    let (mut rows, mut done) = (Vec::new(), 0);
    for case in cases {
        let on: Vec<&Allocator> =
            ask.allocators.iter().enumerate().filter(|(i, of)| case.runs_on(of, *i == 0)).map(|(_, of)| of).collect();
        let mut found: Vec<Result<Vec<Measurement>, String>> = vec![Ok(Vec::new()); on.len()];
        for round in 0..rounds {
            for (allocator, found) in on.iter().zip(&mut found) {
                if ask.stopped() {
                    return Ok(rows);
                }
                ask.show(&format!("{} {}", case.from.name(), case.what), &allocator.name, round, (done, total));
                done += 1;
                let Ok(all) = found else { continue };
                if let Some(why) = given_up.get(allocator.name.as_str()) {
                    *found = Err(why.clone());
                    continue;
                }
                match tool.run(if case.is_built_in() { &plain } else { allocator }, &arguments(ask, case)) {
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
        // With the turns of those that it does not run on.
        done = done.next_multiple_of(rounds * ask.allocators.len());
    }
    Ok(rows)
}

fn row(allocator: &Allocator, case: &Case, found: Result<Vec<Measurement>, String>) -> Row {
    let (found, status) = match found {
        Ok(found) => (found, "ok".to_owned()),
        Err(why) => (Vec::new(), why),
    };
    let of = |figure: fn(&Measurement) -> f64| Spread::of(found.iter().map(figure));
    json!({
        "allocator": if case.is_built_in() { case.from.name() } else { &allocator.name },
        "from": case.from.name(),
        "what": case.what,
        "batch": case.batch,
        // 0 without a figure.
        "ns_median": of(|one| one.ns_median).map_or(0.0, |spread| spread.median),
        "ns_min": of(|one| one.ns_min).map_or(0.0, |spread| spread.min),
        "status": status,
    })
}

fn arguments(ask: &Ask<'_>, case: &Case) -> Vec<String> {
    let (count, repetitions) = ask.form((20_000, 5), (200_000, 9));
    let line = format!("--batch {} --count {count} --repetitions {repetitions}", case.batch);
    [case.from.name(), &case.what].into_iter().chain(line.split(' ')).map(str::to_owned).collect()
}

pub fn ratio<'a>(rows: &[Row], ours: (&'a str, &'a str), theirs: (&'a str, &'a str)) -> Option<f64> {
    let of = |server: (&'a str, &'a str)| move |row: &Row| row.has(&[("allocator", server.0), ("from", server.1)]);
    sheet::ratio(rows, "ns_median", (&of(ours), &of(theirs)), &["what", "batch"])
}

pub fn servers(rows: &[Row]) -> Vec<(&str, &str)> {
    distinct(rows, |row| (row.word("allocator"), row.word("from")))
}

pub fn server(row: &Row) -> String {
    name((row.word("allocator"), row.word("from")))
}

pub fn name((allocator, from): (&str, &str)) -> String {
    match from {
        "cache" => format!("{allocator} cache"),
        "malloc" => allocator.to_owned(),
        _ => from.to_owned(),
    }
}

pub fn table(rows: &[Row]) -> String {
    let servers = servers(rows);
    let mut lines = vec![vec!["what".to_owned(), "batch".to_owned()]];
    lines[0].extend(servers.iter().map(|server| name(*server)));
    for (what, batch) in distinct(rows, |row| (row.word("what"), row.int("batch"))) {
        let cell = |(allocator, from): &(&str, &str)| {
            let wanted = [("allocator", *allocator), ("from", *from), ("what", what), ("status", "ok")];
            let found = rows.iter().find(|row| row.has(&wanted) && row.int("batch") == batch);
            found.map_or("-".to_owned(), |row| format!("{:.2}", row.num("ns_median")))
        };
        lines.push([what.to_owned(), batch.to_string()].into_iter().chain(servers.iter().map(cell)).collect());
    }
    let failed = rows.iter().filter(|row| !row.is_ok()).map(|row| {
        let (what, batch, status) = (row.word("what"), row.int("batch"), row.word("status"));
        format!("{}, {what}, batches of {batch}: {status}\n", server(row))
    });
    craton_lab::format::table(&lines, &[0]) + failed.collect::<String>().as_str()
}

pub fn sheet(ask: &Ask<'_>, rows: Vec<Row>) -> Sheet {
    Sheet::new(ask, rows).compared(ask.allocators, &Ratios::default())
}

pub fn findings(mut sheet: Sheet, ratios: Map, notes: &str) -> Result<Findings, String> {
    let ratios = sheet.ratios(|_| ratios, 3);
    let table = table(sheet.rows());
    sheet.findings(format!("ns of an object, taken and given back (median)\n{table}\n{ratios}\n{notes}"))
}

#[cfg(test)]
mod tests;
