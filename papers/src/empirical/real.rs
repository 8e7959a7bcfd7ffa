//! The process on real memory.
//!
//! **What.** Each thread plays a [`Process`] of its own, with its share of the heap and of the events, through the C library's
//! malloc. Deaths that the process calls remote are carried out by the next thread.
//!
//! **State.** The result is a sum over the objects that died or were left at the end, of what was read in each. It depends
//! on the configuration alone, not on who freed what when.
//!
//! **Threads.** Objects to be freed elsewhere are collected, and a batch of them goes into the next thread's [`Mailbox`]. A
//! thread that finds it full empties its own before it tries again, so that a ring of full ones moves on. Who has played all
//! its events goes on emptying its mailbox until all have.
//!
//! **Cost.** Tables and mailboxes are allocated before the first event, so that those that follow are the process's
//! alone; they take about 20 bytes for each live object, the same under every allocator.

use super::object::Object;
use super::process::{self, Event, LeftOut, Process};
use super::profile::Profile;
use super::schedule::Schedule;
use craton_lab::rng::mix;
use std::fmt;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::Duration;

/// What to run.
#[derive(Clone, Debug)]
pub struct Config {
    /// Sizes, rates and live objects.
    pub profile: Profile,
    /// Live bytes over all threads, at target 1.
    pub heap_bytes: u64,
    /// Births and deaths over all threads, on average; those that fill and resize the heap come on top.
    pub events: u64,
    /// The target's course.
    pub schedule: Schedule,
    /// Threads, at least 1.
    pub threads: usize,
    /// Of a hundred deaths, how many are on another thread; none are where there is just one.
    pub remote_percent: u32,
    /// Where the random numbers start.
    pub seed: u64,
}

/// What was done.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub struct Outcome {
    /// The same for the same configuration.
    pub checksum: u64,
    /// Objects born.
    pub births: u64,
    /// Objects that died before the end.
    pub deaths: u64,
    /// Those of them that another thread freed.
    pub remote: u64,
    /// What of the profile is too large for a thread's heap.
    pub left_out: LeftOut,
}

impl fmt::Display for Outcome {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        let Self { births, deaths, remote, left_out, .. } = self;
        write!(f, "{births} births, {deaths} deaths, {remote} of them on another thread{left_out}")
    }
}

/// Events made at a time: 16 KiB of them.
const EVENTS: usize = 1024;
/// Objects sent at a time, and those that a mailbox holds.
const BATCH: usize = 64;
const MAILBOX: usize = 4096;
/// How long a thread that is done sleeps between two looks into its mailbox.
const REST: Duration = Duration::from_micros(200);

/// An object for another thread to free, and its size.
type Parcel = (Object, u64);

/// Objects for one thread to free.
struct Mailbox(Mutex<Vec<Parcel>>);

impl Mailbox {
    /// Takes all of `batch` over, or leaves it as it is when there is no room.
    fn put(&self, batch: &mut Vec<Parcel>) -> bool {
        let mut inside = self.0.lock().expect("no thread panics with a mailbox open");
        let fits = inside.len() + batch.len() <= MAILBOX;
        if fits {
            inside.append(batch);
        }
        fits
    }

    /// Exchanges what is inside for an empty list.
    fn empty_into(&self, list: &mut Vec<Parcel>) {
        std::mem::swap(&mut *self.0.lock().expect("no thread panics with a mailbox open"), list);
    }
}

struct Worker<'a> {
    process: Process,
    /// Makes tags of slots.
    key: u64,
    objects: Vec<Option<Object>>,
    own: &'a Mailbox,
    next: &'a Mailbox,
    outgoing: Vec<Parcel>,
    incoming: Vec<Parcel>,
    outcome: Outcome,
}

