//! A process's numbers.

use crate::build::library;
use craton_tables::counters::{Counter, PROCESS};
use craton_tables::{count_struct, counters};
use serde_json::Value;
use std::fs::{self, File};
use std::os::unix::fs::FileExt;
use std::process::Command;

count_struct! { process,
    #[derive(Clone, Debug, Default, PartialEq, Eq)]
    pub struct Stats {
        pub exe: String,
    }
}

macro_rules! from_numbers {
    ($($name:ident: $unit:ident, $text:literal;)*) => {
        impl Stats {
            fn new(exe: String, numbers: [u64; PROCESS.len()]) -> Self {
                let [$($name),*] = numbers;
                Self { exe, $($name),* }
            }
        }
    };
}

counters!(process, from_numbers);

const WORDS: usize = 2 + PROCESS.len();
const MAGIC: u64 = u64::from_le_bytes(*b"\0CRATON1");

impl Stats {
    pub(crate) fn from_json(line: &str) -> Self {
        let value: Value = serde_json::from_str(line).unwrap_or_else(|e| panic!("stats_file: {e} in: {line}"));
        let mut numbers = [0; PROCESS.len()];
        for (number, Counter { name, .. }) in numbers.iter_mut().zip(PROCESS) {
            let there = value[*name].as_u64();
            *number = there.unwrap_or_else(|| panic!("stats_file: no number {name:?} in: {line}"));
        }
        let exe = value["exe"].as_str().unwrap_or_else(|| panic!("stats_file: no exe in: {line}"));
        Self::new(exe.to_owned(), numbers)
    }
}

pub fn live_segment(pid: u32) -> Stats {
    try_live_segment(pid).unwrap_or_else(|error| panic!("process {pid}: {error}"))
}

pub(crate) fn try_live_segment(pid: u32) -> Result<Stats, String> {
    let maps = fs::read_to_string(format!("/proc/{pid}/maps")).map_err(|e| format!("its maps: {e}"))?;
    // A library's first mapping begins at its load address.
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

fn segment_offset() -> u64 {
    let output = Command::new("nm").args(["-D", "--defined-only"]).arg(library()).output();
    let output = output.unwrap_or_else(|e| panic!("nm: {e}; install the Debian package binutils"));
    let text = String::from_utf8_lossy(&output.stdout);
    let line = text.lines().find(|line| line.split_whitespace().nth(2) == Some("craton_segment"));
    let value = line.and_then(|line| u64::from_str_radix(line.split_whitespace().next()?, 16).ok());
    value.unwrap_or_else(|| panic!("{} exports no craton_segment:\n{text}", library().display()))
}
