//! A process's heap profile at moments of the past, and as a flame graph.
//!
//! **State.** Stacks are stored once; a moment has numbers for each. Functions get their names when
//! a request first asks for them, since debug information takes time to read.

use crate::history::History;
use crate::processes::now_ms;
use craton_inspect::{Call, Count, Lines, Map, PerfMap, Profile, Site, Stack, Stacks, Sums, Watch, calls, root_of};
use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

const MOST: usize = 120;

#[derive(Clone, Debug, Default)]
pub struct Moment {
    pub interval: u64,
    pub samples: u64,
    pub live_samples: u64,
    pub dropped: u64,
    /// By `debug=audit`.
    pub exact_objects: u64,
    /// Stack's number, and its counts.
    sites: Vec<(u32, Site)>,
}

#[derive(Debug)]
pub struct Moments {
    numbers: HashMap<Vec<u64>, u32>,
    /// By number.
    stacks: Vec<Vec<u64>>,
    named: BTreeMap<u32, Arc<[Call]>>,
    maps: Vec<Map>,
    pid: u32,
    all: History<Moment>,
    /// Why there is no profile.
    pub why: Option<String>,
}

impl Default for Moments {
    fn default() -> Self {
        Self {
            numbers: HashMap::new(),
            stacks: Vec::new(),
            named: BTreeMap::new(),
            maps: Vec::new(),
            pid: 0,
            all: History::new(MOST),
            why: None,
        }
    }
}

impl Moments {
    /// Reads the profile if there were samples since.
    pub fn look(&mut self, watch: &Watch) {
        match watch.profile() {
            Ok(profile) => self.add(profile),
            Err(why) => self.why = Some(why),
        }
    }

    fn add(&mut self, profile: Profile) {
        self.why = None;
        let is_same = |(_, last): &(u64, Moment)| {
            let numbers = (last.samples, last.live_samples, last.dropped, last.exact_objects);
            numbers == (profile.samples, profile.live_samples, profile.dropped, profile.exact.objects)
        };
        if self.all.last().is_some_and(is_same) {
            return;
        }
        (self.maps, self.pid) = (profile.maps, profile.pid as u32);
        let sites = profile.sites.into_iter().map(|mut site| {
            let stack = std::mem::take(&mut site.stack);
            let next = self.stacks.len() as u32;
            let number = *self.numbers.entry(stack).or_insert_with_key(|stack| {
                self.stacks.push(stack.clone());
                next
            });
            (number, site)
        });
        let moment = Moment {
            interval: profile.interval,
            samples: profile.samples,
            live_samples: profile.live_samples,
            dropped: profile.dropped,
            exact_objects: profile.exact.objects,
            sites: sites.collect(),
        };
        self.all.push(now_ms(), moment);
    }

    pub fn times(&self) -> Vec<u64> {
        self.all.all().iter().map(|(at, _)| *at).collect()
    }

    /// The last moment until then.
    pub fn at(&self, at_ms: u64) -> Option<(u64, Moment)> {
        self.all.at(at_ms).cloned()
    }

    /// With captive bytes of now, which the process's samples and pages tell.
    ///
    /// # Errors
    /// As [`Watch::profile`].
    pub fn captive(&mut self, watch: &Watch) -> Result<(u64, Moment), String> {
        let mut profile = watch.profile()?;
        watch.add_captive(&mut profile)?;
        let captive: Vec<(Vec<u64>, Count)> =
            profile.sites.iter().map(|site| (site.stack.clone(), site.captive)).collect();
        self.add(profile);
        let (at, mut moment) = self.all.last().cloned().ok_or("there is no sample yet")?;
        let captive: HashMap<u32, Count> =
            captive.into_iter().filter_map(|(stack, count)| Some((*self.numbers.get(&stack)?, count))).collect();
        for (number, site) in &mut moment.sites {
            site.captive = captive.get(number).copied().unwrap_or_default();
        }
        Ok((at, moment))
    }

    /// By function and line.
    pub fn stacks(&mut self, moment: &Moment) -> Stacks {
        self.name(moment);
        let stack = |(number, site): &(u32, Site)| {
            let calls = self.named.get(number).map(|calls| calls.to_vec()).unwrap_or_default();
            Stack { calls, sums: Sums::of(site) }
        };
        Stacks::joined(moment.sites.iter().map(stack))
    }

    fn name(&mut self, moment: &Moment) {
        let new: Vec<u32> =
            moment.sites.iter().map(|(number, _)| *number).filter(|number| !self.named.contains_key(number)).collect();
        if new.is_empty() {
            return;
        }
        let lines = Lines::new(&self.maps).with_run_time(PerfMap::of(self.pid.into()));
        let mut lines = lines.with_root(Some(root_of(self.pid)));
        for number in new {
            let found = calls(&self.stacks[number as usize], &mut lines);
            self.named.insert(number, found.into());
        }
    }
}

#[cfg(test)]
mod tests;
