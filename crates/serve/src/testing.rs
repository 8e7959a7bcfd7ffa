//! Processes for tests.

use crate::history::History;
use crate::processes::{Kept, Process};
use craton_inspect::{Ledger, Published, Row};
use std::sync::{Arc, Mutex};

/// Each row of the ledger has 1 MiB.
pub fn process(pid: u32, exe: &str) -> Process {
    let mut page = vec![0; 4096];
    page[..16].copy_from_slice(b"\0CRATON1\x01\0\0\0\0\0\0\0");
    page[1024 + 24..][..exe.len()].copy_from_slice(exe.as_bytes());
    let row = |name: &&'static str| Row { name, bytes: 1 << 20, text: "" };
    let (heap, rest) = Ledger::ROWS.split_at(13);
    let ledger = Ledger {
        pid,
        rss_bytes: 20 << 20,
        pss_bytes: 20 << 20,
        swap_bytes: 0,
        heap_bytes: 13 << 20,
        region_rss_bytes: 0,
        heap: heap.iter().map(row).collect(),
        rest: rest.iter().map(row).collect(),
        classes: Vec::new(),
    };
    Process {
        pid,
        command: exe.to_owned(),
        watch: None,
        ended: None,
        page: Published::parse(&page).unwrap(),
        threads: 1,
        at_ms: 1,
        peak_rss_bytes: 20 << 20,
        ledger: Arc::new(ledger),
        history: Arc::new(Mutex::new(History::new(2))),
        moments: Arc::default(),
        kept: Kept::default(),
    }
}
