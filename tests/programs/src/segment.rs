//! The numbers that a process says of itself: at its end as a line of JSON, while it runs through its memory.

use crate::build::library;
use serde_json::Value;
use std::fs::{self, File};
use std::os::unix::fs::FileExt;
use std::process::Command;

/// What Craton counted in one process; the fields of `struct craton_segment`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Stats {
    /// The process's name, of at most 15 bytes.
    pub exe: String,
    /// The process.
    pub pid: u64,
    /// Batches of objects handed from slabs to threads' caches; more than 0 in every process that Craton serves.
    pub refills: u64,
    /// Objects in those batches.
    pub objects_out: u64,
    /// Objects of whole pages, since the start.
    pub large_allocs: u64,
    /// Objects with a mapping of their own, since the start.
    pub huge_allocs: u64,
    /// Bytes of the heap in spans.
    pub heap_in_use_bytes: u64,
    /// Bytes of the heap that may have memory.
    pub heap_backed_bytes: u64,
    /// Bytes of metadata made usable.
    pub metadata_bytes: u64,
    /// Threads that have had a cache.
    pub threads_seen: u64,
    /// Bytes of huge objects.
    pub huge_bytes: u64,
    /// The control group's limit on memory, or what the option `memory_limit` says, now; 0 for none.
    pub memory_limit_bytes: u64,
    /// The soft limit in force, now; 0 for none.
    pub soft_limit_bytes: u64,
    /// The hard limit in force, now; 0 for none.
    pub hard_limit_bytes: u64,
    /// Times a request found more in use than the soft limit.
    pub soft_limit_passed: u64,
    /// Requests that the hard limit refused.
    pub hard_limit_refused: u64,
    /// Times memory was given back because the system was short of it.
    pub pressure_releases: u64,
    /// Processors that the process may use, as last found; 0 before anybody looked.
    pub usable_cpus: u64,
    /// How threads without a cache of their own are served: 0 there are none, 1 or 2 by caches of processors.
    pub cache_mode: u64,
    /// Processors that have a cache.
    pub processor_caches: u64,
}

/// Words of `struct craton_segment`; the first two are magic and version.
const WORDS: usize = 21;
const MAGIC: u64 = u64::from_le_bytes(*b"\0CRATON1");

impl Stats {
    /// Reads one line of a `stats_file`.
    pub(crate) fn from_json(line: &str) -> Self {
        let value: Value = serde_json::from_str(line).unwrap_or_else(|e| panic!("stats_file: {e} in: {line}"));
        let number =
            |key: &str| value[key].as_u64().unwrap_or_else(|| panic!("stats_file: no number {key:?} in: {line}"));
        Self {
            exe: value["exe"].as_str().unwrap_or_else(|| panic!("stats_file: no exe in: {line}")).to_owned(),
            pid: number("pid"),
            refills: number("refills"),
            objects_out: number("objects_out"),
            large_allocs: number("large_allocs"),
            huge_allocs: number("huge_allocs"),
            heap_in_use_bytes: number("heap_in_use_bytes"),
            heap_backed_bytes: number("heap_backed_bytes"),
            metadata_bytes: number("metadata_bytes"),
            threads_seen: number("threads_seen"),
            huge_bytes: number("huge_bytes"),
            memory_limit_bytes: number("memory_limit_bytes"),
            soft_limit_bytes: number("soft_limit_bytes"),
            hard_limit_bytes: number("hard_limit_bytes"),
            soft_limit_passed: number("soft_limit_passed"),
            hard_limit_refused: number("hard_limit_refused"),
            pressure_releases: number("pressure_releases"),
            usable_cpus: number("usable_cpus"),
            cache_mode: number("cache_mode"),
            processor_caches: number("processor_caches"),
        }
    }

    fn from_words(exe: String, w: [u64; WORDS]) -> Self {
        Self {
            exe,
            pid: w[2],
            refills: w[3],
            objects_out: w[4],
            large_allocs: w[5],
            huge_allocs: w[6],
            heap_in_use_bytes: w[7],
            heap_backed_bytes: w[8],
            metadata_bytes: w[9],
            threads_seen: w[10],
            huge_bytes: w[11],
            memory_limit_bytes: w[12],
            soft_limit_bytes: w[13],
            hard_limit_bytes: w[14],
            soft_limit_passed: w[15],
            hard_limit_refused: w[16],
            pressure_releases: w[17],
            usable_cpus: w[18],
            cache_mode: w[19],
            processor_caches: w[20],
        }
    }
}

/// The numbers of a running process that has the shared library loaded, read from its memory.
pub fn live_segment(pid: u32) -> Stats {
    try_live_segment(pid).unwrap_or_else(|error| panic!("process {pid}: {error}"))
}

/// [`live_segment`], or why there is none.
pub(crate) fn try_live_segment(pid: u32) -> Result<Stats, String> {
    let maps = fs::read_to_string(format!("/proc/{pid}/maps")).map_err(|e| format!("its maps: {e}"))?;
    // The first mapping of a library begins at its load address.
    let line = maps
        .lines()
        .find(|line| line.ends_with("/libcraton.so"))
        .ok_or_else(|| format!("libcraton.so is not loaded; its maps:\n{maps}"))?;
    let base = line.split('-').next().and_then(|hex| u64::from_str_radix(hex, 16).ok());
    let base = base.ok_or_else(|| format!("no address in {line:?}"))?;
    let memory = File::open(format!("/proc/{pid}/mem")).map_err(|e| format!("its memory: {e}"))?;
    let mut bytes = [0u8; WORDS * 8];
    memory.read_exact_at(&mut bytes, base + segment_offset()).map_err(|e| format!("its segment: {e}"))?;
    let (chunks, _) = bytes.as_chunks::<8>();
    let mut words = [0u64; WORDS];
    for (word, chunk) in words.iter_mut().zip(chunks) {
        *word = u64::from_le_bytes(*chunk);
    }
    if words[0] != MAGIC || words[1] != 1 {
        return Err(format!("no segment of version 1 but {words:x?}"));
    }
    let name = fs::read_to_string(format!("/proc/{pid}/comm")).map_err(|e| format!("its name: {e}"))?;
    Ok(Stats::from_words(name.trim_end().to_owned(), words))
}

/// Where `craton_segment` lies behind the library's load address.
fn segment_offset() -> u64 {
    let output = Command::new("nm").args(["-D", "--defined-only"]).arg(library()).output();
    let output = output.unwrap_or_else(|e| panic!("nm: {e}; install the Debian package binutils"));
    let text = String::from_utf8_lossy(&output.stdout);
    let line = text.lines().find(|line| line.split_whitespace().nth(2) == Some("craton_segment"));
    let value = line.and_then(|line| u64::from_str_radix(line.split_whitespace().next()?, 16).ok());
    value.unwrap_or_else(|| panic!("{} exports no craton_segment:\n{text}", library().display()))
}
