//! `slab-frag`: how much memory a kernel's objects take beyond what was asked for.
//!
//! **What.** Boot, a spike of 256 processes, find, and kenbus, as [`crate::kernel`] tells them; after each the total fragmentation, 1 − bytes
//! requested ÷ bytes consumed, of Craton's caches and of three other allocators of kernel memory, with pages of 8 KiB.
//!
//! **From.** Bonwick94 §5.2, with other ways to run the caches beside: each rare kind in a cache of its own; slabs of shorter pages;
//! complete slabs given back at once, after the usual 15 seconds of the working set, and never.
//!
//! **State.** Full: a machine 16 times as large as the paper's 16 MB and one 4 times as large, and the paper's own; three seeds each.
//! Quick: the paper's own, one seed.

use super::{Ask, Experiment, Findings, heading, no_use};
use crate::kernel::{Heap, Held, Kind, STEPS, Trace, kinds, play};
use crate::objects::{Arena, Caches, FastFits, LazyBuddy, Policy, PowerOfTwo, Sized, Store};
use craton_base::PAGE_SIZE;
use craton_lab::document::Document;
use craton_lab::format::{Column, bytes, table_of};
use craton_lab::measure::Progress;
use craton_lab::picture::{Axis, Bars, Direction, Estimate, Group, Unit};
use craton_lab::ratios::{OURS, Ratios};
use serde::Serialize;
use std::collections::BTreeMap;
use std::sync::atomic::Ordering::Relaxed;

/// The experiment, in the list.
pub const EXPERIMENT: Experiment = Experiment {
    name: "slab-frag",
    about: "kernel objects: total fragmentation after boot, a spike, find and kenbus, of slabs and three others",
    answers: "Bonwick94 §5.2; is it at most 10 % after all four?",
    run,
};

/// The most that there may be after all steps.
const REACH: f64 = 0.10;
/// The caches among those that are compared: the first so many.
const CRATONS: usize = 6;
/// What the arena has, for each unit of scale.
const ARENA_BYTES: usize = 32 << 20;

const PAPER: &str = "\
the paper's figures, SPARCstation-1 with 16 MB: boot, spike, find, kenbus
slab 11 %, 13 %, 14 %, 14 %; SunOS 4.1.3 7 %, 19 %, 19 %, 27 %; 4.4BSD 20 %, 43 %, 43 %, 45 %; SVr4 23 %, 45 %, 45 %, 46 %
";

/// How a heap is made on an arena of so many bytes and the trace played on it.
type Play = fn(&Trace, &[Kind], usize) -> Result<Vec<Held>, String>;

/// Those that are compared, by name, with the paper's name for it.
const HEAPS: [(&str, &str, Play); 9] = [
    (OURS, "slab, rare kinds by size, idle slabs go after 15 s", |trace, kinds, bytes| {
        caches(trace, kinds, bytes, Policy::USUAL)
    }),
    ("craton-each", "slab, a cache for each kind", |trace, kinds, bytes| {
        caches(trace, kinds, bytes, Policy { rare_by_size: false, ..Policy::USUAL })
    }),
    ("craton-4k", "slab, pages of 4 KiB, as frames are", |trace, kinds, bytes| {
        caches(trace, kinds, bytes, Policy { page: 4 << 10, ..Policy::USUAL })
    }),
    ("craton-2k", "slab, pages of 2 KiB", |trace, kinds, bytes| {
        caches(trace, kinds, bytes, Policy { page: 2 << 10, ..Policy::USUAL })
    }),
    ("craton-at-once", "slab, complete slabs go at once", |trace, kinds, bytes| {
        caches(trace, kinds, bytes, Policy { interval_s: 0, ..Policy::USUAL })
    }),
    ("craton-never", "slab, no slab goes back", |trace, kinds, bytes| {
        caches(trace, kinds, bytes, Policy { interval_s: u64::MAX, ..Policy::USUAL })
    }),
    ("fast-fits", "SunOS 4.1.3", |trace, kinds, bytes| store(trace, kinds, bytes, FastFits::new)),
    ("power-of-two", "4.4BSD", |trace, kinds, bytes| store(trace, kinds, bytes, PowerOfTwo::new)),
    ("lazy-buddy", "SVr4", |trace, kinds, bytes| store(trace, kinds, bytes, LazyBuddy::new)),
];

fn caches(trace: &Trace, kinds: &[Kind], bytes: usize, policy: Policy) -> Result<Vec<Held>, String> {
    checked(trace, kinds, Caches::new(Arena::with_pages(bytes / policy.page, policy.page), kinds, policy)?)
}

