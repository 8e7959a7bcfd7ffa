//! A caller of the extents: redo lines, epochs and settling.

use crate::book_log::LogConfig;
use crate::extents::{ExtentConfig, ExtentError, ExtentKind, Extents, Home, PAGE_BYTES, Plan};
use craton_base::Medium;
use craton_sim::SimPersistent;
use std::collections::{BTreeMap, BTreeSet};

pub(super) const DATA: u64 = 65_536;

pub(super) fn config(stripes: u32, usage_bytes: u64) -> ExtentConfig {
    ExtentConfig { data: DATA, log: LogConfig { stripes, usage_bytes, ..LogConfig::new(4096, 0x5a17) } }
}

#[derive(Clone, Copy, Debug)]
pub(super) struct Line {
    /// At its commit.
    pub(super) step: u64,
    pub(super) epoch: u64,
    pub(super) home: Home,
    /// `true` allocates.
    pub(super) what: Option<(bool, u64, u32)>,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Stage {
    Planned,
    Committed(u64),
    Stored(u64),
}

#[derive(Clone, Copy, Debug)]
pub(super) struct Under {
    pub(super) plan: Plan,
    pub(super) is_alloc: bool,
    pub(super) stage: Stage,
}

pub(super) struct World<const F: bool> {
    pub(super) medium: SimPersistent<F>,
    pub(super) extents: Extents,
    /// Committed.
    pub(super) live: BTreeMap<u64, u32>,
    pub(super) under: Vec<Under>,
    pub(super) lines: Vec<Line>,
    pub(super) epoch: u64,
    /// Epoch, and the step at which it was settled.
    pub(super) settled: Vec<(u64, u64)>,
    pub(super) now_ms: u64,
}

impl<const F: bool> World<F> {
    pub(super) fn new(limit: u64, config: ExtentConfig) -> Self {
        let medium = SimPersistent::new(DATA, limit);
        let extents = Extents::create(&medium, config);
        Self::over(medium, extents)
    }

    pub(super) fn over(medium: SimPersistent<F>, extents: Extents) -> Self {
        extents.begin_epoch(1);
        let (live, under, lines) = (BTreeMap::new(), Vec::new(), Vec::new());
        Self { medium, extents, live, under, lines, epoch: 1, settled: Vec::new(), now_ms: 0 }
    }

    pub(super) fn plan_alloc(&mut self, pages: u32, kind: ExtentKind) -> Result<(), ExtentError> {
        let plan = self.extents.plan_alloc(&self.medium, pages, kind)?;
        assert_eq!(plan.pages, pages);
        assert_eq!(self.load(plan.home.at), 0, "a slot is used once");
        let busy = self.under.iter().map(|under| (under.plan.page, under.plan.pages));
        let all: Vec<_> = self.live.iter().map(|(page, pages)| (*page, *pages)).chain(busy).collect();
        let overlap = |(page, n): &(u64, u32)| plan.page < page + u64::from(*n) && *page < plan.page + u64::from(pages);
        assert_eq!(all.iter().find(|there| overlap(there)), None, "{plan:?} is free");
        assert!((plan.page + u64::from(pages)) * PAGE_BYTES <= self.medium.len());
        self.under.push(Under { plan, is_alloc: true, stage: Stage::Planned });
        Ok(())
    }

    pub(super) fn plan_free(&mut self, page: u64) -> Result<(), ExtentError> {
        let plan = self.extents.plan_free(&self.medium, page)?;
        assert_eq!(self.load(plan.home.at), 0, "a slot is used once");
        assert_eq!(self.live.get(&page), Some(&plan.pages));
        self.under.push(Under { plan, is_alloc: false, stage: Stage::Planned });
        Ok(())
    }

