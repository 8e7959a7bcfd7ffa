//! Proof of which library served a command's malloc.
//!
//! **What.** With `LD_DEBUG=bindings` the dynamic linker writes each process's bindings, in a
//! warm-up. A program without a binding to the library is static, set-uid, or empties its
//! environment. A served shell may start an unserved program: samples ([`Watch`]) show whether the
//! largest process had mapped the library.

use crate::scratch::Scratch;
use crate::symbols;
use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::fs;
use std::path::Path;

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Service {
    pub processes: usize,
    /// By module of `malloc`.
    pub by: BTreeMap<String, usize>,
    pub largest_without: Option<String>,
}

impl Service {
    pub fn served_by(&self, library: &Path) -> usize {
        let same = |object: &str| {
            let object = Path::new(object);
            object == library
                || (library.parent() == Some(Path::new(""))
                    && object.file_name() == library.file_name().map(OsStr::new))
        };
        self.by.iter().filter(|(object, _)| same(object)).map(|(_, processes)| *processes).max().unwrap_or(0)
    }

    pub fn mainly(&self) -> Option<&str> {
        self.by.iter().max_by_key(|(_, processes)| **processes).map(|(object, _)| object.as_str())
    }

    fn add(&mut self, report: &str) {
        self.processes += 1;
        let mut objects: Vec<&str> = report.lines().filter_map(server).collect();
        objects.sort_unstable();
        objects.dedup();
        // A symbol bound to a program's stub reaches the stub's function, on another line.
        let defines = |object: &&str| {
            let file = symbols::program(OsStr::new(object));
            file.and_then(|file| symbols::defines(&file, "malloc")) != Some(false)
        };
        for object in objects.into_iter().filter(defines) {
            *self.by.entry(object.to_owned()).or_default() += 1;
        }
    }
}

#[derive(Clone, Debug)]
pub struct Watch {
    library: String,
    seen: BTreeMap<u32, Seen>,
}

#[derive(Clone, Debug, Default)]
struct Seen {
    largest_bytes: u64,
    name: String,
    mapped: bool,
    /// One does not count: it may precede `exec`.
    samples: u32,
}

impl Watch {
    pub fn new(library: &Path) -> Self {
        // Maps have the canonical file, which libx.so.4 often links to.
        let file = fs::canonicalize(library).unwrap_or_else(|_| library.to_owned());
        Self { library: file.to_string_lossy().into_owned(), seen: BTreeMap::new() }
    }

    pub fn observe(&mut self, pid: u32, rss_bytes: u64) {
        // Before its exec, a child of the launcher is a copy of us.
        if fs::read_link(format!("/proc/{pid}/exe")).ok() == fs::read_link("/proc/self/exe").ok() {
            return;
        }
        // Names of files and programs may hold any bytes.
        let text = |name: &str| fs::read(format!("/proc/{pid}/{name}")).unwrap_or_default();
        let lossy = |name: &str| String::from_utf8_lossy(&text(name)).into_owned();
        let maps = lossy("maps");
        // Maps count only after the dynamic linker's work; a static program has none.
        let prepared = maps.contains("/libc.so") || fs::read(format!("/proc/{pid}/auxv")).is_ok_and(|a| is_static(&a));
        if prepared && fs::read_link(format!("/proc/{pid}/exe")).is_ok() {
            self.record(pid, rss_bytes, &maps, || lossy("comm"));
        }
    }

    fn record(&mut self, pid: u32, rss_bytes: u64, maps: &str, name: impl FnOnce() -> String) {
        let seen = self.seen.entry(pid).or_default();
        let mapped = match self.library.contains('/') {
            true => maps.lines().any(|line| line.ends_with(&self.library)),
            // Perhaps a link.
            false => maps.contains(&format!("/{}", self.library)),
        };
        let samples = if mapped == seen.mapped { seen.samples + 1 } else { 1 };
        if rss_bytes >= seen.largest_bytes || mapped != seen.mapped {
            *seen = Seen { largest_bytes: rss_bytes, name: name().trim_end().to_owned(), mapped, samples };
        }
        seen.samples = samples;
    }

    pub fn largest_without(&self) -> Option<String> {
        let largest = self.seen.values().filter(|seen| seen.samples > 1).max_by_key(|seen| seen.largest_bytes)?;
        (!largest.mapped).then(|| largest.name.clone())
    }
}

/// Its auxiliary vector has an entry point, but no interpreter's base.
fn is_static(vector: &[u8]) -> bool {
    const BASE: u64 = 7;
    const ENTRY: u64 = 9;
    let value = |wanted: u64| {
        let number = |word: &[u8]| u64::from_ne_bytes(word.try_into().unwrap_or_default());
        let pair = vector.chunks_exact(16).find(|pair| number(&pair[..8]) == wanted)?;
        Some(number(&pair[8..])).filter(|value| *value != 0)
    };
    value(ENTRY).is_some() && value(BASE).is_none()
}

/// Of ``binding file PROGRAM [0] to OBJECT [0]: normal symbol `malloc' [VERSION]``.
fn server(line: &str) -> Option<&str> {
    let (files, symbol) = line.split_once(": normal symbol `")?;
    let (_, to) = files.split_once("binding file ")?.1.rsplit_once("] to ")?;
    (symbol.split('\'').next() == Some("malloc")).then(|| to.rsplit_once(" [").map_or(to, |(object, _)| object))
}

pub struct Directory(Scratch);

const REPORT: &str = "bindings";

impl Directory {
    pub fn new() -> Result<Self, String> {
        Scratch::new("the proof of service").map(Self)
    }

    pub fn variables(&self) -> [(OsString, OsString); 2] {
        [
            ("LD_DEBUG".into(), "bindings".into()),
            ("LD_DEBUG_OUTPUT".into(), self.0.path().join(REPORT).into_os_string()),
        ]
    }

    pub fn read(&self) -> Service {
        let mut service = Service::default();
        for entry in fs::read_dir(self.0.path()).into_iter().flatten().flatten() {
            if let Ok(report) = fs::read(entry.path()) {
                service.add(&String::from_utf8_lossy(&report));
            }
        }
        service
    }
}

#[cfg(test)]
mod tests;
