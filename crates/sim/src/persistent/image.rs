//! Moments of simulated persistent memory, and the contents that a crash then can leave.
//!
//! **State.** Moments and images share pages with the medium, which copies before it changes.
//! **Cost.** A moment: a copy of the map of unfenced lines. An image: the lines that differ.

use super::history::History;
use crate::Rng;
use craton_base::{LINE_BYTES, LINE_WORDS, Line};
use std::collections::{BTreeMap, HashSet};
use std::ops::Range;
use std::sync::Arc;

pub(super) const PAGE_BYTES: u64 = 4096;
const PAGE_LINES: u64 = PAGE_BYTES / LINE_BYTES;
const ZEROS: Line = [0; LINE_WORDS];

pub(super) type Page = [Line; PAGE_LINES as usize];

#[derive(Clone, Default, Debug)]
pub(super) struct Contents {
    pages: Arc<BTreeMap<u64, Arc<Page>>>,
    digest: u128,
}

impl Contents {
    pub(super) fn page(&self, page: u64) -> Option<&Arc<Page>> {
        self.pages.get(&page)
    }

    pub(super) fn line(&self, line: u64) -> Line {
        self.page(line / PAGE_LINES).map_or(ZEROS, |page| page[(line % PAGE_LINES) as usize])
    }

    pub(super) fn set(&mut self, line: u64, content: Line) {
        let old = self.line(line);
        if old != content {
            self.digest ^= digest(line, &old) ^ digest(line, &content);
            let pages = Arc::make_mut(&mut self.pages);
            let page = pages.entry(line / PAGE_LINES).or_insert_with(|| Arc::new([ZEROS; PAGE_LINES as usize]));
            Arc::make_mut(page)[(line % PAGE_LINES) as usize] = content;
        }
    }

    pub(super) fn clear(&mut self, pages: Range<u64>) {
        let all = Arc::make_mut(&mut self.pages);
        let numbers: Vec<_> = all.range(pages).map(|(page, _)| *page).collect();
        for number in numbers {
            let page = all.remove(&number).expect("the page was just found");
            for (line, content) in (number * PAGE_LINES..).zip(page.iter()) {
                self.digest ^= digest(line, content);
            }
        }
    }
}

