//! Runs test programs side by side, while others are being built.

use super::job::{self, Finished, Job, Kind};
use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::mpsc::{Receiver, Sender};
use std::thread;
use std::time::Duration;

#[derive(Debug)]
pub enum Event {
    Built(Vec<Job>),
    /// And the variable that names it.
    Library(&'static str, PathBuf),
    Broken(String),
    Done,
    Ended(Finished),
}

pub struct Pool {
    pub last: HashMap<String, f64>,
    pub limit: Duration,
    waiting: Vec<Job>,
    running: Vec<Kind>,
    libraries: HashMap<&'static str, PathBuf>,
}

impl Pool {
    pub fn new(last: HashMap<String, f64>, limit: Duration) -> Self {
        Self { last, limit, waiting: Vec::new(), running: Vec::new(), libraries: HashMap::new() }
    }

    pub fn run(
        mut self,
        (send, events): (Sender<Event>, Receiver<Event>),
        mut builders: usize,
        mut report: impl FnMut(Finished),
    ) -> Vec<String> {
        let mut broken = Vec::new();
        while builders > 0 || !self.running.is_empty() {
            match events.recv().expect("this thread keeps a sender") {
                Event::Built(jobs) => self.waiting.extend(jobs),
                Event::Library(variable, path) => drop(self.libraries.insert(variable, path)),
                Event::Broken(why) => broken.push(why),
                Event::Done => builders -= 1,
                Event::Ended(finished) => {
                    if let Some(place) = self.running.iter().position(|kind| *kind == finished.kind) {
                        self.running.swap_remove(place);
                    }
                    report(finished);
                }
            }
            while let Some(job) = self.next() {
                self.running.push(job.kind);
                let (send, limit) = (send.clone(), self.limit);
                thread::spawn(move || drop(send.send(Event::Ended(job::run(&job, limit)))));
            }
        }
        broken.extend(self.waiting.iter().map(|job| format!("{} did not run: a library was not built", job.name)));
        broken
    }

    /// A job without a known time counts as quickest; [`SLOW`](super::plan::SLOW) names slow ones.
    fn next(&mut self) -> Option<Job> {
        let may_start = |job: &Job| {
            let beside = self.running.iter().filter(|kind| **kind == job.kind).count();
            beside < job.kind.at_once() && job.needs.iter().all(|needed| self.libraries.contains_key(needed))
        };
        let seconds = |job: &Job| self.last.get(&job.name).copied().unwrap_or(0.0);
        let ready = self.waiting.iter().enumerate().filter(|(_, job)| may_start(job));
        // max_by alone would choose the last of equals.
        let (place, _) = ready.rev().max_by(|a, b| seconds(a.1).total_cmp(&seconds(b.1)))?;
        let mut job = self.waiting.remove(place);
        let path = |needed: &&str| self.libraries[needed].to_string_lossy().into_owned();
        job.env.extend(job.needs.iter().map(|needed| ((*needed).to_owned(), path(needed))));
        Some(job)
    }
}

#[cfg(test)]
mod tests;
