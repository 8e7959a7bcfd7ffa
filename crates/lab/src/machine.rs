//! The machine of a measurement. Unknown values are "unknown" or 0.

use serde::{Deserialize, Serialize};
use std::fs;

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Machine {
    pub kernel: String,
    pub cpu: String,
    /// That this process may use.
    pub cpus: usize,
    pub memory_bytes: u64,
    /// `always`, `madvise` or `never`.
    pub thp: String,
}

impl Machine {
    pub fn here() -> Self {
        let read = |path: &str| fs::read_to_string(path).unwrap_or_default();
        let known = |text: Option<&str>| text.filter(|t| !t.is_empty()).unwrap_or("unknown").to_owned();
        Self {
            kernel: known(Some(read("/proc/sys/kernel/osrelease").trim())),
            cpu: known(value(&read("/proc/cpuinfo"), "model name")),
            cpus: std::thread::available_parallelism().map_or(0, usize::from),
            memory_bytes: value(&read("/proc/meminfo"), "MemTotal").and_then(bytes).unwrap_or(0),
            thp: known(chosen(&read("/sys/kernel/mm/transparent_hugepage/enabled"))),
        }
    }
}

pub fn processors() -> Vec<usize> {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    value(&status, "Cpus_allowed_list").and_then(processor_list).unwrap_or_default()
}

/// `0,2-3`, ascending.
pub fn processor_list(text: &str) -> Option<Vec<usize>> {
    let number = |text: &str| text.bytes().all(|b| b.is_ascii_digit()).then(|| text.parse::<usize>().ok()).flatten();
    let mut numbers = Vec::new();
    for part in text.split(',') {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        let (first, last) = (number(first)?, number(last).filter(|last| *last < 1 << 16)?);
        if first > last {
            return None;
        }
        numbers.extend(first..=last);
    }
    numbers.sort_unstable();
    numbers.dedup();
    Some(numbers)
}

pub(crate) fn value<'a>(text: &'a str, key: &str) -> Option<&'a str> {
    text.lines().filter_map(|line| line.split_once(':')).find(|(k, _)| k.trim() == key).map(|(_, v)| v.trim())
}

pub(crate) fn bytes(text: &str) -> Option<u64> {
    text.strip_suffix("kB")?.trim().parse::<u64>().ok()?.checked_mul(1024)
}

fn chosen(text: &str) -> Option<&str> {
    Some(text.split_once('[')?.1.split_once(']')?.0)
}

#[cfg(test)]
mod tests;