fn store<S: Store>(trace: &Trace, kinds: &[Kind], bytes: usize, of: fn(Arena) -> S) -> Result<Vec<Held>, String> {
    checked(trace, kinds, Sized::new(of(Arena::new(bytes / PAGE_SIZE)), kinds))
}

fn checked(trace: &Trace, kinds: &[Kind], mut heap: impl Heap) -> Result<Vec<Held>, String> {
    let steps = play(trace, kinds, &mut heap)?;
    heap.check().map(|()| steps)
}

/// A row of the document.
#[derive(Clone, Serialize)]
struct FragRow {
    allocator: &'static str,
    /// How many times as large as the paper's machine.
    scale: usize,
    seed: u64,
    step: &'static str,
    requested_bytes: usize,
    consumed_bytes: usize,
    peak_bytes: usize,
    fragmentation: f64,
    /// Of slabs: where it is.
    unasked_bytes: Option<BTreeMap<&'static str, usize>>,
    status: String,
}

fn run(ask: &Ask<'_>) -> Result<Findings, String> {
    if ask.peers_asked || ask.runs.is_some() {
        return Err(no_use(if ask.peers_asked { "--peers" } else { "--runs" }, EXPERIMENT.name));
    }
    let names = HEAPS.map(|(name, ..)| name);
    if let Some(unknown) = ask.only.iter().find(|name| !names.contains(&name.as_str())) {
        return Err(format!("--only {unknown}: no such heap here; there are: {}", names.join(", ")));
    }
    let (scales, seeds): (&[usize], u64) = if ask.quick { (&[1], 1) } else { (&[1, 4, 16], 3) };
    let heaps: Vec<_> =
        HEAPS.iter().filter(|(name, ..)| ask.only.is_empty() || ask.only.iter().any(|only| only == name)).collect();
    let (total, kinds) = (scales.len() * seeds as usize * heaps.len(), kinds());
    let mut rows = Vec::new();
    let mut done = 0;
    for scale in scales.iter().copied() {
        for seed in 0..seeds {
            let trace = Trace::new(&kinds, scale, seed);
            for (name, _, play) in &heaps {
                if ask.stop.load(Relaxed) {
                    break;
                }
                let of = Progress { allocator: name, round: Some(seed as usize), done, total };
                (ask.progress)(&format!("{scale} × 16 MB"), of);
                rows.extend(rows_of(name, (scale, seed), play(&trace, &kinds, scale * ARENA_BYTES)));
                done += 1;
            }
        }
    }
    let mut document = Document::new(EXPERIMENT.name, ask.command, &[], rows, &Ratios::default());
    document.ratios = ratios(&document.rows);
    Ok(Findings {
        text: show(&document),
        pictures: vec![(String::new(), picture(&document))],
        failed: document.rows.iter().filter(|row| row.status != "ok").count(),
        document: super::text(&document)?,
    })
}

fn rows_of(allocator: &'static str, (scale, seed): (usize, u64), played: Result<Vec<Held>, String>) -> Vec<FragRow> {
    let row = |step, held: Held, status| FragRow {
        allocator,
        scale,
        seed,
        step,
        requested_bytes: held.requested,
        consumed_bytes: held.consumed,
        peak_bytes: held.most,
        fragmentation: held.fragmentation(),
        unasked_bytes: held.unasked.map(|parts| parts.named().into_iter().collect()),
        status,
    };
    match played {
        Ok(steps) => STEPS.into_iter().zip(steps).map(|(step, held)| row(step, held, "ok".to_owned())).collect(),
        Err(why) => vec![row(STEPS[0], Held::default(), why)],
    }
}

/// The mean over the seeds.
fn mean(rows: &[FragRow], allocator: &str, scale: usize, step: &str) -> Option<f64> {
    let of =
        |row: &&FragRow| row.allocator == allocator && row.scale == scale && row.step == step && row.status == "ok";
    let all: Vec<f64> = rows.iter().filter(of).map(|row| row.fragmentation).collect();
    (!all.is_empty()).then(|| all.iter().sum::<f64>() / all.len() as f64)
}

