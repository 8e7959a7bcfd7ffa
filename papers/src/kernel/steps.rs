//! The four steps, as a trace. Beyond a limit the least recently used closed file goes.

use super::Op;
use super::kinds::{Kind, of};
use craton_lab::rng::Rng;
use std::collections::{BTreeMap, HashMap, VecDeque};

/// In memory, for 16 MB.
const FILES: usize = 700;
const ALL_FILES: u32 = 9000;
/// Processes; with the smaller one 4.4BSD's memory grows as in the paper's table.
const SPIKE: usize = 256;
const SMALL_SPIKE: usize = 128;
const SCRIPTS: usize = 64;
/// Seconds after each step.
const REST: usize = 60;

/// Seconds of a process that never ends.
const DAEMON: f64 = 1e9;

#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Load {
    #[default]
    Usual,
    SmallSpike,
    /// A file is loaded between short-lived buffers.
    Between,
}

#[derive(Clone, Debug)]
pub struct Trace {
    pub ops: Vec<Op>,
    pub places: usize,
}

impl Trace {
    /// `scale`: times 16 MB (1 or more).
    pub fn new(kinds: &[Kind], scale: usize, seed: u64, load: Load) -> Self {
        let mut machine = Machine { rng: Rng::new(seed, 0), scale, load, ..Machine::default() };
        machine.boot(kinds);
        machine.rest();
        machine.spike();
        machine.rest();
        machine.find();
        machine.rest();
        machine.kenbus();
        machine.rest();
        Self { ops: machine.ops, places: machine.places as usize }
    }
}

#[derive(Debug, Default)]
struct Process {
    objects: Vec<u32>,
    files: Vec<u32>,
}

#[derive(Debug)]
struct File {
    objects: [u32; 3],
    open: u32,
    used: u64,
}

#[derive(Default)]
struct Machine {
    ops: Vec<Op>,
    places: u32,
    free: Vec<u32>,
    rng: Rng,
    scale: usize,
    load: Load,
    now: u64,
    ends: BTreeMap<u64, Vec<Process>>,
    running: usize,
    files: HashMap<u32, File>,
    /// An entry is skipped if the file was used since.
    uses: VecDeque<(u32, u64)>,
    use_count: u64,
    brief: BTreeMap<u64, Vec<u32>>,
}

impl Machine {
    fn get(&mut self, kind: u16) -> u32 {
        let place = self.free.pop().unwrap_or_else(|| {
            self.places += 1;
            self.places - 1
        });
        self.ops.push(Op::Get { kind, place });
        place
    }

    fn put(&mut self, place: u32) {
        self.ops.push(Op::Put { place });
        self.free.push(place);
    }

    /// Exponential, at least 1 s.
    fn life(&mut self, mean: f64) -> u64 {
        let part = (self.rng.next() >> 11) as f64 / (1u64 << 53) as f64;
        1 + (-(1.0 - part).ln() * mean) as u64
    }

    fn second(&mut self) {
        self.now += 1;
        self.ops.push(Op::Second);
        for place in self.brief.remove(&self.now).unwrap_or_default() {
            self.put(place);
        }
        for process in self.ends.remove(&self.now).unwrap_or_default() {
            self.running -= 1;
            self.exit(process);
        }
        for _ in 0..6 * self.scale {
            let kind = of(["callout", "message", "timer", "cred", "data 64", "lock"][self.rng.below(6) as usize]);
            let place = self.get(kind);
            let mean = if self.rng.one_in(50) { 100.0 } else { 1.0 };
            self.keep(place, mean);
        }
    }

    fn keep(&mut self, place: u32, mean: f64) {
        let end = self.now + self.life(mean);
        self.brief.entry(end).or_default().push(place);
    }

    fn rest(&mut self) {
        (0..REST).for_each(|_| self.second());
        self.ops.push(Op::Step);
    }

    fn boot(&mut self, kinds: &[Kind]) {
        // In the order in which drivers attach; scripts start daemons in between.
        let mut order: Vec<u16> = Vec::new();
        for (kind, of) in kinds.iter().enumerate() {
            let grows = if of.rare { 1 + (self.scale - 1) / 4 } else { self.scale };
            order.extend(std::iter::repeat_n(kind as u16, of.at_boot * grows));
        }
        // Not all objects of a kind at once.
        for at in (1..order.len()).rev() {
            let other = at - self.rng.skewed((at as u32 + 1).min(400)) as usize;
            order.swap(at, other);
        }
        let seconds = 40;
        for part in order.chunks(order.len().div_ceil(seconds)) {
            for kind in part {
                self.get(*kind);
            }
            for _ in 0..15 * self.scale {
                let file = self.rng.below(ALL_FILES * self.scale as u32);
                self.look_up(file);
            }
            for _ in 0..3 * self.scale {
                self.run(3.0, 2);
            }
            if self.now.is_multiple_of(2) {
                for _ in 0..self.scale {
                    self.run(DAEMON, 3);
                }
            }
            self.second();
        }
    }

    fn spike(&mut self) {
        let spike = if self.load == Load::SmallSpike { SMALL_SPIKE } else { SPIKE };
        let all: Vec<Process> = (0..spike * self.scale)
            .map(|number| {
                if number.is_multiple_of(64 * self.scale) {
                    self.second();
                }
                let mut process = self.fork(0);
                self.socket(&mut process);
                process
            })
            .collect();
        self.second();
        for process in all {
            self.exit(process);
        }
    }

