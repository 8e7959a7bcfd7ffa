//! The document that `--json` writes.
//!
//! **What.** `{"name", "machine", "commit", "command", "rows", "ratios"}`: a row for each run, failed ones too, and a flat
//! map of ratios in which less than 1 means that Craton needs less.
//!
//! **Units.** In the names: `_s` seconds, `_bytes` bytes.
//!
//! **Failure.** A ratio that cannot be computed, for want of a successful run of both, is left out.

use crate::machine::Machine;
use crate::measure::Run;
use crate::summary::{self, Figure};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::io::{self, Write};
use std::path::Path;

/// Ratios by name, less than 1 where Craton needs less.
pub type Ratios = BTreeMap<String, f64>;

/// The figures that have a ratio, and its name before `_vs_`.
const RATIOS: [(&str, Figure); 4] =
    [("time", Figure::Wall), ("rss", Figure::PeakRss), ("cpu", Figure::Cpu), ("faults", Figure::MinorFaults)];

/// One measurement, whole.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Document {
    /// What was done, such as `compare`.
    pub name: String,
    /// Where.
    pub machine: Machine,
    /// With which sources, or `unknown`.
    pub commit: String,
    /// How, to do it again.
    pub command: Vec<String>,
    /// The runs, in their order.
    pub rows: Vec<Row>,
    /// What follows from them.
    pub ratios: Ratios,
}

/// One run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Row {
    /// What ran.
    pub workload: String,
    /// On which allocator.
    pub allocator: String,
    /// The round, from 0.
    pub run: usize,
    /// Wall time.
    pub wall_s: f64,
    /// Processor time.
    pub cpu_s: f64,
    /// Peak resident set of the largest process.
    pub peak_rss_bytes: u64,
    /// Minor page faults.
    pub minor_faults: u64,
    /// Most anonymous memory seen on hugepages.
    pub hugepage_bytes: u64,
    /// `ok`, or what went wrong.
    pub status: String,
}

impl Row {
    /// The row of a run of `workload`.
    pub fn new(workload: &str, run: &Run) -> Self {
        Self {
            workload: workload.to_owned(),
            allocator: run.allocator.clone(),
            run: run.index,
            wall_s: run.wall_s,
            cpu_s: run.cpu_s,
            peak_rss_bytes: run.peak_rss_bytes,
            minor_faults: run.minor_faults,
            hugepage_bytes: run.hugepage_bytes,
            status: run.status.to_string(),
        }
    }
}

impl Document {
    /// The document of one workload's runs, with Craton's ratios to glibc.
    pub fn new(name: &str, workload: &str, command: &[OsString], runs: &[Run]) -> Self {
        Self {
            name: name.to_owned(),
            machine: Machine::here(),
            commit: commit().to_owned(),
            command: command.iter().map(|word| word.to_string_lossy().into_owned()).collect(),
            rows: runs.iter().map(|run| Row::new(workload, run)).collect(),
            ratios: ratios(runs, "craton", "glibc"),
        }
    }

    /// Writes it to a file, or to standard output for `-`, as indented JSON with a newline at its end.
    ///
    /// # Errors
    /// What the system says; the caller names the path.
    pub fn write(&self, path: &Path) -> io::Result<()> {
        let mut text = serde_json::to_string_pretty(self)?;
        text.push('\n');
        if path == Path::new("-") {
            let mut out = io::stdout().lock();
            out.write_all(text.as_bytes())?;
            return out.flush();
        }
        std::fs::write(path, text)
    }
}

/// `time_vs_BASE`, `rss_vs_BASE`, `cpu_vs_BASE` and `faults_vs_BASE` of an allocator, by the medians.
pub fn ratios(runs: &[Run], allocator: &str, base: &str) -> Ratios {
    let of = |figure| summary::ratio(runs, allocator, base, figure).map(|r| r.of_medians);
    RATIOS.iter().filter_map(|(name, figure)| Some((format!("{name}_vs_{base}"), of(*figure)?))).collect()
}

/// The commit that this program was built from, or `unknown`.
pub fn commit() -> &'static str {
    env!("CRATON_COMMIT")
}

#[cfg(test)]
mod tests;
