//! A profile's stacks by function and line, and their difference to an earlier profile.

use crate::call::Call;
use crate::lines::{Frame, Lines};
use crate::profile::{Count, Profile, Site};
use serde::Serialize;
use std::collections::BTreeMap;

/// A count of each stack.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Measure {
    Live,
    Peak,
    Total,
    Short,
    Captive,
}

impl Measure {
    /// As on the command line; empty for the default.
    pub fn option(self) -> &'static str {
        match self {
            Self::Live => "",
            Self::Peak => "peak",
            Self::Total => "total",
            Self::Short => "short",
            Self::Captive => "captive",
        }
    }

    pub fn name(self) -> &'static str {
        match self {
            Self::Live => "live",
            Self::Peak => "at the peak",
            Self::Total => "allocated",
            Self::Short => "short-lived",
            Self::Captive => "captive",
        }
    }
}

/// Bytes and objects; below 0 in a difference.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Sum {
    pub bytes: i64,
    pub objects: i64,
}

impl Sum {
    pub fn add(&mut self, other: Self) {
        self.bytes += other.bytes;
        self.objects += other.objects;
    }

    fn less(self, other: Self) -> Self {
        Self { bytes: self.bytes - other.bytes, objects: self.objects - other.objects }
    }
}

impl From<Count> for Sum {
    fn from(count: Count) -> Self {
        Self { bytes: count.bytes as i64, objects: count.objects as i64 }
    }
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Sums {
    pub live: Sum,
    pub peak: Sum,
    pub total: Sum,
    pub short: Sum,
    pub captive: Sum,
}

impl Sums {
    pub fn of(site: &Site) -> Self {
        Self {
            live: site.live.into(),
            peak: site.peak.into(),
            total: site.total.into(),
            short: site.short.into(),
            captive: site.captive.into(),
        }
    }

    pub fn get(&self, measure: Measure) -> Sum {
        match measure {
            Measure::Live => self.live,
            Measure::Peak => self.peak,
            Measure::Total => self.total,
            Measure::Short => self.short,
            Measure::Captive => self.captive,
        }
    }

    fn each(&mut self, other: Self, act: impl Fn(Sum, Sum) -> Sum) {
        self.live = act(self.live, other.live);
        self.peak = act(self.peak, other.peak);
        self.total = act(self.total, other.total);
        self.short = act(self.short, other.short);
        self.captive = act(self.captive, other.captive);
    }
}

#[derive(Clone, Debug, Default, Serialize)]
pub struct Stack {
    /// Innermost first.
    pub calls: Vec<Call>,
    #[serde(flatten)]
    pub sums: Sums,
}

impl Stack {
    /// The innermost call outside of the language's library.
    pub fn owner(&self) -> Option<&Call> {
        self.calls.iter().find(|call| !call.is_of_language()).or(self.calls.first())
    }
}

#[derive(Clone, Debug, Default)]
pub struct Stacks(pub Vec<Stack>);

/// The document's row.
#[derive(Debug, Serialize)]
pub struct Row<'a> {
    name: &'a str,
    pid: u64,
    interval_bytes: u64,
    samples: u64,
    live_samples: u64,
    dropped_samples: u64,
    misses_small: bool,
    /// Of the live objects, those that `debug=audit` knows.
    exact: Sum,
    sum: Sums,
    stacks: &'a [Stack],
}

/// Of return addresses, innermost first, without the allocator's.
pub fn calls(stack: &[u64], lines: &mut Lines<'_>) -> Vec<Call> {
    let frames: Vec<Frame> = stack.iter().flat_map(|pc| lines.frames(*pc).to_vec()).collect();
    Call::outside(&frames)
}

impl Stacks {
    pub fn of(profile: &Profile, lines: &mut Lines<'_>) -> Self {
        let stack = |site: &Site| Stack { calls: calls(&site.stack, lines), sums: Sums::of(site) };
        Self::joined(profile.sites.iter().map(stack))
    }

    /// Those with the same calls as one.
    pub fn joined(stacks: impl Iterator<Item = Stack>) -> Self {
        let mut all: BTreeMap<Vec<Call>, Sums> = BTreeMap::new();
        for stack in stacks {
            all.entry(stack.calls).or_default().each(stack.sums, |mut sum, more| {
                sum.add(more);
                sum
            });
        }
        Self::from_map(all)
    }

    fn from_map(all: BTreeMap<Vec<Call>, Sums>) -> Self {
        Self(all.into_iter().map(|(calls, sums)| Stack { calls, sums }).collect())
    }

    /// The difference to an earlier profile.
    pub fn since(self, old: &Self) -> Self {
        let mut all: BTreeMap<Vec<Call>, Sums> = self.0.into_iter().map(|stack| (stack.calls, stack.sums)).collect();
        for Stack { calls, sums } in &old.0 {
            all.entry(calls.clone()).or_default().each(*sums, Sum::less);
        }
        all.retain(|_, sums| *sums != Sums::default());
        Self::from_map(all)
    }

    pub fn sum(&self) -> Sums {
        self.0.iter().fold(Sums::default(), |mut sums, stack| {
            sums.each(stack.sums, |mut sum, more| {
                sum.add(more);
                sum
            });
            sums
        })
    }

    /// A line a stack, outermost first, as flame graphs take them; what shrank is left out.
    pub fn folded(&self, measure: Measure) -> String {
        let line = |stack: &Stack| {
            let bytes = stack.sums.get(measure).bytes;
            let name = |call: &Call| call.function.replace(';', ",");
            let names: Vec<String> = stack.calls.iter().rev().map(name).collect();
            let names = if names.is_empty() { "unknown".to_owned() } else { names.join(";") };
            (bytes > 0).then(|| format!("{names} {bytes}\n"))
        };
        self.0.iter().filter_map(line).collect()
    }

    pub fn row<'a>(&'a self, profile: &'a Profile) -> Row<'a> {
        Row {
            name: &profile.name,
            pid: profile.pid,
            interval_bytes: profile.interval,
            samples: profile.samples,
            live_samples: profile.live_samples,
            dropped_samples: profile.dropped,
            misses_small: profile.misses_small,
            exact: profile.exact.into(),
            sum: self.sum(),
            stacks: &self.0,
        }
    }
}

#[cfg(test)]
mod tests;
