//! Hooks that record a heap's reports, for each thread apart.

use super::world::{Metadata, World, hardened_world, world_of};
use crate::hooks::{Countdown, Damage, Ended, Event, Hooks, SpanEvent, Usage};
use craton_base::Pages;
use craton_sim::Rng;
use std::cell::RefCell;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::vec::Vec;

pub(crate) const METADATA: Metadata = (5000, 300);

#[derive(Default)]
struct Log {
    spans: Vec<SpanEvent>,
    events: Vec<Event>,
    usages: Vec<(Usage, Pages)>,
    refills: u64,
    damage: Option<Damage>,
    bound: Option<u32>,
    keeps: bool,
    /// Countdowns that ended, by class, and among how many requests chance chooses.
    ended: Vec<(usize, u32)>,
    forgone: Vec<(usize, u64)>,
    /// Which request is the sample.
    nth: u32,
    /// Countdowns by chance, of these bytes on average; each stands for them.
    gaps: Option<(u64, Rng)>,
    handlers: bool,
}

std::thread_local! {
    static LOG: RefCell<Log> = RefCell::default();
}

fn log<R>(act: impl FnOnce(&mut Log) -> R) -> R {
    LOG.with_borrow_mut(act)
}

pub(crate) struct Recorder;

impl Hooks for Recorder {
    fn span(event: SpanEvent) {
        log(|log| log.spans.push(event));
    }

    fn usage(usage: Usage, releasable: impl FnOnce() -> Pages) {
        log(|log| log.usages.push((usage, releasable())));
    }

    fn event(event: Event) -> u64 {
        log(|log| {
            let Event::Refills { chains, .. } = event else {
                log.events.push(event);
                return 0;
            };
            log.events.push(event);
            log.refills += u64::from(chains);
            log.refills - u64::from(chains)
        })
    }

    fn bound(_class: usize, want: u32) -> u32 {
        log(|log| log.bound.map_or(want, |bound| want.min(bound)))
    }

    fn count_ended(class: usize, ended: Countdown, among: u32) -> Ended {
        log(|log| {
            log.ended.push((class, among));
            if let Some((mean, random)) = &mut log.gaps {
                return by_chance(*mean, random, ended, among);
            }
            Ended {
                next: Countdown { left: i64::MAX, bytes: 0 },
                bytes: ended.left.unsigned_abs() * u64::from(log.nth > 0),
                nth: log.nth,
            }
        })
    }

    fn forgone(class: usize, bytes: u64) {
        log(|log| log.forgone.push((class, bytes)));
    }

    fn handlers_allocate() -> bool {
        log(|log| log.handlers)
    }

    fn keeps_mappings() -> bool {
        log(|log| log.keeps)
    }

    fn corrupt(damage: Damage) -> ! {
        log(|log| log.damage = Some(damage));
        panic!("the heap is damaged: {damage:?}")
    }
}

/// A heap whose reports are recorded, and a cache.
pub(crate) fn watched(hugepages: u32) -> World<Recorder> {
    log(|log| *log = Log::default());
    world_of(hugepages, 256 << 10, METADATA)
}

pub(crate) fn hardened_watched(hugepages: u32) -> World<Recorder> {
    log(|log| *log = Log::default());
    hardened_world(hugepages)
}

fn gap(mean: u64, random: &mut Rng) -> i64 {
    let uniform = (random.below(1 << 52) + 1) as f64 / (1u64 << 52) as f64;
    1 + (-uniform.ln() * mean as f64) as i64
}

fn by_chance(mean: u64, random: &mut Rng, ended: Countdown, among: u32) -> Ended {
    let (mut left, mut points) = (ended.left, 1);
    loop {
        left += gap(mean, random);
        if left >= 0 {
            break;
        }
        points += 1;
    }
    Ended {
        next: Countdown { left, bytes: mean },
        bytes: ended.bytes + (points - 1) * mean,
        nth: 1 + random.below(among.into()) as u32,
    }
}

/// Draws countdowns by chance from now on; returns the first.
pub(crate) fn set_gaps(mean: u64, seed: u64) -> Countdown {
    let mut random = Rng::new(seed);
    let left = gap(mean, &mut random);
    log(|log| log.gaps = Some((mean, random)));
    Countdown { left, bytes: mean }
}

/// Which request is the sample once a countdown has ended.
pub(crate) fn set_sample(nth: u32) {
    log(|log| log.nth = nth);
}

/// A signal handler was seen to allocate.
pub(crate) fn set_handlers() {
    log(|log| log.handlers = true);
}

/// Classes in which countdowns ended, and among how many requests the sample was to be chosen.
pub(crate) fn ended() -> Vec<(usize, u32)> {
    log(|log| core::mem::take(&mut log.ended))
}

/// Classes that no longer awaited a sample, and what it stood for.
pub(crate) fn forgone() -> Vec<(usize, u64)> {
    log(|log| core::mem::take(&mut log.forgone))
}

/// May keep freed mappings.
pub(crate) fn keeping(hugepages: u32) -> World<Recorder> {
    let w = watched(hugepages);
    log(|log| log.keeps = true);
    w
}

pub(crate) fn spans() -> Vec<SpanEvent> {
    log(|log| core::mem::take(&mut log.spans))
}

/// Without refills.
pub(crate) fn events() -> Vec<Event> {
    let all = log(|log| core::mem::take(&mut log.events));
    all.into_iter().filter(|event| !matches!(event, Event::Refills { .. })).collect()
}

/// Refills that were reported since the last call of this or of [`events`].
pub(crate) fn refills() -> Vec<Event> {
    log(|log| core::mem::take(&mut log.events)).into_iter().filter(|e| matches!(e, Event::Refills { .. })).collect()
}

/// The last published usage, with what could be returned, and the number of reports.
pub(crate) fn usage() -> (Option<(Usage, Pages)>, usize) {
    let all = log(|log| core::mem::take(&mut log.usages));
    (all.last().copied(), all.len())
}

pub(crate) fn set_bound(bound: u32) {
    log(|log| log.bound = Some(bound));
}

pub(crate) fn set_keeps(keeps: bool) {
    log(|log| log.keeps = keeps);
}

/// Runs `act`, which must find damage.
pub(crate) fn damage_of(act: impl FnOnce()) -> Damage {
    assert!(catch_unwind(AssertUnwindSafe(act)).is_err(), "no damage was found");
    log(|log| log.damage.take()).expect("the hooks were told of it")
}
