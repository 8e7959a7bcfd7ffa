//! One thread of the workload.

use super::{Config, Outcome};
use craton_lab::rng::{Rng, mix};
use crossbeam_channel::{Receiver, Sender};
use lru::LruCache;
use std::collections::BTreeMap;
use std::fmt::Write;
use std::hash::{BuildHasherDefault, DefaultHasher};

/// For another thread to free.
pub const QUEUE: usize = 1024;

/// Requests, over which the live data swing.
const DAY: u64 = 50_000;
const BURST_PERIOD: u64 = 1024;
const SESSIONS: u32 = 4096;
/// Half of the keys fit.
const KEYS_PER_MB: u32 = 1400;

struct Session {
    user: String,
    cart: Vec<String>,
    visits: BTreeMap<u32, Box<[u8; 40]>>,
}

struct Node {
    value: u64,
    left: Option<Box<Node>>,
    right: Option<Box<Node>>,
}

pub struct Worker {
    number: u64,
    workers: u64,
    requests: u64,
    seed: u64,
    budget: usize,
    keys: u32,
    next: Sender<Vec<u8>>,
    // A fixed hash: equal growth in each run.
    cache: LruCache<u64, Vec<u8>, BuildHasherDefault<DefaultHasher>>,
    cached: usize,
    sessions: BTreeMap<u32, Session>,
    outcome: Outcome,
}

impl Worker {
    pub fn new(config: &Config, number: u64, workers: u64, next: Sender<Vec<u8>>) -> Self {
        let budget = (config.live_mb.max(1) << 20) / workers as usize;
        Self {
            number,
            workers,
            requests: config.requests,
            seed: config.seed,
            budget,
            keys: u32::try_from(budget >> 10).unwrap_or(u32::MAX / KEYS_PER_MB).saturating_mul(KEYS_PER_MB) / 1024 + 1,
            next,
            cache: LruCache::unbounded_with_hasher(BuildHasherDefault::default()),
            cached: 0,
            sessions: BTreeMap::new(),
            outcome: Outcome::default(),
        }
    }

    /// Until all senders are gone.
    pub fn run(mut self, from: Receiver<Vec<u8>>) -> Outcome {
        let mut number = self.number;
        while number < self.requests {
            while let Ok(buffer) = from.try_recv() {
                self.add(digest(&buffer));
            }
            self.request(number);
            self.outcome.requests += 1;
            number = number.saturating_add(self.workers);
        }
        let Self { next, mut outcome, .. } = self;
        drop(next);
        for buffer in from {
            outcome.checksum = outcome.checksum.wrapping_add(digest(&buffer));
        }
        outcome
    }

    fn add(&mut self, value: u64) {
        self.outcome.checksum = self.outcome.checksum.wrapping_add(value);
    }

    fn request(&mut self, number: u64) {
        let mut rng = Rng::new(self.seed, number);
        let headers = self.headers(&mut rng);
        let session = self.session(&mut rng);
        let found = self.cached(&mut rng);
        let work = self.buffers(&mut rng);
        let answer = answer(&mut rng, number);
        // By its count, so that each worker has bursts.
        let burst = if (number / self.workers) % BURST_PERIOD == BURST_PERIOD - 1 { burst(&mut rng) } else { 0 };
        self.add([headers, session, found, work, answer, burst].into_iter().fold(number, |sum, x| mix(sum ^ x)));
    }

    fn headers(&mut self, rng: &mut Rng) -> u64 {
        let mut received = String::new();
        for i in 0..4 + rng.below(8) {
            let _ = write!(received, "x-field-{i}: {:x}\r\n", rng.next() >> rng.below(48));
        }
        let fields: Vec<(String, String)> = received
            .lines()
            .filter_map(|line| line.split_once(": "))
            .map(|(key, value)| (key.to_ascii_uppercase(), value.to_owned()))
            .collect();
        fields
            .iter()
            .fold(0, |sum, (key, value)| sum ^ digest(key.as_bytes()).rotate_left(7) ^ digest(value.as_bytes()))
    }

