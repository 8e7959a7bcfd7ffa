//! Functions of code that a run time made: Python's, Node's and Java's.
//!
//! **What.** A run time that is asked to (`python -X perf`, `node --perf-basic-prof`, a JVM's
//! agent) writes `/tmp/perf-PID.map`: start, length and name of each function, in hexadecimal. A
//! later line replaces earlier ones in its range, since code moves.
//!
//! **Failure.** Lines of another form are skipped. A file from before a process of the same number
//! gives wrong names.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

/// Larger files are not read.
const MOST_BYTES: u64 = 1 << 30;

#[derive(Clone, Debug, Default)]
pub struct PerfMap {
    /// By start: the end, and the name.
    functions: BTreeMap<u64, (u64, String)>,
}

/// A name with the place in the source that it contains.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Named {
    pub function: String,
    pub file: Option<String>,
    pub line: Option<u32>,
}

impl PerfMap {
    /// Of a process that runs, perhaps in a container, or of one that ran here.
    pub fn of(pid: u64) -> Self {
        let status = crate::live::text(&format!("/proc/{pid}/status")).unwrap_or_default();
        let inner = status.lines().find_map(|line| line.strip_prefix("NSpid:")?.split_whitespace().last());
        let inner = inner.map_or_else(|| pid.to_string(), str::to_owned);
        let paths = [format!("/proc/{pid}/root/tmp/perf-{inner}.map"), format!("/tmp/perf-{pid}.map")];
        let text = paths.iter().find_map(|path| read(Path::new(path)));
        text.map_or_else(Self::default, |text| Self::parse(&text))
    }

    pub fn parse(text: &str) -> Self {
        let mut this = Self::default();
        for line in text.lines() {
            let mut parts = line.splitn(3, ' ');
            let mut number = || u64::from_str_radix(parts.next()?.trim_start_matches("0x"), 16).ok();
            if let (Some(start), Some(len)) = (number(), number())
                && let Some(name) = parts.next().filter(|name| !name.is_empty())
                && let Some(end) = start.checked_add(len).filter(|end| *end > start)
            {
                this.replace(start, end, name);
            }
        }
        this
    }

    fn replace(&mut self, start: u64, end: u64, name: &str) {
        if let Some((_, (before, _))) = self.functions.range_mut(..start).next_back() {
            *before = start.min(*before);
        }
        while let Some((&old, _)) = self.functions.range(start..end).next() {
            self.functions.remove(&old);
        }
        self.functions.insert(start, (end, name.to_owned()));
    }

    pub(crate) fn find(&self, at: u64) -> Option<Named> {
        let (_, (end, name)) = self.functions.range(..=at).next_back()?;
        (at < *end).then(|| Named::of(name))
    }
}

fn read(path: &Path) -> Option<String> {
    let is_small = fs::metadata(path).is_ok_and(|file| file.is_file() && file.len() <= MOST_BYTES);
    let bytes = is_small.then(|| fs::read(path).ok()).flatten()?;
    Some(String::from_utf8_lossy(&bytes).into_owned())
}

impl Named {
    /// `py::NAME:FILE`, or Node's `KIND:~NAME FILE:LINE:COLUMN`; others as they are.
    fn of(name: &str) -> Self {
        let python = || {
            let (function, file) = name.strip_prefix("py::")?.split_once(':')?;
            Some(Self { function: function.to_owned(), file: Some(file.to_owned()), line: None })
        };
        let node = || {
            let (_, rest) = name.split_once(':')?;
            let mut parts = rest.trim_start_matches(['*', '~', '^', '+', '`']).rsplitn(3, ':');
            let (column, line, rest) = (parts.next()?, parts.next()?, parts.next()?);
            let (function, file) = rest.rsplit_once(' ')?;
            let _: u32 = column.parse().ok()?;
            let function = if function.is_empty() { "(anonymous)" } else { function };
            let file = file.strip_prefix("file://").unwrap_or(file).to_owned();
            Some(Self { function: function.to_owned(), file: Some(file), line: Some(line.parse().ok()?) })
        };
        python().or_else(node).unwrap_or_else(|| Self { function: name.to_owned(), ..Self::default() })
    }
}

#[cfg(test)]
mod tests;
