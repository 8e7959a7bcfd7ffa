//! The effect of each event on simulated memory.

use super::history::History;
use super::image::{Event, Moment, PAGE_BYTES};
use super::trace::{Latency, Trace};
use crate::FaultRule;
use craton_base::LINE_BYTES;
use std::collections::HashMap;
use std::ops::Range;
use std::sync::Arc;
use std::thread::ThreadId;

/// Under the medium's lock.
pub(super) struct State {
    pub(super) now: Moment,
    pub(super) moments: Option<Vec<Moment>>,
    pub(super) stop: Option<u64>,
    pub(super) stopped: Option<Moment>,
    covered: HashMap<ThreadId, Vec<u64>>,
    pub(super) rules: [(FaultRule, u64); Fallible::COUNT],
    pub(super) trace: Trace,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Fallible {
    /// Counted, without effect, as if the heap forgot it.
    Flush,
    Fence,
    /// Refused, without change.
    Resize,
    Discard,
    Allocate,
}

impl Fallible {
    const COUNT: usize = 5;
}

impl State {
    pub(super) fn new(now: Moment) -> Self {
        Self {
            now,
            moments: None,
            stop: None,
            stopped: None,
            covered: HashMap::new(),
            rules: Default::default(),
            trace: Trace::new(Latency::PAPER),
        }
    }

    pub(super) fn fails(&mut self, event: Fallible) -> bool {
        let (rule, count) = &mut self.rules[event as usize];
        *count += 1;
        rule.names(*count)
    }

    pub(super) fn end(&mut self, event: Event) {
        self.now.step += 1;
        self.now.event = Some(event);
        if let Some(moments) = &mut self.moments {
            moments.push(self.now.clone());
        }
        if self.stop == Some(self.now.step) {
            self.stopped = Some(self.now.clone());
        }
    }

    pub(super) fn history(&mut self, line: u64) -> &mut History {
        let durable = self.now.durable.line(line);
        let unfenced = Arc::make_mut(&mut self.now.unfenced);
        Arc::make_mut(unfenced.entry(line).or_insert_with(|| Arc::new(History::new(durable))))
    }

    pub(super) fn cover(&mut self, thread: ThreadId, line: u64) {
        self.covered.entry(thread).or_default().push(line);
    }

    pub(super) fn fence(&mut self, thread: ThreadId) {
        let unfenced = Arc::make_mut(&mut self.now.unfenced);
        for line in self.covered.remove(&thread).unwrap_or_default() {
            let Some(history) = unfenced.get_mut(&line) else { continue };
            let history = Arc::make_mut(history);
            self.now.durable.set(line, history.fence(thread));
            if history.is_clean() {
                unfenced.remove(&line);
            }
        }
    }

    /// As a change of the file's size or blocks does.
    pub(super) fn settle_discards(&mut self, is_meant: impl Fn(&Range<u64>) -> bool) {
        let meant: Vec<_> = self.now.discarded.extract_if(.., |pages| is_meant(pages)).collect();
        for pages in meant {
            self.now.durable.clear(pages.clone());
            let page_lines = PAGE_BYTES / LINE_BYTES;
            let lines = pages.start * page_lines..pages.end.saturating_mul(page_lines);
            Arc::make_mut(&mut self.now.unfenced).retain(|line, _| !lines.contains(line));
        }
    }
}
