//! A plan of refusals: its rule names those of the numbered fallible calls to refuse.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// `Move` stands for `replace` and `move_memory`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Call {
    Reserve,
    Back,
    Unback,
    Collapse,
    /// Only [`FaultPlan::set_only`] refuses this and the next: refused advice is no failure.
    AdviseHuge,
    AdviseSmall,
    Alloc,
    Resize,
    Map,
    Grow,
    Move,
}

/// Counted since the rule was set.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum FaultRule {
    #[default]
    Never,
    Nth(u64),
    /// k ≥ 1.
    Every(u64),
    From(u64),
}

impl FaultRule {
    pub(crate) fn names(self, number: u64) -> bool {
        match self {
            Self::Never => false,
            Self::Nth(n) => number == n,
            Self::Every(k) => number.checked_rem(k) == Some(0),
            Self::From(n) => number >= n,
        }
    }
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Refusal {
    pub number: u64,
    pub call: Call,
}

/// Later refusals are only counted.
const REMEMBERED: usize = 1024;

#[derive(Debug, Default)]
struct Plan {
    rule: FaultRule,
    only: Option<Call>,
    calls: u64,
    refused: u64,
    record: Vec<Refusal>,
}

/// Clones share it.
#[derive(Clone, Debug, Default)]
pub struct FaultPlan {
    plan: Arc<Mutex<Plan>>,
}

impl FaultPlan {
    pub fn new(rule: FaultRule) -> Self {
        let plan = Self::default();
        plan.set(rule);
        plan
    }

    fn lock(&self) -> MutexGuard<'_, Plan> {
        self.plan.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub fn set(&self, rule: FaultRule) {
        assert!(rule != FaultRule::Every(0), "FaultRule::Every(0): the period must be at least 1");
        *self.lock() = Plan { rule, ..Plan::default() };
    }

    pub fn set_only(&self, call: Call, rule: FaultRule) {
        self.set(rule);
        self.lock().only = Some(call);
    }

    #[must_use]
    pub fn refuses(&self, call: Call) -> bool {
        let mut plan = self.lock();
        let is_advice = matches!(call, Call::AdviseHuge | Call::AdviseSmall);
        if plan.only.map_or(is_advice, |only| only != call) {
            return false;
        }
        plan.calls += 1;
        let number = plan.calls;
        let refused = plan.rule.names(number);
        if refused {
            plan.refused += 1;
            if plan.record.len() < REMEMBERED {
                plan.record.push(Refusal { number, call });
            }
        }
        refused
    }

    pub fn calls(&self) -> u64 {
        self.lock().calls
    }

    pub fn refused(&self) -> u64 {
        self.lock().refused
    }

    /// The first 1024.
    pub fn record(&self) -> Vec<Refusal> {
        self.lock().record.clone()
    }
}

#[cfg(test)]
mod tests;
