//! Limits set while others read them: the last counts, and no check stays armed for an old one.
#![cfg(loom)]

#[path = "../src/govern/limits"]
#[allow(dead_code)]
mod limits {
    pub mod changes;
}

#[path = "../../heap/src/gate.rs"]
#[allow(dead_code)]
mod gate;

use craton_base::atomic::model::{check, check_weakened};
use craton_base::atomic::{AtomicU64, Ordering::Relaxed};
use craton_base::loom::thread;
use gate::Gate;
use limits::changes::Changes;
use std::sync::Arc;

const OLD: u64 = 1 << 40;
const NEW: u64 = 1 << 30;
/// Between both limits.
const USED: u64 = 1 << 35;

fn gate() -> Arc<Gate> {
    let gate = Gate::open();
    gate.set(Some(OLD), None);
    assert!(!gate.is_outside(USED) && gate.hard().is_none() && gate.huge() == 0);
    Arc::new(gate)
}

fn beside(gate: &Arc<Gate>, f: impl Fn(&Gate) + 'static) -> thread::JoinHandle<()> {
    let gate = Arc::clone(gate);
    thread::spawn(move || f(&gate))
}

fn set_while_armed() {
    let gate = gate();
    let looker = beside(&gate, |gate| gate.rearm_above(OLD + 1));
    let user = beside(&gate, Gate::rearm);
    gate.set(Some(NEW), None);
    looker.join().unwrap();
    user.join().unwrap();
    assert!(gate.is_outside(OLD + OLD / 8) || gate.low() == NEW, "somebody looks");
    assert!(gate.high() == NEW + 1 || (gate.low() == NEW && gate.high() <= OLD + OLD / 8), "by the new limit");
}

#[test]
fn a_limit_that_is_set_while_the_gate_is_armed_counts() {
    check(3, set_while_armed);
}

#[test]
#[should_panic = "by the new limit"]
fn without_its_orderings_an_old_limit_stays() {
    check_weakened(3, set_while_armed);
}

#[test]
fn a_gate_that_is_armed_above_looks_out_for_the_way_down_too() {
    check(4, || {
        let gate = gate();
        gate.rearm_above(OLD + 1);
        let looker = beside(&gate, |gate| gate.rearm_above(OLD + 2));
        gate.rearm();
        looker.join().unwrap();
        assert!(gate.high() == OLD + 1 || gate.low() == OLD, "else the limit could be passed again unseen");
    });
}

#[test]
fn of_two_that_count_huge_objects_none_is_lost() {
    check(4, || {
        let gate = gate();
        let other = beside(&gate, |gate| {
            gate.add_huge(5);
            gate.remove_huge(2);
        });
        gate.add_huge(7);
        other.join().unwrap();
        assert_eq!(gate.huge(), 10);
    });
}

struct Options {
    given: [AtomicU64; 2],
    follows: AtomicU64,
    changes: Changes,
}

impl Options {
    fn new() -> Arc<Self> {
        let new = || AtomicU64::new(0);
        let options = Self { given: [new(), new()], follows: new(), changes: Changes::new() };
        options.changes.until_settled(|| options.apply());
        Arc::new(options)
    }

    fn apply(&self) {
        let sum = self.given.iter().map(|option| option.load(Relaxed)).sum();
        self.follows.store(sum, Relaxed);
    }

    fn set(&self, option: usize, value: u64) {
        self.given[option].store(value, Relaxed);
        self.changes.record();
        self.changes.until_settled(|| self.apply());
    }
}

fn set_while_applied() {
    let options = Options::new();
    let other = {
        let options = Arc::clone(&options);
        thread::spawn(move || options.set(0, 1))
    };
    let looker = {
        let options = Arc::clone(&options);
        thread::spawn(move || options.changes.until_settled(|| options.apply()))
    };
    options.set(1, 2);
    other.join().unwrap();
    looker.join().unwrap();
    assert_eq!(options.follows.load(Relaxed), 3, "what was set last counts");
}

#[test]
fn options_that_are_set_while_others_are_applied_count() {
    check(3, set_while_applied);
}

#[test]
#[should_panic = "what was set last counts"]
fn without_its_orderings_an_option_is_lost() {
    check_weakened(3, set_while_applied);
}
