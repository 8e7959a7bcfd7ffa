//! The document of `--json`.
//!
//! **Failure.** A ratio without a successful run of both is omitted.

use crate::machine::Machine;
use crate::measure::server::Load;
use crate::measure::{Allocator, Run};
use crate::ratios::Ratios;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::ffi::OsString;

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Document<R = Row> {
    pub name: String,
    pub machine: Machine,
    pub commit: String,
    pub command: Vec<String>,
    pub rows: Vec<R>,
    /// Below 1 Craton needs less.
    pub ratios: BTreeMap<String, f64>,
    /// 95 %, from five rounds on.
    pub intervals: BTreeMap<String, [f64; 2]>,
    pub allocators: Vec<Described>,
    /// Facts that qualify the figures, such as an allocator that a program brings along.
    #[serde(default)]
    pub notes: Vec<String>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Described {
    pub name: String,
    pub library: Option<String>,
    pub variables: BTreeMap<String, String>,
}

impl Described {
    pub fn new(allocator: &Allocator) -> Self {
        let text = |word: &OsString| word.to_string_lossy().into_owned();
        Self {
            name: allocator.name.clone(),
            library: allocator.preload.as_ref().and_then(|path| Some(text(&path.file_name()?.to_owned()))),
            variables: allocator.env.iter().map(|(key, value)| (text(key), text(value))).collect(),
        }
    }
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Row {
    pub workload: String,
    pub allocator: String,
    pub run: usize,
    pub wall_s: f64,
    pub cpu_s: f64,
    pub user_s: f64,
    pub sys_s: f64,
    pub peak_rss_bytes: u64,
    pub steady_rss_bytes: Option<u64>,
    pub minor_faults: u64,
    pub major_faults: u64,
    pub hugepage_bytes: u64,
    /// 0 to 1.
    pub hugepage_coverage: Option<f64>,
    /// Of a server.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub load: Option<LoadRow>,
    /// Says `ok`, or what went wrong.
    pub status: String,
}

/// Figures that the load of a server printed; others are null.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct LoadRow {
    pub operations_per_s: Option<f64>,
    pub p50_s: Option<f64>,
    pub p99_s: Option<f64>,
    pub p999_s: Option<f64>,
    pub after_load_bytes: Option<u64>,
}

impl LoadRow {
    fn new(load: &Load) -> Self {
        let results = load.results;
        Self {
            operations_per_s: results.operations_per_s,
            p50_s: results.p50_s,
            p99_s: results.p99_s,
            p999_s: results.p999_s,
            after_load_bytes: load.after_bytes,
        }
    }
}

impl Row {
    pub fn new(workload: &str, run: &Run) -> Self {
        Self {
            workload: workload.to_owned(),
            allocator: run.allocator.clone(),
            run: run.index,
            wall_s: run.wall_s,
            cpu_s: run.cpu_s(),
            user_s: run.user_s,
            sys_s: run.sys_s,
            peak_rss_bytes: run.peak_rss_bytes,
            steady_rss_bytes: run.steady_rss_bytes,
            minor_faults: run.minor_faults,
            major_faults: run.major_faults,
            hugepage_bytes: run.hugepage_bytes,
            hugepage_coverage: run.hugepage_coverage,
            load: run.load.as_ref().map(LoadRow::new),
            status: run.status.to_string(),
        }
    }
}

impl<R> Document<R> {
    pub fn new(name: &str, command: &[OsString], allocators: &[Allocator], rows: Vec<R>, ratios: &Ratios) -> Self {
        Self {
            name: name.to_owned(),
            machine: Machine::here(),
            commit: commit().to_owned(),
            command: command.iter().map(|word| word.to_string_lossy().into_owned()).collect(),
            rows,
            ratios: ratios.values(),
            intervals: ratios.intervals(),
            allocators: allocators.iter().map(Described::new).collect(),
            notes: Vec::new(),
        }
    }
}

impl<R: Serialize> Document<R> {
    pub fn text(&self) -> serde_json::Result<String> {
        Ok(serde_json::to_string_pretty(self)? + "\n")
    }
}

pub fn commit() -> &'static str {
    env!("CRATON_COMMIT")
}

#[cfg(test)]
mod tests;