/// Runs the process; or says why there is none.
pub fn run(config: &Config) -> Result<Outcome, String> {
    let threads = config.threads.max(1) as u64;
    let mailboxes: Vec<Mailbox> = (0..threads).map(|_| Mailbox(Mutex::new(Vec::with_capacity(MAILBOX)))).collect();
    let worker = |number: u64| {
        let process = Process::new(&process::Config {
            profile: &config.profile,
            heap_bytes: config.heap_bytes / threads,
            schedule: config.schedule,
            events: config.events / threads,
            remote_percent: if threads > 1 { config.remote_percent } else { 0 },
            seed: config.seed,
            number,
        })?;
        Ok(Worker {
            key: mix(config.seed ^ mix(number)),
            objects: Vec::with_capacity(process.slots_expected()),
            own: &mailboxes[number as usize],
            next: &mailboxes[((number + 1) % threads) as usize],
            outgoing: Vec::with_capacity(BATCH),
            incoming: Vec::with_capacity(MAILBOX),
            outcome: Outcome { left_out: process.left_out(), ..Outcome::default() },
            process,
        })
    };
    let workers: Vec<Worker> = (0..threads).map(worker).collect::<Result<_, String>>()?;
    let playing = AtomicUsize::new(workers.len());
    let outcomes: Vec<Outcome> = thread::scope(|scope| {
        let threads: Vec<_> = workers.into_iter().map(|worker| scope.spawn(|| worker.run(&playing))).collect();
        threads.into_iter().map(|thread| thread.join().expect("a worker does not panic")).collect()
    });
    Ok(outcomes.into_iter().fold(Outcome::default(), |sum, one| Outcome {
        checksum: sum.checksum.wrapping_add(one.checksum),
        births: sum.births + one.births,
        deaths: sum.deaths + one.deaths,
        remote: sum.remote + one.remote,
        left_out: one.left_out,
    }))
}

impl Worker<'_> {
    fn run(mut self, playing: &AtomicUsize) -> Outcome {
        let mut events = vec![Event::Free { slot: 0, size: 0, remote: false }; EVENTS];
        loop {
            let made = self.process.fill(&mut events);
            if made == 0 {
                break;
            }
            events[..made].iter().for_each(|event| self.play(*event));
            self.receive();
        }
        self.send();
        // ORDERING: pairs with the load below: who sees nobody playing finds in its mailbox all that was sent.
        playing.fetch_sub(1, Ordering::Release);
        // ORDERING: pairs with the subtraction above.
        while playing.load(Ordering::Acquire) > 0 {
            self.receive();
            thread::sleep(REST);
        }
        self.receive();
        for (slot, size) in self.process.live() {
            if let Some(object) = self.objects[slot as usize].take() {
                self.outcome.checksum = self.outcome.checksum.wrapping_add(object.end(size));
            }
        }
        self.outcome
    }

    fn play(&mut self, event: Event) {
        match event {
            Event::Alloc { slot, size } => {
                let object = Object::new(size, mix(self.key.wrapping_add(u64::from(slot))));
                // Slots are used for the first time in ascending order.
                if slot as usize == self.objects.len() {
                    self.objects.push(None);
                }
                self.objects[slot as usize] = Some(object);
                self.outcome.births += 1;
            }
            Event::Free { slot, size, remote } => {
                let Some(object) = self.objects[slot as usize].take() else { return };
                self.outcome.deaths += 1;
                if !remote {
                    self.outcome.checksum = self.outcome.checksum.wrapping_add(object.end(size));
                    return;
                }
                self.outcome.remote += 1;
                self.outgoing.push((object, size));
                if self.outgoing.len() == BATCH {
                    self.send();
                }
            }
        }
    }

    /// Gives what was collected to the next thread.
    fn send(&mut self) {
        while !self.next.put(&mut self.outgoing) {
            self.receive();
            thread::yield_now();
        }
    }

    /// Frees what others sent.
    fn receive(&mut self) {
        self.own.empty_into(&mut self.incoming);
        for (object, size) in self.incoming.drain(..) {
            self.outcome.checksum = self.outcome.checksum.wrapping_add(object.end(size));
        }
    }
}

#[cfg(test)]
mod tests;
