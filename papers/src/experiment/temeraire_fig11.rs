//! `temeraire-fig11`: which hugepage a span goes to, and what that costs after demand has dropped.
//!
//! **What.** Spans are born and die on the page heap; at half time, half of the demand dies at one moment, each span as likely
//! as any other, and births go on at half the rate. Memory over time, with the filler's three searches: the longest free
//! range first, the fullest hugepage first, the global best fit. These have all spans as sparse, since that is what the
//! searches are for; `craton` is the heap as it is, the first search with dense spans on hugepages of their own.
//!
//! **From.** TEMERAIRE Figure 11 and §6.1. **The load** is that of [`spans`]: what the objects of a profile would ask of the page
//! heap, their slabs as spans. How long spans live decides how soon memory can follow demand: no span moves, and a hugepage
//! comes free when the last of its spans has died. So there are three loads of each profile: `even`, in which all spans live as
//! long as the profile's bytes do in the mean; `object`, in which a slab lives as long as an object of its class; `last
//! object`, in which it lives until the last of its objects has died, each on its own, and a minute is a fraction of the
//! longest lives. Lives are those of the profile in seconds; a larger heap has more births, not longer lives. Nothing is
//! released but by the heap's own limits, so that hugepages stay intact.
//!
//! **State.** The built-in profile, and those of [`profiles::FOLDER`]. Full: 1 GiB before the drop. Quick: 512 MiB, of which the
//! 16 MiB that the cache always keeps are a sixteenth of the demand after it.

use super::profiles;
use super::world::{SECOND_NS, World};
use super::{Ask, Experiment, Findings, simulation};
use crate::empirical::process::{self, Event, LARGEST_PART, Process};
use crate::empirical::profile::{Profile, Row};
use crate::empirical::schedule::Schedule;
use crate::empirical::spans::{Lives, span_of, spans};
use craton_base::{Density, PageRange};
use craton_lab::document::Document;
use craton_lab::format::{Column, bytes, table_of};
use craton_lab::picture::{Axis, Unit};
use craton_pages::{Fit, FullestFirst, GlobalBestFit, LongestFreeFirst};
use serde::Serialize;

/// The experiment, in the list.
pub const EXPERIMENT: Experiment = Experiment {
    name: "temeraire-fig11",
    about: "memory after half of the demand is gone: longest free range first, fullest first, global best fit",
    answers: "TEMERAIRE figure 11",
    run,
};

const FULL_BYTES: u64 = 1 << 30;
const QUICK_BYTES: u64 = 512 << 20;
/// Simulated seconds before the drop, and after it.
const HALF_S: f64 = 120.0;
/// When the searches are compared.
const AFTER_S: f64 = 60.0;
const SEED: u64 = 1;

/// A way to play the load, by its name: the search, and whether dense spans are asked for as such.
type Play = fn(&Profile, u64) -> Result<Vec<DropRow>, String>;
const POLICIES: [(&str, Play); 4] = [
    ("craton", play::<LongestFreeFirst, true>),
    ("longest free first", play::<LongestFreeFirst, false>),
    ("fullest first", play::<FullestFirst, false>),
    ("global best fit", play::<GlobalBestFit, false>),
];

/// The loads of a profile, by name and as the picture explains them.
const LOADS: [(&str, Lives, &str); 3] = [
    ("even", Lives::Even, "all spans live equally long"),
    ("object", Lives::Object, "a slab lives as long as one of its objects"),
    ("last object", Lives::LastObject, "a slab lives until the last of its objects has died"),
];
/// Memory that is so near to demand, by it, has followed.
const NEAR: f64 = 1.1;

/// The heap at a moment.
#[derive(Clone, Copy, Default, Serialize)]
struct DropRow {
    time_s: f64,
    used_bytes: u64,
    backed_bytes: u64,
    huge_bytes: u64,
}

/// A row of the document.
#[derive(Serialize)]
struct PolicyRow {
    profile: String,
    lives: &'static str,
    policy: &'static str,
    #[serde(flatten)]
    at: DropRow,
    status: &'static str,
}