    fn session(&mut self, rng: &mut Rng) -> u64 {
        let id = rng.skewed(SESSIONS);
        if rng.one_in(16) {
            return self.sessions.remove(&id).map_or(0, |s| s.cart.iter().map(|item| item.len() as u64).sum());
        }
        let session = self.sessions.entry(id).or_insert_with(|| Session {
            user: format!("user-{id}"),
            cart: Vec::new(),
            visits: BTreeMap::new(),
        });
        session.cart.push(format!("item-{}-{}", rng.next(), "*".repeat(rng.below(64) as usize)));
        session.visits.insert(rng.below(64), Box::new([id as u8; 40]));
        if session.cart.len() > 24 {
            session.cart.drain(..12);
        }
        let visits: u64 = session.visits.values().map(|v| u64::from(v[0]) + u64::from(v[39])).sum();
        mix(visits) ^ digest(session.user.as_bytes())
    }

    fn cached(&mut self, rng: &mut Rng) -> u64 {
        let key = u64::from(rng.skewed(self.keys));
        let len = rng.size();
        let found = self.cache.get_mut(&key).map(|value| {
            let found = digest(value);
            if rng.one_in(8) {
                self.cached -= value.len();
                value.resize(len, key as u8);
                value.shrink_to_fit();
                self.cached += len;
            }
            found
        });
        if found.is_none() {
            self.cache.put(key, filled(len, key));
            self.cached += len;
        }
        // By day all, by night half.
        let hour = self.outcome.requests % DAY;
        let swing = hour.min(DAY - hour) * 2;
        let budget = self.budget / 2 + (self.budget as u64 / 2 * swing / DAY) as usize;
        while self.cached > budget
            && let Some((_, value)) = self.cache.pop_lru()
        {
            self.cached -= value.len();
        }
        found.unwrap_or(len as u64)
    }

    /// The next worker frees some.
    fn buffers(&mut self, rng: &mut Rng) -> u64 {
        let mut buffers: Vec<Vec<u8>> = (0..3 + rng.below(6)).map(|_| filled(rng.size(), rng.next())).collect();
        let mut sum = 0u64;
        while !buffers.is_empty() {
            let buffer = buffers.swap_remove(rng.below(buffers.len() as u32) as usize);
            if !rng.one_in(8) {
                sum = sum.wrapping_add(digest(&buffer));
            } else if let Err(back) = self.next.try_send(buffer) {
                // The checksum must not depend on where it is freed.
                self.add(digest(&back.into_inner()));
            }
        }
        sum
    }
}

fn answer(rng: &mut Rng, number: u64) -> u64 {
    let len = rng.size();
    let mut text = String::new();
    while text.len() < len {
        let _ = writeln!(text, "<p class=\"answer\">{number}: {:016x} and so on, and so forth</p>", rng.next());
    }
    digest(text.as_bytes())
}

fn burst(rng: &mut Rng) -> u64 {
    let mut root = None;
    for _ in 0..2000 + rng.below(6000) {
        let value = rng.next();
        let mut place: &mut Option<Box<Node>> = &mut root;
        while let Some(node) = place {
            place = if value < node.value { &mut node.left } else { &mut node.right };
        }
        *place = Some(Box::new(Node { value, left: None, right: None }));
    }
    depth(&root)
}

fn depth(tree: &Option<Box<Node>>) -> u64 {
    tree.as_ref().map_or(0, |node| 1 + depth(&node.left).max(depth(&node.right)))
}

fn filled(len: usize, with: u64) -> Vec<u8> {
    let mut buffer = vec![0x80 | with as u8; len];
    buffer[len - 1] = (with >> 8) as u8;
    buffer
}

fn digest(bytes: &[u8]) -> u64 {
    let sum = bytes.iter().step_by(64).chain(bytes.last()).fold(bytes.len() as u64, |sum, byte| {
        sum.rotate_left(5).wrapping_add(u64::from(*byte)).wrapping_mul(0x2545_f491_4f6c_dd1d)
    });
    mix(sum)
}
