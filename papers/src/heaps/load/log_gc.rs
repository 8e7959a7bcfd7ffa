//! Extents of Craton's heap and their log alone: what collecting the log costs (NVAlloc §6.6,
//! figure 17, there by the log's part of memory).

use crate::heaps::{Figures, Task};
use craton_base::{Medium, Space};
use craton_lab::rng::Rng;
use craton_pheap::{ExtentConfig, ExtentError, ExtentKind, Extents, LogConfig, Plan};
use std::time::Instant;

const HEADER: u64 = 4096;
const DATA: u64 = 1 << 20;
const FIRST: u64 = DATA + (1 << 20);
/// As a heap's ring has them.
const EPOCH: u64 = 256;
const SLOTS: u64 = 1000;
/// 32 to 512 KiB.
const LEAST_PAGES: u32 = 8;
const MOST_PAGES: u32 = 128;

struct Load<'a, M> {
    medium: &'a M,
    extents: Extents,
    operations: u64,
}

impl<M: Medium + Space> Load<'_, M> {
    fn commit(&mut self, plan: &Plan) {
        self.medium.store(plan.home.at, plan.home.value);
        self.medium.flush(plan.home.at);
        self.medium.fence();
        self.operations += 1;
        if self.operations.is_multiple_of(EPOCH) {
            let epoch = self.epoch();
            self.extents.begin_epoch(epoch + 1);
            self.extents.settled(epoch);
            self.extents.tick(self.medium, 0, epoch);
        }
    }

    fn epoch(&self) -> u64 {
        self.operations / EPOCH + 1
    }

    fn alloc(&mut self, pages: u32) -> Result<u64, ExtentError> {
        let plan = self.extents.plan_alloc(self.medium, pages, ExtentKind::Object)?;
        self.commit(&plan);
        Ok(plan.page)
    }

    fn free(&mut self, page: u64) -> Result<(), ExtentError> {
        let plan = self.extents.plan_free(self.medium, page)?;
        let epoch = self.epoch();
        self.commit(&plan);
        self.extents.finish_free(&plan, epoch);
        Ok(())
    }
}

pub fn run<M: Medium + Space>(task: &Task, medium: &M) -> Result<Figures, String> {
    medium.resize(FIRST).map_err(|e| format!("the file cannot grow: {e:?}"))?;
    let log = LogConfig { usage_bytes: task.log_usage.unwrap_or(u64::MAX), ..LogConfig::new(HEADER, task.seed) };
    let extents = Extents::create(medium, ExtentConfig { data: DATA, log });
    extents.begin_epoch(1);
    let mut load = Load { medium, extents, operations: 0 };
    replace(task, &mut load).map_err(|e| format!("the extents refused a request: {e:?}"))
}

fn replace<M: Medium + Space>(task: &Task, load: &mut Load<'_, M>) -> Result<Figures, ExtentError> {
    let mut rng = Rng::new(task.seed, 0);
    let mut pages = || LEAST_PAGES + rng.below(MOST_PAGES - LEAST_PAGES + 1);
    let mut slots = Vec::new();
    for _ in 0..task.of(SLOTS) {
        slots.push(load.alloc(pages())?);
    }
    let mut rng = Rng::new(task.seed, 1);
    let (start, mut measured) = (Instant::now(), None);
    loop {
        for _ in 0..EPOCH {
            let slot = rng.below(slots.len() as u32) as usize;
            load.free(slots[slot])?;
            slots[slot] = load.alloc(pages())?;
        }
        let pace = task.pace();
        match measured {
            None if start.elapsed() >= pace.warm => {
                measured = Some((Instant::now(), load.operations, load.extents.stats().log));
            }
            Some((since, before, log)) if since.elapsed() >= pace.run => {
                let operations = (load.operations - before) as f64;
                let now = load.extents.stats().log;
                let each_million = |n: u64| n as f64 * 1e6 / operations;
                return Ok([
                    ("ns_per_op", since.elapsed().as_secs_f64() * 1e9 / operations),
                    ("log_bytes", now.chunks as f64 * 1024.0),
                    ("slow_runs", each_million(now.slow_runs - log.slow_runs)),
                    ("copied", each_million(now.copied - log.copied)),
                    ("fast_freed", each_million(now.fast_freed - log.fast_freed)),
                ]
                .map(|(name, value)| (name.to_owned(), value))
                .into());
            }
            _ => {}
        }
    }
}