    pub(super) fn advance(&mut self, at: usize) {
        let Under { plan, is_alloc, stage } = self.under[at];
        let (epoch, step) = (self.epoch, self.medium.steps());
        match stage {
            Stage::Planned => {
                if !is_alloc {
                    // A line about a word of the object, which the heap would drop.
                    let home = Home { at: plan.page * PAGE_BYTES, value: 0xdead_0000 + step };
                    self.lines.push(Line { step, epoch, home, what: None });
                }
                let what = Some((is_alloc, plan.page, plan.pages));
                self.lines.push(Line { step, epoch, home: plan.home, what });
                if is_alloc {
                    self.live.insert(plan.page, plan.pages)
                } else {
                    self.live.remove(&plan.page)
                };
                self.under[at].stage = Stage::Committed(epoch);
            }
            Stage::Committed(epoch) => {
                self.medium.store(plan.home.at, plan.home.value);
                self.under[at].stage = Stage::Stored(epoch);
            }
            Stage::Stored(epoch) => {
                if !is_alloc {
                    self.extents.finish_free(&plan, epoch);
                }
                self.under.swap_remove(at);
            }
        }
    }

    /// Begins an epoch; settles the one before if its lines are stored.
    pub(super) fn settle(&mut self) {
        self.epoch += 1;
        self.extents.begin_epoch(self.epoch);
        let old = self.epoch - 1;
        if self.under.iter().any(|under| matches!(under.stage, Stage::Committed(_))) {
            return;
        }
        let homes: BTreeSet<u64> =
            self.lines.iter().filter(|line| line.what.is_some()).map(|l| l.home.at / 64).collect();
        for line in homes {
            if line * 64 < self.medium.len() {
                self.medium.flush(line * 64);
            }
        }
        self.medium.fence();
        self.settled.push((old, self.medium.steps()));
        // A line redone once is never redone again.
        self.lines.iter_mut().filter(|line| line.epoch <= old).for_each(|line| line.epoch = 0);
        self.extents.settled(old);
    }

    pub(super) fn tick(&mut self, passed_ms: u64) {
        self.now_ms += passed_ms;
        let settled = self.settled.last().map_or(0, |settled| settled.0);
        self.extents.tick(&self.medium, self.now_ms, settled);
    }

    pub(super) fn cancel(&mut self, at: usize) {
        if self.under[at].stage == Stage::Planned {
            self.extents.cancel(&self.under[at].plan);
            self.under.swap_remove(at);
        }
    }

    pub(super) fn drain(&mut self) {
        while !self.under.is_empty() {
            self.advance(0);
        }
    }

    pub(super) fn alloc(&mut self, pages: u32, kind: ExtentKind) -> Result<u64, ExtentError> {
        self.plan_alloc(pages, kind)?;
        let at = self.under.len() - 1;
        let page = self.under[at].plan.page;
        (0..3).for_each(|_| self.advance(at));
        Ok(page)
    }

    pub(super) fn free(&mut self, page: u64) -> Result<(), ExtentError> {
        self.plan_free(page)?;
        let at = self.under.len() - 1;
        (0..3).for_each(|_| self.advance(at));
        Ok(())
    }

    pub(super) fn load(&self, at: u64) -> u64 {
        self.medium.load(at)
    }

    pub(super) fn check(&self) {
        self.extents.check().unwrap();
        let mut expected = self.live.clone();
        for Under { plan, is_alloc, stage } in &self.under {
            // Planned extents are in the map already.
            if *is_alloc || *stage != Stage::Planned {
                expected.insert(plan.page, plan.pages);
            }
        }
        let found: BTreeMap<u64, u32> = self.extents.list().iter().map(|there| (there.page, there.pages)).collect();
        assert_eq!(found, expected);
        assert_eq!(self.extents.stats().used_pages, expected.values().map(|pages| u64::from(*pages)).sum());
    }
}

pub(super) fn redo<const F: bool>(medium: &SimPersistent<F>, lines: impl Iterator<Item = Home>) {
    for home in lines {
        if home.at < medium.len() {
            medium.store(home.at, home.value);
            medium.flush(home.at);
        }
    }
    medium.fence();
}

pub(super) fn reopen<const F: bool>(medium: SimPersistent<F>, config: ExtentConfig) -> World<F> {
    let extents = Extents::rebuild(&medium, config).unwrap();
    let live = extents.list().iter().map(|there| (there.page, there.pages)).collect();
    World { live, ..World::over(medium, extents) }
}
