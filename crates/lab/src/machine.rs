//! The machine that figures come from.
//!
//! **What.** What a reader needs to judge a figure: kernel, processor, how many, memory, and whether hugepages come
//! unasked. **Units.** Bytes. **Failure.** What the kernel does not tell is "unknown", or 0.

use serde::{Deserialize, Serialize};
use std::fs;

/// A machine, as a document names it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Machine {
    /// The kernel's release.
    pub kernel: String,
    /// The processor's name.
    pub cpu: String,
    /// Processors that this process may use.
    pub cpus: usize,
    /// The machine's memory.
    pub memory_bytes: u64,
    /// Transparent hugepages: `always`, `madvise` or `never`.
    pub thp: String,
}

impl Machine {
    /// The machine that this process runs on.
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

/// The value of the first line `key: value`.
pub(crate) fn value<'a>(text: &'a str, key: &str) -> Option<&'a str> {
    text.lines().filter_map(|line| line.split_once(':')).find(|(k, _)| k.trim() == key).map(|(_, v)| v.trim())
}

/// `123 kB`, as /proc writes sizes, in bytes.
pub(crate) fn bytes(text: &str) -> Option<u64> {
    text.strip_suffix("kB")?.trim().parse::<u64>().ok()?.checked_mul(1024)
}

/// The bracketed word of `always [madvise] never`.
fn chosen(text: &str) -> Option<&str> {
    Some(text.split_once('[')?.1.split_once(']')?.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_of_proc_are_read() {
        assert_eq!(value("model name\t: Some CPU @ 2 GHz\nflags : a", "model name"), Some("Some CPU @ 2 GHz"));
        assert_eq!(value("MemTotal:       24 kB\n", "MemTotal").and_then(bytes), Some(24 * 1024));
        assert_eq!(bytes("24 pages"), None);
        assert_eq!(chosen("always [madvise] never\n"), Some("madvise"));
        assert_eq!(chosen(""), None);
    }

    #[test]
    fn this_machine_has_processors_and_memory() {
        let here = Machine::here();
        assert!(here.cpus > 0 && here.memory_bytes > 1 << 20 && here.kernel != "unknown", "{here:?}");
    }
}
