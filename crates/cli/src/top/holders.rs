//! The functions that hold a process's memory, by its heap profile.
//!
//! **Cost.** Files are searched for the names of stacks that are new.

use crate::profile::table;
use craton_inspect::{Call, Lines, Measure, PerfMap, Site, Stack, Stacks, Sums, Watch, calls, root_of};
use craton_lab::format::columns;
use std::collections::HashMap;

/// More lines than a screen has are of no use.
const MOST: usize = 100;

#[derive(Default)]
pub struct Holders {
    named: HashMap<Vec<u64>, Vec<Call>>,
}

impl Holders {
    /// A line a function, those with most bytes first; or the reason without any.
    pub fn lines(&mut self, pid: u32, watch: &Watch) -> Vec<String> {
        let profile = match watch.profile() {
            Ok(profile) => profile,
            Err(why) => return vec![why],
        };
        let is_new = |site: &&Site| !self.named.contains_key(&site.stack);
        let new: Vec<Vec<u64>> = profile.sites.iter().filter(is_new).map(|site| site.stack.clone()).collect();
        if !new.is_empty() {
            let lines = Lines::new(&profile.maps).with_run_time(PerfMap::of(pid.into()));
            let mut lines = lines.with_root(Some(root_of(pid)));
            self.named.extend(new.into_iter().map(|stack| (stack.clone(), calls(&stack, &mut lines))));
        }
        let stack = |site: &Site| Stack {
            calls: self.named.get(&site.stack).cloned().unwrap_or_default(),
            sums: Sums::of(site),
        };
        let stacks = Stacks::joined(profile.sites.iter().map(stack));
        let rows = table::rows(&stacks, Measure::Live, MOST);
        columns(&rows, &[4]).iter().map(|row| row.join("  ")).collect()
    }
}
