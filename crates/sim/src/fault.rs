//! A plan of refusals. It numbers the fallible calls from 1 on and refuses those that its rule
//! names. The test keeps a clone, changes the rule between steps and reads what was refused.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// A call that can be refused: of `Floor`, `SpanSource` (from `Alloc` on) and `Mappings` (from
/// `Map` on, `Move` for `replace` and `move_memory`).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Call {
    Reserve,
    Back,
    Unback,
    Collapse,
    /// Refused by [`FaultPlan::set_only`] alone, like the next: refused advice is no failure.
    AdviseHuge,
    AdviseSmall,
    Alloc,
    Resize,
    Map,
    Grow,
    Move,
}

/// Which calls, numbered from 1 since the rule was set, are refused.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum FaultRule {
    #[default]
    Never,
    Nth(u64),
    /// Every k-th; k is at least 1.
    Every(u64),
    /// This one and all behind it.
    From(u64),
}

impl FaultRule {
    /// Whether the rule names the call of this number.
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
    /// Its number since the rule was set.
    pub number: u64,
    pub call: Call,
}

/// Refusals listed one by one; later ones are only counted.
const REMEMBERED: usize = 1024;

#[derive(Debug, Default)]
struct Plan {
    rule: FaultRule,
    only: Option<Call>,
    calls: u64,
    refused: u64,
    record: Vec<Refusal>,
}

/// A plan of refusals. Clones share it; the default refuses nothing.
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

    /// Changes the rule: counting starts anew, for every kind of call, and the record is empty.
    pub fn set(&self, rule: FaultRule) {
        assert!(rule != FaultRule::Every(0), "FaultRule::Every(0): the period must be at least 1");
        *self.lock() = Plan { rule, ..Plan::default() };
    }

    /// As [`Self::set`], but only calls of one kind are counted and refused.
    pub fn set_only(&self, call: Call, rule: FaultRule) {
        self.set(rule);
        self.lock().only = Some(call);
    }

    /// Whether this call, the next one, is to be refused.
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

    /// Calls counted since the rule was set.
    pub fn calls(&self) -> u64 {
        self.lock().calls
    }

    /// Calls refused since the rule was set.
    pub fn refused(&self) -> u64 {
        self.lock().refused
    }

    /// The first 1024 refusals since the rule was set, in order.
    pub fn record(&self) -> Vec<Refusal> {
        self.lock().record.clone()
    }
}

#[cfg(test)]
mod tests;
