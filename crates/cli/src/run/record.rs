//! A process's statistics at its end: the line of its `stats_file`, or the page of its
//! `stats_dir`. Only the library writes either, so it proves service.

use super::listener::Sent;
use crate::terminal::plain;
use craton_inspect::{Ledger, Published};
use craton_lab::format::{bytes, count, stacked};
use serde::Serialize;
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};

type Number = (&'static str, fn(u64) -> String);

const NUMBERS: [Number; 7] = [
    ("refills", count),
    ("objects_out", count),
    ("large_allocs", count),
    ("huge_allocs", count),
    ("heap_in_use_bytes", bytes),
    ("heap_backed_bytes", bytes),
    ("metadata_bytes", bytes),
];
const HEAD: [&str; 9] = [
    "pid",
    "program",
    "cache refills",
    "objects refilled",
    "large objects",
    "huge objects",
    "heap in use",
    "heap backed",
    "metadata",
];

/// As the document has it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Record {
    pub pid: u64,
    pub exe: String,
    /// By `exit`, and not by a signal, `_exit` or `exec`.
    pub exited: bool,
    pub numbers: BTreeMap<String, u64>,
    /// At its exit.
    pub ledger: Option<Ledger>,
}

impl Record {
    pub fn of(left: &Published) -> Self {
        let numbers = left.numbers().map(|(key, number)| (key.to_owned(), number)).collect();
        Self { pid: left.pid.into(), exe: left.exe.clone(), exited: false, numbers, ledger: None }
    }

    pub fn sent(sent: Sent) -> Option<Self> {
        let record = Self::parse(std::str::from_utf8(&sent.line).ok()?)?;
        Some(Self { ledger: sent.ledger, ..record })
    }

    fn parse(line: &str) -> Option<Self> {
        let value: Value = serde_json::from_str(line).ok()?;
        let all = value.as_object()?.iter();
        let numbers: BTreeMap<String, u64> = all.filter_map(|(key, n)| Some((key.clone(), n.as_u64()?))).collect();
        let is_whole = NUMBERS.iter().all(|(key, _)| numbers.contains_key(*key));
        let (pid, exe) = (*numbers.get("pid")?, value.get("exe")?.as_str()?.to_owned());
        is_whole.then_some(Self { pid, exe, exited: true, numbers, ledger: None })
    }

    fn shown(&self) -> [u64; NUMBERS.len()] {
        NUMBERS.map(|(key, _)| self.numbers.get(key).copied().unwrap_or(0))
    }
}

pub fn show(records: &[Record], width: usize) -> String {
    let row = |first: [String; 2], numbers: &[u64]| {
        first.into_iter().chain(numbers.iter().zip(NUMBERS).map(|(n, (_, show))| show(*n))).collect::<Vec<_>>()
    };
    let mut rows = vec![HEAD.map(str::to_owned).to_vec()];
    rows.extend(records.iter().map(|r| row([r.pid.to_string(), plain(&r.exe)], &r.shown())));
    let mut sum = [0u64; NUMBERS.len()];
    for record in records {
        sum.iter_mut().zip(record.shown()).for_each(|(s, n)| *s = s.saturating_add(n));
    }
    let processes = records.iter().map(|record| record.pid).collect::<BTreeSet<_>>().len();
    let plural = if processes == 1 { "" } else { "es" };
    let many = match records.len() {
        programs if programs == processes => format!("{processes} process{plural}"),
        programs => format!("{programs} programs of {processes} process{plural}"),
    };
    rows.push(row(["total".to_owned(), many], &sum));
    stacked(&rows, &[1], 2, width)
}

#[cfg(test)]
mod tests;
