//! The processes that are watched: their numbers now and over time.
//!
//! **State.** [`Sampler`], one thread, reads the processes and writes [`Processes`]; requests read
//! it. An ended process stays, with its last numbers, until [`MOST_ENDED`] others have ended.
//!
//! **Cost.** The page of statistics of each process each period: microseconds. The ledger takes
//! longer in a large heap; then the period grows, so that all reading stays below [`SHARE`] of a
//! processor.

use crate::history::{History, MOST};
use crate::moments::Moments;
use craton_inspect::{Ledger, Published, Watch, is_running, on_craton};
use rustix::time::{ClockId, clock_gettime};
use std::collections::BTreeMap;
use std::fs;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

/// One part in 40: 2.5 %.
const SHARE: u32 = 40;
/// Ended processes that stay: the last ones whatever their size, then the largest.
const MOST_ENDED: usize = 32;
const LAST_ENDED: usize = 16;
const MOST_COMMAND: usize = 400;
/// Between two looks for new processes, and two of one's heap profile.
const LOOK: Duration = Duration::from_secs(3);
const PROFILE: Duration = Duration::from_secs(2);

/// Of [`Published`], over time.
pub const COUNTERS: [&str; 9] = [
    "heap_in_use_bytes",
    "heap_backed_bytes",
    "released_bytes",
    "refills",
    "large_allocs",
    "huge_allocs",
    "whole_hugepages",
    "broken_hugepages",
    "coverage_percent",
];

#[derive(Clone, Debug)]
pub struct Point {
    pub rss_bytes: u64,
    pub pss_bytes: u64,
    /// By [`Ledger::ROWS`].
    pub rows: [u64; Ledger::ROWS.len()],
    pub counters: [u64; COUNTERS.len()],
}

/// An answer that takes time, kept for a while.
pub type Kept = Arc<Mutex<BTreeMap<String, (Instant, Duration, Arc<str>)>>>;

#[derive(Clone, Debug)]
pub struct Process {
    pub pid: u32,
    /// With its arguments.
    pub command: String,
    pub watch: Option<Arc<Watch>>,
    /// Why there is no `watch`.
    pub ended: Option<String>,
    pub page: Published,
    pub threads: u64,
    /// Milliseconds since 1970.
    pub at_ms: u64,
    /// The most of all reads.
    pub peak_rss_bytes: u64,
    pub ledger: Arc<Ledger>,
    pub history: Arc<Mutex<History<Point>>>,
    pub moments: Arc<Mutex<Moments>>,
    pub kept: Kept,
}

#[derive(Debug, Default)]
pub struct Processes {
    /// The ended ones in the order of their ends.
    all: Mutex<Vec<Process>>,
    /// On Craton, as it seems, and why they cannot be read.
    unreadable: Mutex<BTreeMap<u32, String>>,
}

/// A thread that died while it held the lock left whole values.
pub fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
}

pub fn now_ms() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_millis() as u64)
}

impl Processes {
    /// Running ones first; of both the largest first.
    pub fn all(&self) -> Vec<Process> {
        let mut all = lock(&self.all).clone();
        all.sort_by_key(|p| (p.ended.is_some(), std::cmp::Reverse(p.ledger.rss_bytes)));
        all
    }

    /// Of several with the number, the running or last one.
    pub fn find(&self, pid: u32) -> Option<Process> {
        let all = lock(&self.all);
        let of_number = |p: &&Process| p.pid == pid;
        all.iter().rfind(|p| p.pid == pid && p.ended.is_none()).or(all.iter().rfind(of_number)).cloned()
    }

    pub fn unreadable(&self) -> BTreeMap<u32, String> {
        lock(&self.unreadable).clone()
    }
}

/// The next reads.
#[derive(Debug)]
struct Plan {
    ledger: Instant,
    profile: Instant,
}

#[derive(Debug)]
pub struct Sampler {
    processes: Arc<Processes>,
    /// Empty: all that are found.
    pids: Vec<u32>,
    every: Duration,
    look: Instant,
    plans: BTreeMap<u32, Plan>,
}

impl Sampler {
    /// # Errors
    /// One of `pids` cannot be read.
    pub fn new(processes: Arc<Processes>, pids: Vec<u32>, every: Duration) -> Result<Self, String> {
        let mut this = Self { processes, pids, every, look: Instant::now(), plans: BTreeMap::new() };
        for pid in this.pids.clone() {
            this.open(pid)?;
        }
        this.tick();
        Ok(this)
    }

    pub fn tick(&mut self) {
        if Instant::now() >= self.look {
            let (pids, cost) = timed(|| if self.pids.is_empty() { on_craton() } else { self.pids.clone() });
            self.open_new(&pids);
            // What opening cost delays the opened process's next ledger, not the look for others.
            self.look = Instant::now() + LOOK.max(cost * SHARE);
        }
        let running = lock(&self.processes.all).iter().filter(|p| p.ended.is_none()).count() as u32;
        for process in self.processes.all().into_iter().filter(|p| p.ended.is_none()) {
            self.sample(process, running);
        }
    }