    fn find(&mut self) {
        let mut process = self.fork(2);
        let files = ALL_FILES * self.scale as u32;
        let mut directory = 0;
        for file in 0..files {
            // A directory is looked at again for its files.
            if file.is_multiple_of(20) {
                directory = file;
                let buffer = self.get(of("path buffer"));
                self.put(buffer);
            }
            self.look_up(directory);
            self.look_up(file);
            if file.is_multiple_of(200 * self.scale as u32) {
                self.second();
            }
            if file.is_multiple_of(50) {
                self.write(&mut process);
            }
        }
        self.exit(process);
    }

    fn kenbus(&mut self) {
        let most = SCRIPTS * self.scale;
        for second in 0..400u64 {
            let wave = [0.3, 0.7, 1.0, 0.8, 0.4, 0.9, 0.6, 0.2][(second / 50) as usize];
            while self.running < (most as f64 * wave) as usize {
                let open = 1 + self.rng.below(5) as usize;
                self.run(8.0, open);
            }
            self.second();
        }
        while self.running > 0 {
            self.second();
        }
    }

    fn run(&mut self, mean: f64, open: usize) {
        let mut process = self.fork(open);
        match self.rng.below(8) {
            0 => self.socket(&mut process),
            1 | 2 => self.pipe(&mut process),
            _ => {}
        }
        self.write(&mut process);
        let life = self.life(mean);
        if mean < DAEMON {
            self.running += 1;
            self.ends.entry(self.now + life).or_default().push(process);
        }
    }

    fn take(&mut self, process: &mut Process, kind: &str, count: usize) {
        for _ in 0..count {
            let place = self.get(of(kind));
            process.objects.push(place);
        }
    }

    fn fork(&mut self, open: usize) -> Process {
        let mut process = Process::default();
        let segments = 5 + self.rng.below(4) as usize;
        #[rustfmt::skip]
        let objects = [
            ("proc", 1), ("thread", 1), ("lwp", 1), ("as", 1), ("hat", 1), ("seg", segments),
            ("segvn", segments), ("anon map", segments / 2), ("anon", 4 + self.rng.below(8) as usize),
            ("hment", 4 + self.rng.below(8) as usize), ("page table", 1), ("file", 1 + open),
            ("cred", usize::from(self.rng.one_in(3))), ("sigqueue", usize::from(self.rng.one_in(4))),
        ];
        for (kind, count) in objects {
            self.take(&mut process, kind, count);
        }
        for _ in 0..open {
            // Most are the same few.
            let file = self.rng.skewed(ALL_FILES * self.scale as u32);
            self.look_up(file);
            if let Some(file) = self.files.get_mut(&file) {
                file.open += 1;
            }
            process.files.push(file);
        }
        process
    }

    fn socket(&mut self, process: &mut Process) {
        #[rustfmt::skip]
        let objects = [
            ("socket", 1), ("stream head", 1), ("queue pair", 3), ("syncq", 2), ("snode", 1), ("vnode", 1),
            ("transport end point", 1), ("tcp", 1), ("ip client", 1), ("message", 2), ("data 128", 1),
        ];
        for (kind, count) in objects {
            self.take(process, kind, count);
        }
    }

    fn pipe(&mut self, process: &mut Process) {
        for (kind, count) in
            [("fifonode", 2), ("vnode", 2), ("stream head", 2), ("queue pair", 2), ("syncq", 2), ("file", 2)]
        {
            self.take(process, kind, count);
        }
    }

    /// Messages that go within seconds.
    fn write(&mut self, process: &mut Process) {
        for _ in 0..1 + process.objects.len() / 40 {
            let data = of(["data 64", "data 128", "data 256", "data 512", "data 1536"][self.rng.below(5) as usize]);
            for kind in [of("message"), data] {
                let place = self.get(kind);
                self.keep(place, 2.0);
            }
        }
    }

    fn exit(&mut self, process: Process) {
        for place in process.objects {
            self.put(place);
        }
        for file in process.files {
            if let Some(file) = self.files.get_mut(&file) {
                file.open = file.open.saturating_sub(1);
            }
        }
    }

    fn look_up(&mut self, number: u32) {
        self.use_count += 1;
        let used = self.use_count;
        self.uses.push_back((number, used));
        if let Some(file) = self.files.get_mut(&number) {
            file.used = used;
            return;
        }
        while self.files.len() >= FILES * self.scale {
            let Some((oldest, used)) = self.uses.pop_front() else { break };
            let Some(file) = self.files.get(&oldest).filter(|file| file.used == used) else { continue };
            if file.open > 0 {
                self.use_count += 1;
                let again = self.use_count;
                self.files.get_mut(&oldest).expect("it is there").used = again;
                self.uses.push_back((oldest, again));
                continue;
            }
            let gone = self.files.remove(&oldest).expect("it is there");
            gone.objects.into_iter().for_each(|place| self.put(place));
        }
        if self.load == Load::Between {
            for kind in ["path buffer", "data 1536", "message"] {
                let place = self.get(of(kind));
                self.keep(place, 5.0);
            }
        }
        let objects = ["inode", "vnode", "dnlc entry"].map(|kind| self.get(of(kind)));
        self.files.insert(number, File { objects, open: 0, used });
    }
}