/// What is consumed after all steps as a part of what others consume, on the largest machine; and the fragmentation of the
/// smallest one as a part of what it may be.
fn ratios(rows: &[FragRow]) -> BTreeMap<String, f64> {
    let (Some(first), Some(last)) = (rows.first(), rows.last()) else { return BTreeMap::new() };
    let end = |name: &str, scale| mean(rows, name, scale, STEPS[3]);
    let used = |part: f64| 1.0 / (1.0 - part);
    let Some(ours) = end(OURS, last.scale) else { return BTreeMap::new() };
    let others = HEAPS[CRATONS..].iter().filter_map(|(name, ..)| Some((*name, end(name, last.scale)?)));
    let mut ratios: BTreeMap<String, f64> =
        others.map(|(name, its)| (format!("memory_vs_{name}"), used(ours) / used(its))).collect();
    ratios.insert("fragmentation_vs_reach".to_owned(), ours / REACH);
    ratios.extend(end(OURS, first.scale).map(|small| ("fragmentation_of_16_mb_vs_reach".to_owned(), small / REACH)));
    ratios
}

fn show(document: &Document<FragRow>) -> String {
    let percent = |part: Option<f64>| part.map_or("-".to_owned(), |part| format!("{:.1} %", part * 100.0));
    let mut text = String::new();
    for scale in scales(&document.rows) {
        let held = document.rows.iter().rfind(|row| row.scale == scale && row.step == STEPS[3]);
        let live = held.map_or(0, |row| row.requested_bytes as u64);
        text +=
            &format!("a machine of {} MB, total fragmentation; {} of objects in the end\n", 16 * scale, bytes(live));
        let mut lines = vec![["allocator", STEPS[0], STEPS[1], STEPS[2], STEPS[3], "", ""].map(str::to_owned).to_vec()];
        for (name, what, _) in HEAPS {
            let of = STEPS.map(|step| percent(mean(&document.rows, name, scale, step)));
            let peak = document.rows.iter().rfind(|row| row.allocator == name && row.scale == scale);
            let peak = peak.map_or("-".to_owned(), |row| format!("peak {}", bytes(row.peak_bytes as u64)));
            lines.push([vec![name.to_owned()], of.to_vec(), vec![peak, what.to_owned()]].concat());
        }
        text += &craton_lab::format::table(&lines, &[0, 6]);
        text.push('\n');
    }
    text += &parts(&document.rows);
    let failed: Vec<&FragRow> = document.rows.iter().filter(|row| row.status != "ok").collect();
    if !failed.is_empty() {
        let columns: [Column<FragRow>; 2] =
            [("failed", |row| row.allocator.to_owned()), ("", |row| row.status.clone())];
        text += &table_of(&columns, &[0, 1], failed);
    }
    let ratios: String = document.ratios.iter().map(|(name, ratio)| format!("{name} {ratio:.3}\n")).collect();
    format!("{text}{ratios}\n{PAPER}")
}

/// Where the slabs' memory is that nobody asked for, in the end.
fn parts(rows: &[FragRow]) -> String {
    let mut lines = vec![];
    for row in rows.iter().filter(|row| row.seed == 0 && row.step == STEPS[3]) {
        let Some(parts) = &row.unasked_bytes else { continue };
        if lines.is_empty() {
            let names = parts.keys().map(|name| (*name).to_owned());
            lines.push(["in the end".to_owned(), String::new()].into_iter().chain(names).collect());
        }
        let part = |bytes: &usize| format!("{:.1} %", *bytes as f64 / row.consumed_bytes.max(1) as f64 * 100.0);
        let place = [row.allocator.to_owned(), format!("{} MB", 16 * row.scale)];
        lines.push(place.into_iter().chain(parts.values().map(part)).collect::<Vec<String>>());
    }
    craton_lab::format::table(&lines, &[0]) + "\n"
}

fn scales(rows: &[FragRow]) -> Vec<usize> {
    let mut scales: Vec<usize> = rows.iter().map(|row| row.scale).collect();
    scales.dedup();
    scales
}

fn picture(document: &Document<FragRow>) -> String {
    let scale = document.rows.last().map_or(1, |row| row.scale);
    let group = |step: &str| Group {
        name: step.to_owned(),
        bars: HEAPS.iter().map(|(name, ..)| mean(&document.rows, name, scale, step).map(Estimate::exact)).collect(),
    };
    Bars {
        heading: heading(
            "Memory of a kernel that nobody asked for",
            &format!("total fragmentation after each step, a machine of {} MB; the line: 10 %", 16 * scale),
            document,
        ),
        axis: Axis::linear("part of the memory consumed", Unit::Part),
        series: HEAPS.iter().map(|(name, ..)| (*name).to_owned()).collect(),
        groups: STEPS.into_iter().map(group).collect(),
        reference: Some(REACH),
        direction: Direction::Up,
        width_px: 860.0,
    }
    .svg()
}

#[cfg(test)]
mod tests;
