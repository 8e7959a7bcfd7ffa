//! What `craton top` reads.

use super::holders::Holders;
use craton_inspect::{Ledger, Published, Watch, is_running, ledger, on_craton};
use std::fs;
use std::time::Instant;

pub enum Samples {
    One(Box<Watched>),
    All(Vec<(u32, Watch)>),
}

pub struct Watched {
    pid: u32,
    watch: Watch,
    /// While they are shown.
    holders: Option<Holders>,
}

pub enum Sample {
    One(Box<One>),
    All { at: Instant, all: Vec<Process> },
}

pub struct One {
    pub at: Instant,
    /// As here; in its PID namespace the process can have another number.
    pub pid: u32,
    pub page: Published,
    pub ledger: Ledger,
    pub threads: u64,
    /// Lines instead of size classes.
    pub holders: Option<Vec<String>>,
}

pub struct Process {
    /// As here.
    pub pid: u32,
    pub page: Published,
    pub rss_bytes: u64,
}

impl Samples {
    /// # Errors
    /// As [`Watch::open`].
    pub fn of(pid: u32) -> Result<Self, String> {
        Ok(Self::One(Box::new(Watched { pid, watch: Watch::open(pid)?, holders: None })))
    }

    /// Shows who holds the memory, or the size classes again.
    pub fn turn(&mut self) {
        if let Self::One(one) = self {
            one.holders = if one.holders.is_none() { Some(Holders::default()) } else { None };
        }
    }

    /// # Errors
    /// The process has ended, or cannot be read any more.
    pub fn take(&mut self) -> Result<Sample, String> {
        let at = Instant::now();
        match self {
            Self::One(one) => {
                let Watched { pid, watch, holders } = &mut **one;
                let pid = *pid;
                let page = watch.page()?;
                let threads = status(pid, "Threads");
                // Its tables may change while they are read.
                let ledger = ledger(pid).or_else(|why| if is_running(pid) { ledger(pid) } else { Err(why) })?;
                let holders = holders.as_mut().map(|holders| holders.lines(pid, watch));
                Ok(Sample::One(Box::new(One { at, pid, page, ledger, threads, holders })))
            }
            Self::All(known) => {
                let pids = on_craton();
                known.retain(|(pid, watch)| pids.contains(pid) && watch.page().is_ok());
                let new = pids.iter().filter(|pid| !known.iter().any(|(known, _)| known == *pid));
                // Processes without a request are read later; forbidden ones never.
                let new: Vec<_> = new.filter_map(|pid| Some((*pid, Watch::open(*pid).ok()?))).collect();
                known.extend(new);
                let process = |(pid, watch): &(u32, Watch)| {
                    let rss_bytes = status(*pid, "VmRSS") << 10;
                    Some(Process { pid: *pid, page: watch.page().ok()?, rss_bytes })
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