/// A line of zeros adds nothing.
fn digest(line: u64, content: &Line) -> u128 {
    if *content == ZEROS {
        return 0;
    }
    let half =
        |salt: u64| content.iter().fold(Rng::new(line ^ salt).next_u64(), |sum, word| Rng::new(sum ^ word).next_u64());
    u128::from(half(0)) << 64 | u128::from(half(0x5bd1_e995_97f4_a7c1))
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Event {
    Store(u64),
    /// Past the cache.
    StoreLine(u64),
    Flush(u64),
    Fence,
    Resize,
    Discard,
}

#[derive(Clone, Debug)]
pub struct Moment {
    pub(super) len: u64,
    pub(super) limit: u64,
    pub(super) durable: Contents,
    pub(super) unfenced: Arc<BTreeMap<u64, Arc<History>>>,
    /// Their old contents may come back.
    pub(super) discarded: Vec<Range<u64>>,
    pub(super) event: Option<Event>,
    pub(super) step: u64,
}

/// For [`from_image`](super::SimPersistent::from_image).
#[derive(Clone, Debug)]
pub struct Image {
    pub(super) len: u64,
    pub(super) limit: u64,
    pub(super) contents: Contents,
}

impl Image {
    pub fn zeros(len: u64, limit: u64) -> Self {
        Self { len, limit, contents: Contents::default() }
    }

    /// A multiple of 4,096.
    pub fn from_bytes(bytes: &[u8], limit: u64) -> Self {
        let mut contents = Contents::default();
        for (line, bytes) in (0..).zip(bytes.chunks_exact(LINE_BYTES as usize)) {
            let word = |i: usize| u64::from_le_bytes(bytes[8 * i..8 * i + 8].try_into().expect("a word has 8 bytes"));
            contents.set(line, std::array::from_fn(word));
        }
        Self { len: bytes.len() as u64, limit, contents }
    }

    pub fn to_bytes(&self) -> Vec<u8> {
        (0..self.len / 8).flat_map(|word| self.word(8 * word).to_le_bytes()).collect()
    }

    pub fn len(&self) -> u64 {
        self.len
    }

    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    pub fn word(&self, at: u64) -> u64 {
        self.contents.line(at / LINE_BYTES)[(at % LINE_BYTES / 8) as usize]
    }

    pub fn set_word(&mut self, at: u64, value: u64) {
        let mut line = self.contents.line(at / LINE_BYTES);
        line[(at % LINE_BYTES / 8) as usize] = value;
        self.contents.set(at / LINE_BYTES, line);
    }

    pub fn set_len(&mut self, len: u64) {
        self.contents.clear(len.div_ceil(PAGE_BYTES)..u64::MAX);
        self.len = len;
    }

    pub fn digest(&self) -> u128 {
        self.contents.digest ^ u128::from(self.len).wrapping_mul(0x9e37_79b9_7f4a_7c15_f39c_c060_5ced_c835)
    }
}

#[derive(Debug)]
enum Choice {
    Line { line: u64, contents: Vec<Line>, seen: usize },
    Discard(Range<u64>),
}

impl Choice {
    fn ways(&self) -> usize {
        match self {
            Self::Line { contents, .. } => contents.len(),
            Self::Discard(_) => 2,
        }
    }

    fn seen(&self) -> usize {
        match self {
            Self::Line { seen, .. } => *seen,
            Self::Discard(_) => 1,
        }
    }
}

impl Moment {
    pub fn step(&self) -> u64 {
        self.step
    }

    /// `None` at the start.
    pub fn event(&self) -> Option<Event> {
        self.event
    }

    pub fn unfenced_lines(&self) -> Vec<u64> {
        self.unfenced.keys().map(|line| line * LINE_BYTES).collect()
    }

    /// As persistent caches, or a process's death, leave it.
    pub fn seen(&self) -> Image {
        let choices = self.choices();
        let seen: Vec<_> = choices.iter().map(Choice::seen).collect();
        self.image(&choices, &seen)
    }

    pub fn durable(&self) -> Image {
        let choices = self.choices();
        self.image(&choices, &vec![0; choices.len()])
    }

    /// All, or at most `most`: the extremes, each line alone lost or kept, and a random sample.
    pub fn images(&self, most: usize, rng: &mut Rng) -> Images {
        let choices = self.choices();
        let ways = choose(&choices, most, rng);
        Images { moment: self.clone(), choices, ways: ways.into_iter() }
    }

    /// Only those of the last event: with all images of a first moment, a test meets every crash
    /// once.
    pub fn new_images(&self, most: usize, rng: &mut Rng) -> Images {
        let mut choices = self.choices();
        let ways = match self.event {
            Some(Event::Store(at) | Event::StoreLine(at)) => self.new_ways(at / LINE_BYTES, &mut choices, most, rng),
            Some(Event::Flush(_) | Event::Fence) => Vec::new(),
            Some(Event::Resize | Event::Discard) | None => choose(&choices, most, rng),
        };
        Images { moment: self.clone(), choices, ways: ways.into_iter() }
    }

    fn new_ways(&self, line: u64, choices: &mut Vec<Choice>, most: usize, rng: &mut Rng) -> Vec<Box<[usize]>> {
        let Some(history) = self.unfenced.get(&line) else {
            return choose(choices, most, rng);
        };
        let contents = history.new_contents();
        choices.retain(|choice| !matches!(choice, Choice::Line { line: l, .. } if *l == line));
        if contents.is_empty() {
            return Vec::new();
        }
        choices.push(Choice::Line { line, seen: contents.len() - 1, contents });
        choose(choices, most, rng)
    }

    fn choices(&self) -> Vec<Choice> {
        let discards = self.discarded.iter().cloned().map(Choice::Discard);
        let lines = self.unfenced.iter().map(|(line, history)| {
            let (contents, seen) = (history.contents(), history.seen());
            let seen = contents.iter().position(|content| *content == seen).expect("the content seen is possible");
            Choice::Line { line: *line, contents, seen }
        });
        discards.chain(lines).filter(|choice| choice.ways() > 1).collect()
    }

    fn image(&self, choices: &[Choice], ways: &[usize]) -> Image {
        let (mut contents, mut discards) = (self.durable.clone(), Vec::new());
        for (choice, way) in choices.iter().zip(ways) {
            match choice {
                Choice::Line { line, contents: of_line, .. } => contents.set(*line, of_line[*way]),
                Choice::Discard(pages) => discards.extend((*way == 1).then(|| pages.clone())),
            }
        }
        // Stores to a discarded page end its choice: these lines are older.
        discards.into_iter().for_each(|pages| contents.clear(pages));
        Image { len: self.len, limit: self.limit, contents }
    }
}

#[derive(Debug)]
pub struct Images {
    moment: Moment,
    choices: Vec<Choice>,
    ways: std::vec::IntoIter<Box<[usize]>>,
}

impl Iterator for Images {
    type Item = Image;

    fn next(&mut self) -> Option<Image> {
        let ways = self.ways.next()?;
        Some(self.moment.image(&self.choices, &ways))
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        self.ways.size_hint()
    }
}

impl ExactSizeIterator for Images {}

fn choose(choices: &[Choice], most: usize, rng: &mut Rng) -> Vec<Box<[usize]>> {
    let all = choices.iter().try_fold(1usize, |all, choice| all.checked_mul(choice.ways()));
    if let Some(all) = all.filter(|all| *all <= most) {
        return (0..all).map(|number| nth(choices, number)).collect();
    }
    sample(choices, most, rng)
}

fn nth(choices: &[Choice], mut number: usize) -> Box<[usize]> {
    let way = |choice: &Choice| {
        let way = number % choice.ways();
        number /= choice.ways();
        way
    };
    choices.iter().map(way).collect()
}

fn sample(choices: &[Choice], most: usize, rng: &mut Rng) -> Vec<Box<[usize]>> {
    let lost: Box<[usize]> = choices.iter().map(|_| 0).collect();
    let seen: Box<[usize]> = choices.iter().map(Choice::seen).collect();
    let mut known = HashSet::from([lost.clone(), seen.clone()]);
    let mut chosen = vec![lost.clone(), seen.clone()];
    let mut add = |ways: Box<[usize]>| {
        if known.insert(ways.clone()) {
            chosen.push(ways);
        }
        chosen.len()
    };
    let mut alone: Vec<(usize, usize, &Box<[usize]>)> = Vec::new();
    for (at, choice) in choices.iter().enumerate() {
        alone.extend((0..choice.ways()).flat_map(|way| [(at, way, &lost), (at, way, &seen)]));
    }
    shuffle(&mut alone, rng);
    for (at, way, others) in alone {
        let mut ways = others.clone();
        ways[at] = way;
        if add(ways) >= most / 4 * 3 {
            break;
        }
    }
    for _ in 0..2 * most {
        let ways = choices.iter().map(|choice| rng.below(choice.ways() as u64) as usize).collect();
        if add(ways) >= most {
            break;
        }
    }
    chosen
}

fn shuffle<T>(items: &mut [T], rng: &mut Rng) {
    for end in (1..items.len()).rev() {
        items.swap(end, rng.below(end as u64 + 1) as usize);
    }
}

#[cfg(test)]
mod tests;
