//! Persistent memory behind volatile caches: what a crash can leave.
//!
//! A cache may evict a line at any time, so a crash leaves a prefix of each line's stores; a fence
//! makes those durable that a flush marked. **Not here.** Several threads' fences; torn lines.

use crate::Rng;

pub const LINE_WORDS: usize = 8;

pub type Line = [u64; LINE_WORDS];

#[derive(Clone, Debug)]
struct History {
    contents: Vec<Line>,
    /// Contents, besides the first, that a fence makes durable.
    flushed: usize,
}

#[derive(Clone, Debug)]
pub struct Lines {
    lines: Vec<History>,
}

impl Lines {
    pub fn new(contents: Vec<Line>) -> Self {
        Self { lines: contents.into_iter().map(|line| History { contents: vec![line], flushed: 0 }).collect() }
    }

    pub fn store(&mut self, line: usize, content: Line) {
        self.lines[line].contents.push(content);
    }

    pub fn flush(&mut self, line: usize) {
        self.lines[line].flushed = self.lines[line].contents.len() - 1;
    }

    pub fn fence(&mut self) {
        for line in &mut self.lines {
            line.contents.drain(..std::mem::take(&mut line.flushed));
        }
    }

    /// As persistent caches, or a process's death, leave them.
    pub fn seen(&self) -> Vec<Line> {
        self.lines.iter().map(|line| *line.contents.last().expect("a line has a content")).collect()
    }

    pub fn durable(&self) -> Vec<Line> {
        self.lines.iter().map(|line| line.contents[0]).collect()
    }

    /// All if at most `most`, else the extremes and random ones.
    pub fn images(&self, most: usize, rng: &mut Rng) -> Vec<Vec<Line>> {
        let ways = self.lines.iter().try_fold(1usize, |ways, line| ways.checked_mul(line.contents.len()));
        if let Some(ways) = ways.filter(|ways| *ways <= most) {
            return (0..ways).map(|way| self.image(way)).collect();
        }
        let mut images = vec![self.durable(), self.seen()];
        while images.len() < most {
            images.push(self.lines.iter().map(|line| *rng.pick(&line.contents)).collect());
        }
        images
    }

    fn image(&self, mut way: usize) -> Vec<Line> {
        let mut choose = |line: &History| {
            let content = line.contents[way % line.contents.len()];
            way /= line.contents.len();
            content
        };
        self.lines.iter().map(&mut choose).collect()
    }
}

#[cfg(test)]
mod tests;
