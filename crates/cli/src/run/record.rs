//! A process's statistics at its end: a line of JSON in `stats_file`, or the page of its
//! `stats_dir`. Only the library writes either, so it proves service.

use crate::terminal::plain;
use craton_inspect::Published;
use craton_lab::format::{bytes, count, stacked};
use serde_json::Value;

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

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Record {
    pub pid: u64,
    exe: String,
    numbers: [u64; NUMBERS.len()],
}

impl Record {
    pub fn of(left: &Published) -> Self {
        let numbers = NUMBERS.map(|(key, _)| left.number(key));
        Self { pid: left.pid.into(), exe: left.exe.clone(), numbers }
    }

    pub fn parse(line: &str) -> Option<Self> {
        let value: Value = serde_json::from_str(line).ok()?;
        let number = |key: &str| value.get(key)?.as_u64();
        let mut numbers = [0; NUMBERS.len()];
        for (place, (key, _)) in numbers.iter_mut().zip(NUMBERS) {
            *place = number(key)?;
        }
        Some(Self { pid: number("pid")?, exe: value.get("exe")?.as_str()?.to_owned(), numbers })
    }
}

pub fn show(records: &[Record], width: usize) -> String {
    let row = |first: [String; 2], numbers: &[u64]| {
        first.into_iter().chain(numbers.iter().zip(NUMBERS).map(|(n, (_, show))| show(*n))).collect::<Vec<_>>()
    };
    let mut rows = vec![HEAD.map(str::to_owned).to_vec()];
    rows.extend(records.iter().map(|r| row([r.pid.to_string(), plain(&r.exe)], &r.numbers)));
    let mut sum = [0u64; NUMBERS.len()];
    for record in records {
        sum.iter_mut().zip(record.numbers).for_each(|(s, n)| *s = s.saturating_add(n));
    }
    let many = format!("{} process{}", records.len(), if records.len() == 1 { "" } else { "es" });
    rows.push(row(["total".to_owned(), many], &sum));
    stacked(&rows, &[1], 2, width)
}

#[cfg(test)]
mod tests;
