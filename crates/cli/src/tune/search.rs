//! All settings on one trace.

use craton_lab::replay::{HEAPS, HeapName, HugeBacking, Outcome, Policy, Trace, replay};
use serde::Serialize;
use std::cmp::Ordering;
use std::path::Path;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::thread;

/// The library's names of values.
const BACKINGS: [(&str, HugeBacking); 3] =
    [("auto", HugeBacking::AUTO), ("always", HugeBacking::ALWAYS), ("never", HugeBacking::NEVER)];
/// Released in a second, in MiB.
const RATES_MIB: [u64; 6] = [0, 4, 16, 64, 256, 1024];
/// The least change of coverage that counts, and of memory's ratio.
const POINT: f64 = 0.01;

/// A setting, and what its replay did.
#[derive(Clone, Debug)]
pub struct Tried {
    policy: Policy,
    pub outcome: Outcome,
}

#[derive(Serialize)]
pub struct Row {
    trace: String,
    options: String,
    /// The answer.
    best: bool,
    #[serde(flatten)]
    outcome: Outcome,
}

impl Tried {
    pub fn is_default(&self) -> bool {
        self.policy == Policy::default()
    }

    /// As in `CRATON_OPTIONS`: what differs from the default.
    pub fn options(&self) -> String {
        let (own, default) = (&self.policy, Policy::default());
        let heap = HEAPS.iter().find(|(_, heap)| *heap == own.heap && *heap != default.heap);
        let heap = heap.map(|(name, _)| format!("page_heap={name}"));
        let rate = (own.release_rate != default.release_rate).then(|| match own.release_rate >> 20 {
            0 => "release_rate=0".to_owned(),
            mib => format!("release_rate={mib}M"),
        });
        let backing = BACKINGS.iter().find(|(_, backing)| *backing == own.backing && *backing != default.backing);
        let backing = backing.map(|(name, _)| format!("thp={name}"));
        [heap, rate, backing].into_iter().flatten().collect::<Vec<_>>().join(",")
    }

    /// How many differ from the default's.
    fn settings(&self) -> usize {
        self.options().split(',').filter(|option| !option.is_empty()).count()
    }

    pub fn system_calls(&self) -> u64 {
        let calls = &self.outcome.calls;
        calls.reserve_calls + calls.back_calls + calls.unback_calls + calls.collapse_calls + calls.advise_calls
    }

    pub fn moments_below(&self, other: &Self) -> usize {
        let both = self.outcome.backed_over_time.iter().zip(&other.outcome.backed_over_time);
        both.filter(|(own, other)| own < other).count()
    }

    pub fn row(&self, trace: &Path, best: bool) -> Row {
        let options = if self.is_default() { "default".to_owned() } else { self.options() };
        Row { trace: trace.to_string_lossy().into_owned(), options, best, outcome: self.outcome.clone() }
    }

    fn coverage(&self) -> f64 {
        self.outcome.hugepage_coverage.unwrap_or(0.0)
    }

    /// Peak and steady memory, by the geometric mean of their ratios to the default's.
    fn memory(&self, default: &Self) -> f64 {
        let ratio = |own: u64, default: u64| own.max(1) as f64 / default.max(1) as f64;
        let (own, default) = (&self.outcome, &default.outcome);
        let peak = ratio(own.peak_backed_bytes, default.peak_backed_bytes);
        (peak * ratio(own.steady_backed_bytes, default.steady_backed_bytes)).sqrt()
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Goal {
    Rss,
    Coverage,
    Balanced,
}

impl Goal {
    /// Of the parser's names.
    pub fn parse(name: &str) -> Self {
        match name {
            "rss" => Self::Rss,
            "coverage" => Self::Coverage,
            _ => Self::Balanced,
        }
    }

    pub fn name(self) -> &'static str {
        match self {
            Self::Rss => "rss",
            Self::Coverage => "coverage",
            Self::Balanced => "balanced",
        }
    }

    /// The better one first. Among equals the one with fewer settings, then fewer system calls.
    pub fn compare(self, default: &Tried, a: &Tried, b: &Tried) -> Ordering {
        let memory = |tried: &Tried| tried.memory(default);
        let allowed = |tried: &Tried| {
            tried.coverage() + POINT >= default.coverage()
                && tried.system_calls() <= default.system_calls().max(1) * 5 / 4
        };
        let first = match self {
            Self::Rss => memory(a).total_cmp(&memory(b)),
            Self::Coverage => b.coverage().total_cmp(&a.coverage()).then(memory(a).total_cmp(&memory(b))),
            Self::Balanced => allowed(b).cmp(&allowed(a)).then(memory(a).total_cmp(&memory(b))),
        };
        first.then(a.settings().cmp(&b.settings())).then(a.system_calls().cmp(&b.system_calls()))
    }

    pub fn best(self, all: &[Tried]) -> &Tried {
        let default = default_of(all);
        let best = all.iter().min_by(|a, b| self.compare(default, a, b)).unwrap_or(default);
        let gains = match self {
            Self::Coverage => best.coverage() >= default.coverage() + POINT,
            Self::Rss | Self::Balanced => best.memory(default) <= 1.0 - POINT,
        };
        if gains { best } else { default }
    }
}

/// [`search`] tries it first.
pub fn default_of(all: &[Tried]) -> &Tried {
    &all[0]
}

fn policies() -> Vec<Policy> {
    let default = Policy::default();
    let mut all = vec![default];
    for (_, heap) in HEAPS {
        for rate in RATES_MIB {
            for (_, backing) in BACKINGS {
                let regions = heap == HeapName::Temeraire;
                let policy = Policy { heap, release_rate: rate << 20, backing, ..default };
                all.extend((policy != default).then_some(Policy { regions: regions && default.regions, ..policy }));
            }
        }
    }
    all
}

/// Replays on all processors; `each` is called after every replay, with the number of settings.
/// Error: the trace cannot be replayed.
pub fn search(trace: &Trace<'_>, each: impl Fn(usize) + Sync) -> Result<Vec<Tried>, String> {
    let policies = policies();
    let next = AtomicUsize::new(0);
    let done = Mutex::new(Vec::new());
    let work = || {
        while let Some(policy) = policies.get(next.fetch_add(1, Relaxed)) {
            let outcome = replay(trace, policy).map(|outcome| Tried { policy: *policy, outcome });
            done.lock().unwrap_or_else(|e| e.into_inner()).push(outcome);
            each(policies.len());
        }
    };
    let processors = thread::available_parallelism().map_or(1, usize::from);
    thread::scope(|scope| (0..processors).for_each(|_| drop(scope.spawn(work))));
    let mut all = done.into_inner().unwrap_or_else(|e| e.into_inner()).into_iter().collect::<Result<Vec<_>, _>>()?;
    let place = |tried: &Tried| policies.iter().position(|policy| *policy == tried.policy);
    all.sort_by_key(place);
    Ok(all)
}

#[cfg(test)]
mod tests;