    fn open_new(&mut self, pids: &[u32]) {
        let known: Vec<u32> = lock(&self.processes.all).iter().filter(|p| p.ended.is_none()).map(|p| p.pid).collect();
        let mut unreadable = BTreeMap::new();
        for pid in pids.iter().filter(|pid| !known.contains(pid) && is_running(**pid)) {
            if let Err(why) = self.open(*pid) {
                unreadable.insert(*pid, why);
            }
        }
        *lock(&self.processes.unreadable) = unreadable;
    }

    fn open(&mut self, pid: u32) -> Result<(), String> {
        let watch = Watch::open(pid)?;
        let page = watch.page()?;
        // Its tables may change while they are read.
        let (ledger, cost) = timed(|| watch.ledger().or_else(|_| watch.ledger()));
        let mut process = Process {
            pid,
            command: command(pid),
            watch: Some(Arc::new(watch)),
            ended: None,
            page,
            threads: threads(pid),
            at_ms: now_ms(),
            peak_rss_bytes: 0,
            ledger: Arc::new(ledger?),
            history: Arc::new(Mutex::new(History::new(MOST))),
            moments: Arc::default(),
            kept: Kept::default(),
        };
        process.record();
        self.plans.insert(pid, Plan { ledger: Instant::now() + self.every.max(cost * SHARE), profile: Instant::now() });
        lock(&self.processes.all).push(process);
        Ok(())
    }

    fn sample(&mut self, mut process: Process, running: u32) {
        let (Some(watch), Some(plan)) = (process.watch.clone(), self.plans.get_mut(&process.pid)) else { return };
        match watch.page() {
            Ok(page) => process.page = page,
            Err(why) => return self.end(&process, why),
        }
        let now = Instant::now();
        if now >= plan.ledger {
            let (ledger, cost) = timed(|| watch.ledger());
            if let Ok(ledger) = ledger {
                process.ledger = Arc::new(ledger);
                process.at_ms = now_ms();
                process.threads = threads(process.pid);
                process.record();
            }
            plan.ledger = now + self.every.max(cost * SHARE * running);
        }
        if now >= plan.profile {
            let (_, cost) = timed(|| process.moments.try_lock().map(|mut moments| moments.look(&watch)));
            plan.profile = now + PROFILE.max(cost * SHARE * running);
        }
        let mut all = lock(&self.processes.all);
        if let Some(place) = all.iter_mut().find(|p| p.pid == process.pid && p.ended.is_none()) {
            *place = process;
        }
    }

    fn end(&mut self, process: &Process, why: String) {
        self.plans.remove(&process.pid);
        let mut all = lock(&self.processes.all);
        let Some(place) = all.iter().position(|p| p.pid == process.pid && p.ended.is_none()) else { return };
        let mut ended = all.remove(place);
        (ended.watch, ended.ended) = (None, Some(why));
        all.push(ended);
        drop_surplus(&mut all);
    }
}

/// Removes the smallest of the older ended ones if there are too many.
fn drop_surplus(all: &mut Vec<Process>) {
    let ended: Vec<usize> = (0..all.len()).filter(|i| all[*i].ended.is_some()).collect();
    if ended.len() > MOST_ENDED
        && let Some(smallest) = ended[..ended.len() - LAST_ENDED].iter().min_by_key(|i| all[**i].peak_rss_bytes)
    {
        all.remove(*smallest);
    }
}

impl Process {
    fn record(&mut self) {
        let rows = Ledger::ROWS.map(|name| self.ledger.value(name).unwrap_or(0));
        let counters = COUNTERS.map(|name| self.page.number(name));
        let (rss_bytes, pss_bytes) = (self.ledger.rss_bytes, self.ledger.pss_bytes);
        self.peak_rss_bytes = self.peak_rss_bytes.max(rss_bytes);
        lock(&self.history).push(self.at_ms, Point { rss_bytes, pss_bytes, rows, counters });
    }
}

/// By this thread's processor time.
fn timed<T>(act: impl FnOnce() -> T) -> (T, Duration) {
    let now = || {
        let time = clock_gettime(ClockId::ThreadCPUTime);
        Duration::new(time.tv_sec as u64, time.tv_nsec as u32)
    };
    let before = now();
    let done = act();
    (done, now().saturating_sub(before))
}

fn command(pid: u32) -> String {
    let bytes = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
    let words: Vec<String> = bytes
        .split(|b| *b == 0)
        .filter(|word| !word.is_empty())
        .map(|w| String::from_utf8_lossy(w).into_owned())
        .collect();
    let text: String = words.join(" ").chars().map(|c| if c.is_control() { ' ' } else { c }).collect();
    match text.char_indices().nth(MOST_COMMAND) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text,
    }
}

/// 0 if the process has ended.
fn threads(pid: u32) -> u64 {
    let text = fs::read(format!("/proc/{pid}/status")).unwrap_or_default();
    let text = String::from_utf8_lossy(&text);
    let value = text.lines().find_map(|line| line.strip_prefix("Threads:"));
    value.and_then(|value| value.trim().parse().ok()).unwrap_or(0)
}

#[cfg(test)]
mod tests;
