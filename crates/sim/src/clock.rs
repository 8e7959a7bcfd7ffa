//! A clock that the test advances.

use craton_base::Clock;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// Clones share the time.
#[derive(Clone, Debug, Default)]
pub struct VirtualClock {
    // Relaxed: it only grows, and guards nothing.
    now_ns: Arc<AtomicU64>,
}

impl VirtualClock {
    pub fn new(now_ns: u64) -> Self {
        Self { now_ns: Arc::new(AtomicU64::new(now_ns)) }
    }

    pub fn advance(&self, ns: u64) -> u64 {
        let before = self.now_ns.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |now| Some(now.saturating_add(ns)));
        before.unwrap_or_else(|now| now).saturating_add(ns)
    }
}

impl Clock for VirtualClock {
    fn now_ns(&self) -> u64 {
        self.now_ns.load(Ordering::Relaxed)
    }
}

#[cfg(test)]
mod tests;
