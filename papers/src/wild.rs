//! Programs as other people write them. Each measures itself: an observer would delay its page
//! faults.
//!
//! **Unsafe.** Reads the process's use of time.

pub mod fragments;
pub mod group;
mod memory;
mod space;
mod speed;

use craton_lab::micro::calls::malloc_from;
use craton_lab::summary::Spread;
use memory::{Meter, find_operators, peak_bytes};
use serde_json::{Map, Value, json};
use space::Helper;
use speed::{MIXED, Replaced, large, mixed, replace, small};

#[derive(Clone, Copy, Debug)]
pub struct Given {
    pub percent: u64,
    pub seconds: Option<u64>,
    pub seed: u64,
}

impl Given {
    fn of(&self, full: u64) -> u64 {
        (full.saturating_mul(self.percent) / 100).max(full.min(100))
    }
}

pub struct Figures {
    meter: Meter,
    cpu_s: f64,
    faults: f64,
    numbers: Map<String, Value>,
}

impl Figures {
    fn start() -> Self {
        let mut meter = Meter::start();
        let start = meter.sample().rss_bytes;
        let [cpu_s, faults] = used();
        let mut figures = Self { meter, cpu_s, faults, numbers: Map::new() };
        figures.add("start_rss_bytes", start as f64);
        figures
    }

    /// Their memory is written.
    fn done(&mut self, live_bytes: u64) {
        let (time, [cpu_s, faults]) = (self.meter.seconds(), used());
        let rss = self.meter.sample().rss_bytes;
        let numbers = [
            ("time_s", time),
            ("cpu_s", cpu_s - self.cpu_s),
            ("faults", faults - self.faults),
            ("live_bytes", live_bytes as f64),
            ("rss_bytes", rss as f64),
            ("grown_bytes", rss as f64 - self.number("start_rss_bytes")),
        ];
        numbers.into_iter().for_each(|(name, value)| self.add(name, value));
    }

    fn add(&mut self, name: &str, value: f64) {
        self.numbers.insert(name.to_owned(), json!(value));
    }

    fn number(&self, name: &str) -> f64 {
        self.numbers.get(name).and_then(Value::as_f64).unwrap_or(f64::NAN)
    }

    fn add_median(&mut self, name: &str, values: &mut [f64]) {
        if let Some(spread) = Spread::of(values.iter().copied()) {
            self.add(name, spread.median);
        }
    }

    /// Resident set by live bytes after 10 turns and at the end.
    fn watch(&mut self, seconds: u64, live: f64, mut second: impl FnMut()) {
        for turn in 1..=seconds {
            second();
            let ratio = self.meter.sample().rss_bytes as f64 / live;
            if turn == 10 || turn == seconds {
                self.add(if turn == 10 { "ratio_after_10_s" } else { "ratio_at_end" }, ratio);
            }
        }
    }

    /// JSON; samples are [seconds, resident set, on hugepages].
    pub fn line(mut self, program: &str) -> String {
        self.add("peak_rss_bytes", peak_bytes() as f64);
        let samples: Vec<_> = self.meter.samples.iter().map(|s| (s.at_s, s.rss_bytes, s.huge_bytes)).collect();
        let mut fields = Map::from_iter([("program".to_owned(), json!(program))]);
        fields.insert("malloc_from".to_owned(), json!(malloc_from()));
        fields.extend(self.numbers);
        fields.insert("samples".to_owned(), json!(samples));
        Value::Object(fields).to_string()
    }
}

fn used() -> [f64; 2] {
    // SAFETY: zeros are valid.
    let usage = unsafe {
        let mut usage: libc::rusage = std::mem::zeroed();
        libc::getrusage(libc::RUSAGE_SELF, &raw mut usage);
        usage
    };
    let seconds = |time: libc::timeval| time.tv_sec as f64 + time.tv_usec as f64 / 1e6;
    [seconds(usage.ru_utime) + seconds(usage.ru_stime), usage.ru_minflt as f64]
}

pub struct Program {
    pub name: &'static str,
    pub about: &'static str,
    pub run: fn(&Given) -> Figures,
}

const MIB: usize = 1 << 20;

const fn replaced(
    (threads, slots, operations): (usize, usize, u64),
    size: fn(&mut craton_lab::rng::Rng) -> usize,
    strides: bool,
    each: u64,
) -> Replaced {
    Replaced { threads, slots, operations, size, strides, each }
}