fn run(ask: &Ask<'_>) -> Result<Findings, String> {
    let profiles = profiles::here()?;
    let heap_bytes = if ask.quick { QUICK_BYTES } else { FULL_BYTES };
    let ways: Vec<_> = LOADS.iter().flat_map(|load| POLICIES.map(|(policy, play)| (policy, (load, play)))).collect();
    let mut rows = Vec::new();
    for ((name, profile), (policy, ((lives, of, _), play))) in
        simulation::asked(ask, EXPERIMENT.name, &profiles, &ways)?
    {
        let course =
            play(&spans(profile, *of), heap_bytes).map_err(|why| format!("{name}, {lives}, {policy}: {why}"))?;
        rows.extend(course.into_iter().map(|at| PolicyRow { profile: name.clone(), lives, policy, at, status: "ok" }));
    }
    let text = |rows: &[PolicyRow]| format!("{}\n{}", profiles::note(&profiles), show(rows));
    simulation::findings(ask, EXPERIMENT.name, rows, text, |document| {
        let name = |of: &[PolicyRow]| format!("{}-{}", of[0].profile, of[0].lives.replace(' ', "-"));
        by_load(&document.rows).map(|of| (name(of), picture(of, document))).collect()
    })
}

/// The rows of each load, one search after the other.
fn by_load(rows: &[PolicyRow]) -> impl Iterator<Item = &[PolicyRow]> {
    rows.chunk_by(|a, b| (&a.profile, a.lives) == (&b.profile, b.lives))
}

/// The rows of each search.
fn by_search(rows: &[PolicyRow]) -> impl Iterator<Item = &[PolicyRow]> {
    by_load(rows).flat_map(|of| of.chunk_by(|a, b| a.policy == b.policy))
}

/// Births and deaths a second of the spans that fit, and their bytes, at the profile's own size.
fn rate_and_bytes(spans: &Profile, heap_bytes: u64) -> (f64, f64) {
    let fit = spans.rows().iter().filter(|row| row.size <= heap_bytes / LARGEST_PART);
    fit.fold((0.0, 0.0), |(rate, bytes), row: &Row| (rate + row.rate, bytes + row.live * row.size as f64))
}

/// Plays spans until [`HALF_S`] after the drop, with a row for each second.
fn play<P: Fit, const APART: bool>(spans: &Profile, heap_bytes: u64) -> Result<Vec<DropRow>, String> {
    let (rate, bytes) = rate_and_bytes(spans, heap_bytes);
    // The process makes a larger heap by longer lives; time runs faster by as much, which makes lives the profile's.
    let scale = heap_bytes as f64 / bytes;
    let seconds = 2.0 * HALF_S;
    let events = (2.0 * rate * Schedule::Drop.mean() * seconds * scale).ceil().max(1.0) as u64;
    let mut process = Process::new(&process::Config {
        profile: spans,
        heap_bytes,
        schedule: Schedule::Drop,
        events,
        remote_percent: 0,
        seed: SEED,
        number: 0,
    })?;
    let stretch = seconds / process.duration_s();
    let mut world: World<P> = World::new(4 * heap_bytes + (1 << 30));
    let mut out: Vec<PageRange> = Vec::with_capacity(process.slots_expected());
    let mut rows = Vec::with_capacity(seconds as usize + 2);
    while let Some(event) = process.next_event() {
        let now_s = process.now_s() * stretch;
        world.pass_until((now_s * SECOND_NS as f64) as u64);
        // The heap is filled before the first moment, and the last one has a row of its own.
        if now_s > 0.0 && now_s >= rows.len() as f64 && now_s < seconds {
            rows.push(row(&world, now_s));
        }
        match event {
            Event::Alloc { slot, size } => {
                let (pages, density) = span_of(size);
                let span = world.alloc(pages, if APART { density } else { Density::Sparse })?;
                if slot as usize == out.len() {
                    out.push(span);
                }
                out[slot as usize] = span;
            }
            Event::Free { slot, size, .. } => {
                let density = if APART { span_of(size).1 } else { Density::Sparse };
                world.free(out[slot as usize], density);
            }
        }
    }
    rows.push(row(&world, seconds));
    Ok(rows)
}

