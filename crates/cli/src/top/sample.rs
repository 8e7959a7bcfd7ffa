//! What `craton top` reads.

use craton_inspect::{Ledger, Published, Watch, is_running, ledger, on_craton};
use std::fs;
use std::time::Instant;

pub enum Samples {
    One(u32, Watch),
    All(Vec<(u32, Watch)>),
}

pub enum Sample {
    One(Box<One>),
    All { at: Instant, all: Vec<Process> },
}

pub struct One {
    pub at: Instant,
    pub page: Published,
    pub ledger: Ledger,
    pub threads: u64,
}

pub struct Process {
    pub page: Published,
    pub rss_bytes: u64,
}

impl Samples {
    /// # Errors
    /// The process has ended, or cannot be read any more.
    pub fn take(&mut self) -> Result<Sample, String> {
        let at = Instant::now();
        match self {
            Self::One(pid, watch) => {
                let page = watch.page()?;
                let threads = status(*pid, "Threads");
                // Its tables may change while they are read.
                let ledger = ledger(*pid).or_else(|why| if is_running(*pid) { ledger(*pid) } else { Err(why) })?;
                Ok(Sample::One(Box::new(One { at, page, ledger, threads })))
            }
            Self::All(known) => {
                let pids = on_craton();
                known.retain(|(pid, watch)| pids.contains(pid) && watch.page().is_ok());
                let new = pids.iter().filter(|pid| !known.iter().any(|(known, _)| known == *pid));
                // Processes without a request are read later; forbidden ones never.
                let new: Vec<_> = new.filter_map(|pid| Some((*pid, Watch::open(*pid).ok()?))).collect();
                known.extend(new);
                let process = |(pid, watch): &(u32, Watch)| {
                    Some(Process { page: watch.page().ok()?, rss_bytes: status(*pid, "VmRSS") << 10 })
                };
                Ok(Sample::All { at, all: known.iter().filter_map(process).collect() })
            }
        }
    }
}

/// 0 if the process has ended.
fn status(pid: u32, key: &str) -> u64 {
    let text = fs::read(format!("/proc/{pid}/status")).unwrap_or_default();
    let text = String::from_utf8_lossy(&text);
    let value = text.lines().find_map(|line| line.strip_prefix(key)?.strip_prefix(':'));
    value.and_then(|value| value.split_whitespace().next()?.parse().ok()).unwrap_or(0)
}
