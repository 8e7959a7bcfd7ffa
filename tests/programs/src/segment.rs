//! The numbers that a process says of itself: at its end as a line of JSON, while it runs through its memory.

use crate::build::library;
use serde_json::Value;
use std::fs::{self, File};
use std::os::unix::fs::FileExt;
use std::process::Command;

/// Declares the numbers in the order of `struct craton_segment`, which follow its magic and version.
macro_rules! stats {
    ($($(#[$doc:meta])* $number:ident,)*) => {
        /// What Craton counted in one process; the fields of `struct craton_segment`.
        #[derive(Clone, Debug, Default, PartialEq, Eq)]
        pub struct Stats {
            /// The process's name, of at most 15 bytes.
            pub exe: String,
            $($(#[$doc])* pub $number: u64,)*
        }

        /// The numbers' names.
        const NAMES: &[&str] = &[$(stringify!($number)),*];

        impl Stats {
            /// From the numbers in their order.
            fn new(exe: String, numbers: [u64; NAMES.len()]) -> Self {
                let [$($number),*] = numbers;
                Self { exe, $($number),* }
            }
        }
    };
}

stats! {
    /// The process.
    pid,
    /// Batches of objects handed from slabs to threads' caches; more than 0 in every process that Craton serves.
    refills,
    /// Objects in those batches.
    objects_out,
    /// Objects of whole pages, since the start.
    large_allocs,
    /// Objects with a mapping of their own, since the start.
    huge_allocs,
    /// Bytes of the heap in spans.
    heap_in_use_bytes,
    /// Bytes of the heap that have memory, as far as is known.
    heap_backed_bytes,
    /// Bytes of metadata made usable.
    metadata_bytes,
    /// Threads that have had a cache.
    threads_seen,
    /// Bytes of huge objects.
    huge_bytes,
    /// The control group's limit on memory, or what the option `memory_limit` says, now; 0 for none.
    memory_limit_bytes,
    /// The soft limit in force, now; 0 for none.
    soft_limit_bytes,
    /// The hard limit in force, now; 0 for none.
    hard_limit_bytes,
    /// Times a request found more in use than the soft limit.
    soft_limit_passed,
    /// Requests that the hard limit refused.
    hard_limit_refused,
    /// Times memory was given back because the system was short of it.
    pressure_releases,
    /// Processors that the process may use, as last found; 0 before anybody looked.
    usable_cpus,
    /// How threads without a cache of their own are served: 0 there are none, 1 or 2 by caches of processors.
    cache_mode,
    /// Processors that have a cache.
    processor_caches,
    /// Where the limit on memory is from: 0 not looked at yet, 1 nowhere, 2 and 3 the control group by version, 4 the option.
    memory_limit_source,
}

/// Words of `struct craton_segment`; the first two are magic and version.
const WORDS: usize = 2 + NAMES.len();
const MAGIC: u64 = u64::from_le_bytes(*b"\0CRATON1");

impl Stats {
    /// Reads one line of a `stats_file`.
    pub(crate) fn from_json(line: &str) -> Self {
        let value: Value = serde_json::from_str(line).unwrap_or_else(|e| panic!("stats_file: {e} in: {line}"));
        let mut numbers = [0; NAMES.len()];
        for (number, name) in numbers.iter_mut().zip(NAMES) {
            let there = value[*name].as_u64();
            *number = there.unwrap_or_else(|| panic!("stats_file: no number {name:?} in: {line}"));
        }
        let exe = value["exe"].as_str().unwrap_or_else(|| panic!("stats_file: no exe in: {line}"));
        Self::new(exe.to_owned(), numbers)
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
    let [MAGIC, 1, numbers @ ..] = words else {
        return Err(format!("no segment of version 1 but {words:x?}"));
    };
    let name = fs::read_to_string(format!("/proc/{pid}/comm")).map_err(|e| format!("its name: {e}"))?;
    Ok(Stats::new(name.trim_end().to_owned(), numbers))
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