fn row<P: Fit>(world: &World<P>, time_s: f64) -> DropRow {
    let state = world.state();
    DropRow { time_s, used_bytes: state.used, backed_bytes: state.backed, huge_bytes: state.huge }
}

/// The row at a time, or the last before it.
fn at(rows: &[PolicyRow], time_s: f64) -> Option<&DropRow> {
    rows.iter().map(|row| &row.at).rfind(|at| at.time_s <= time_s + 0.5)
}

impl DropRow {
    /// Memory by demand.
    fn per_used(&self) -> f64 {
        simulation::ratio(self.backed_bytes, self.used_bytes)
    }
}

/// Memory by demand at a time, for people.
fn per_used(rows: &[PolicyRow], time_s: f64) -> String {
    at(rows, time_s).map_or("-".to_owned(), |at| format!("{:.3}", at.per_used()))
}

/// Seconds after the drop from which on memory stays near demand.
fn near_after_s(rows: &[PolicyRow]) -> Option<f64> {
    let far = rows.iter().rposition(|row| row.at.per_used() > NEAR);
    let near = rows.get(far.map_or(0, |far| far + 1))?;
    Some((near.at.time_s - HALF_S).max(0.0))
}

/// The heap when the searches are compared.
fn late(rows: &[PolicyRow]) -> DropRow {
    at(rows, HALF_S + AFTER_S).copied().unwrap_or_default()
}

fn show(rows: &[PolicyRow]) -> String {
    let columns: [Column<[PolicyRow]>; 10] = [
        ("profile", |of| of[0].profile.clone()),
        ("lives", |of| of[0].lives.to_owned()),
        ("search", |of| of[0].policy.to_owned()),
        ("before the drop", |of| per_used(of, HALF_S - 2.0)),
        ("at once", |of| per_used(of, HALF_S + 1.0)),
        ("after 60 s", |of| per_used(of, HALF_S + AFTER_S)),
        ("on hugepages", |of| simulation::percent(simulation::ratio(late(of).huge_bytes, late(of).backed_bytes))),
        ("near after", |of| near_after_s(of).map_or("-".to_owned(), |s| format!("{s:.0} s"))),
        ("demand", |of| bytes(late(of).used_bytes)),
        ("memory", |of| bytes(late(of).backed_bytes)),
    ];
    format!(
        "memory ÷ bytes in spans; half of the demand goes after {HALF_S} simulated seconds; near: memory stays below {NEAR} \
         times demand\n\n{}",
        table_of(&columns, &[0, 1, 2], by_search(rows))
    )
}

fn picture(rows: &[PolicyRow], document: &Document<PolicyRow>) -> String {
    let line = |name, rows: &[PolicyRow], of: fn(&DropRow) -> u64| {
        simulation::line(name, rows, |row| (row.at.time_s, of(&row.at) as f64))
    };
    let mut series: Vec<_> = by_search(rows).map(|of| line(of[0].policy, of, |at| at.backed_bytes)).collect();
    series.extend(by_search(rows).next().map(|of| line("demand", of, |at| at.used_bytes)));
    let lives = LOADS.iter().find(|(name, ..)| *name == rows[0].lives).map_or("", |(.., lives)| lives);
    simulation::over_time(
        &format!("Memory when half of the demand goes at once: {}, lives: {}", rows[0].profile, rows[0].lives),
        &format!(
            "the page heap alone, simulated; {lives}; demand: bytes in spans; the others: memory, by where spans are placed; \
             craton: longest free first, dense spans apart"
        ),
        document,
        Axis::linear("memory", Unit::Bytes),
        series,
    )
}

#[cfg(test)]
mod tests;
