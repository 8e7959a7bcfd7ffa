//! One cache line: its durable content, and the stores that no fence covers yet.
//!
//! A thread's next fence makes durable the stores that it flushed. A crash leaves a prefix of the
//! stores; of a line store that comes next, any subset of the words (NVAlloc §2.1; write-combining
//! buffers drain in any order).

use craton_base::{LINE_WORDS, Line};
use std::collections::HashSet;
use std::thread::ThreadId;

#[derive(Clone, Debug)]
enum Store {
    Word(usize, u64),
    Line(Line),
}

impl Store {
    fn apply(&self, line: &mut Line) {
        match self {
            Self::Word(word, value) => line[*word] = *value,
            Self::Line(content) => *line = *content,
        }
    }

    /// With part of this store.
    fn outcomes(&self, before: &Line) -> Vec<Line> {
        match self {
            Self::Word(word, value) => {
                let mut line = *before;
                line[*word] = *value;
                vec![line]
            }
            Self::Line(content) => {
                let changed: Vec<_> = (0..LINE_WORDS).filter(|word| before[*word] != content[*word]).collect();
                let subset = |set: u32| {
                    let mut line = *before;
                    let chosen = changed.iter().enumerate().filter(|(bit, _)| set >> bit & 1 != 0);
                    chosen.for_each(|(_, word)| line[*word] = content[*word]);
                    line
                };
                (1..1 << changed.len()).map(subset).collect()
            }
        }
    }
}

#[derive(Clone, Debug)]
pub(super) struct History {
    durable: Line,
    stores: Vec<Store>,
    covered: Vec<(ThreadId, usize)>,
}

impl History {
    pub(super) fn new(durable: Line) -> Self {
        Self { durable, stores: Vec::new(), covered: Vec::new() }
    }

    pub(super) fn store(&mut self, word: usize, value: u64) {
        self.stores.push(Store::Word(word, value));
    }

    /// The thread's next fence covers it without a flush.
    pub(super) fn store_line(&mut self, thread: ThreadId, line: Line) {
        self.stores.push(Store::Line(line));
        self.flush(thread);
    }

    /// Whether there is anything to write back.
    pub(super) fn flush(&mut self, thread: ThreadId) -> bool {
        let all = self.stores.len();
        let is_new = self.covered.iter().all(|(_, covered)| *covered < all);
        match self.covered.iter_mut().find(|(t, _)| *t == thread) {
            Some((_, covered)) => *covered = all,
            None => self.covered.push((thread, all)),
        }
        is_new
    }

    /// Returns the durable content.
    pub(super) fn fence(&mut self, thread: ThreadId) -> Line {
        if let Some(at) = self.covered.iter().position(|(t, _)| *t == thread) {
            let (_, count) = self.covered.swap_remove(at);
            self.stores.drain(..count).for_each(|store| store.apply(&mut self.durable));
            self.covered.iter_mut().for_each(|(_, covered)| *covered = covered.saturating_sub(count));
        }
        self.durable
    }

    pub(super) fn is_clean(&self) -> bool {
        self.stores.is_empty()
    }

    pub(super) fn seen(&self) -> Line {
        let mut line = self.durable;
        self.stores.iter().for_each(|store| store.apply(&mut line));
        line
    }

    /// The durable one first.
    pub(super) fn contents(&self) -> Vec<Line> {
        let (mut contents, mut before) = (vec![self.durable], self.durable);
        for store in &self.stores {
            contents.extend(store.outcomes(&before));
            store.apply(&mut before);
        }
        distinct(contents)
    }

    /// Of the last store alone.
    pub(super) fn new_contents(&self) -> Vec<Line> {
        let mut before = self.clone();
        let Some(last) = before.stores.pop() else { return Vec::new() };
        let mut contents = distinct(last.outcomes(&before.seen()));
        let old = before.contents();
        contents.retain(|content| !old.contains(content));
        contents
    }
}

fn distinct(contents: impl IntoIterator<Item = Line>) -> Vec<Line> {
    let mut known = HashSet::new();
    contents.into_iter().filter(|content| known.insert(*content)).collect()
}

#[cfg(test)]
mod tests;
