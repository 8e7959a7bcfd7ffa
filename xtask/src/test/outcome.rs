//! Reads a test program's output.

use std::time::Duration;

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    pub passed: u64,
    pub failed: u64,
    pub ignored: u64,
}

impl Counts {
    pub fn read(output: &str) -> Option<Self> {
        let results = output.lines().filter_map(|line| line.strip_prefix("test result: "));
        results.map(Self::from_result).reduce(Self::plus)
    }

    fn from_result(text: &str) -> Self {
        let number = |name: &str| {
            let parts = text.split([';', '.']).map(str::trim);
            parts.filter_map(|part| part.strip_suffix(name)).find_map(|n| n.trim().parse().ok()).unwrap_or(0)
        };
        Self { passed: number("passed"), failed: number("failed"), ignored: number("ignored") }
    }

    pub fn plus(self, other: Self) -> Self {
        Self {
            passed: self.passed + other.passed,
            failed: self.failed + other.failed,
            ignored: self.ignored + other.ignored,
        }
    }
}

pub fn ended_test(line: &str) -> Option<&str> {
    let (name, how) = line.strip_prefix("test ")?.rsplit_once(" ... ")?;
    let ended = how == "ok" || how == "FAILED" || how.starts_with("ignored");
    ended.then(|| name.strip_suffix(" - should panic").unwrap_or(name))
}

/// The harness starts the first `threads` by name at once, then one at each end.
pub fn durations(ends: &[(String, Duration)], threads: usize) -> Vec<(String, Duration)> {
    let mut names: Vec<&str> = ends.iter().map(|(name, _)| name.as_str()).collect();
    names.sort_unstable();
    let mut moments: Vec<Duration> = ends.iter().map(|(_, end)| *end).collect();
    moments.sort_unstable();
    let started = |name: &str| {
        let place = names.binary_search(&name).unwrap_or(0);
        place.checked_sub(threads).map_or(Duration::ZERO, |earlier| moments[earlier])
    };
    ends.iter().map(|(name, end)| (name.clone(), end.saturating_sub(started(name)))).collect()
}

#[cfg(test)]
mod tests;