macro_rules! programs {
    ($($name:literal $about:literal $run:expr;)*) => {
        pub const PROGRAMS: &[Program] = &[$(Program { name: $name, about: $about, run: $run }),*];
    };
}

programs! {
    "sparse-256k" "2,000 objects of 256 KiB, a byte of each is written"
        |given| space::sparse(given, (2000, 256 << 10, 256 << 10), false);
    "sparse-malloc" "malloc of 1 GiB, a byte every 2 MiB is written"
        |given| space::sparse(given, (1, 1 << 30, 2 * MIB), false);
    "sparse-calloc" "calloc of 1 GiB, a byte every 2 MiB is written"
        |given| space::sparse(given, (1, 1 << 30, 2 * MIB), true);
    "sparse-20m" "40 objects of 20 MB, a byte of each is written"
        |given| space::sparse(given, (40, 20_000_000, 20_000_000), false);
    "sparse-40m" "20 objects of 40 MB, a byte of each is written"
        |given| space::sparse(given, (20, 40_000_000, 40_000_000), false);
    "sparse-60m" "16 objects of 60 MB, a byte of each is written"
        |given| space::sparse(given, (16, 60_000_000, 60_000_000), false);
    "stress" "4,000 requests of up to 32 MiB to all of the family, a word of each is written"
        |given| space::stress(given, (4000, 32 << 20), false);
    "stress-realloc" "the same, and half of the frees are reallocations"
        |given| space::stress(given, (4000, 32 << 20), true);
    "idle" "13,000 objects of 40,000 B, 60 % are freed at random, then nothing for 15 s"
        |given| space::idle(given, Helper::None);
    "idle-sleeper" "the same with a thread that sleeps"
        |given| space::idle(given, Helper::Sleeps);
    "idle-worker" "the same with a thread that allocates 20 times a second"
        |given| space::idle(given, Helper::Works);
    "swing-1" "sessions of 256 MiB and of an eighth in turns, a period of 1 s" |given| space::swing(given, 1);
    "swing-5" "the same, a period of 5 s" |given| space::swing(given, 5);
    "swing-20" "the same, a period of 20 s" |given| space::swing(given, 20);
    "swing-60" "the same, a period of 60 s" |given| space::swing(given, 60);
    "fork-busy" "512 MiB, a child for 4 s while the parent writes, which goes on replacing objects"
        |given| space::fork(given, true);
    "fork-idle" "the same with a parent that idles then" |given| space::fork(given, false);
    "dense-1000" "1 GiB in objects of 1,000 B, all written, then nothing" |given| space::dense(given, 1000);
    "dense-40k" "the same in objects of 40,000 B" |given| space::dense(given, 40_000);
    "dense-256k" "the same in objects of 256 KiB" |given| space::dense(given, 256 << 10);
    "dense-20m" "the same in objects of 20 MB" |given| space::dense(given, 20_000_000);
    "larson-1" "9,000 objects of 8 to 1000 B, replaced by new and sized delete; new threads inherit them"
        |given| replace::<true>(given, &replaced((1, 9000, 40_000_000), small, false, 500_000));
    "larson-2" "the same, 9,000 objects by each of two threads"
        |given| replace::<true>(given, &replaced((2, 18_000, 60_000_000), small, false, 500_000));
    "strides" "blocks of 16 B to 8 KiB, replaced in strides by two threads"
        |given| replace::<false>(given, &replaced((2, 8000, 30_000_000), mixed, true, 500_000));
    "blocks" "blocks of 32 to 512 KiB, replaced at random by two threads"
        |given| replace::<false>(given, &replaced((2, 200, 600_000), large, false, 5000));
    "pairs" "144 pairs of sizes: 12 MB of the first, 90 % are freed at random, as much of the second" space::pairs;
    "pauses" "16 B, 1 KiB, 64 KiB, 1 MiB by two threads: each request timed"
        |given| speed::pauses(given, MIXED, (2000, 1_000_000));
    "middle" "1 MiB by two threads: each request timed"
        |given| speed::pauses(given, &[(MIB, 100)], (32, 100_000));
    "slots" "five objects of 5 to 25 MB, replaced at random and written" space::slots;
}

pub fn find(name: &str) -> Option<&'static Program> {
    PROGRAMS.iter().find(|program| program.name == name)
}

/// Error: what it needs is missing.
pub fn run(program: &Program, given: &Given) -> Result<Figures, String> {
    if program.name.starts_with("larson") {
        find_operators()?;
    }
    Ok((program.run)(given))
}
