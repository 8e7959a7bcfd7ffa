//! `slab-frag`: the memory of a kernel's objects beyond the requested bytes (Bonwick94 §5.2), and
//! other ways to run the caches.

use super::sheet::{Column, Fields, Map, Row, Sheet, Show, Title, distinct, json, mean, percent, table};
use super::{Ask, Findings};
use crate::kernel::{Heap, Held, Kind, Load, STEPS, Trace, kinds, play};
use crate::objects::{Arena, Caches, FastFits, LazyBuddy, Policy, PowerOfTwo};
use craton_base::PAGE_SIZE;
use craton_lab::format::bytes;
use craton_lab::picture::{Axis, Estimate, Group, Unit};
use craton_lab::ratios::OURS;
use std::collections::BTreeMap;

/// The target after all steps.
const REACH: f64 = 0.10;
/// Craton's come first.
const CRATONS: usize = 6;
const ARENA_BYTES: usize = 32 << 20;

const PAPER: &str = "\
the paper's figures, SPARCstation-1 with 16 MB: boot, spike, find, kenbus
slab 11 %, 13 %, 14 %, 14 %; SunOS 4.1.3 7 %, 19 %, 19 %, 27 %; 4.4BSD 20 %, 43 %, 43 %, 45 %; SVr4 23 %, 45 %, 45 %, 46 %
";

type Play = fn(&Trace, &[Kind], usize) -> Result<Vec<Held>, String>;

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

fn store<S: Heap>(trace: &Trace, kinds: &[Kind], bytes: usize, of: fn(Arena) -> S) -> Result<Vec<Held>, String> {
    checked(trace, kinds, of(Arena::new(bytes / PAGE_SIZE)))
}

fn checked(trace: &Trace, kinds: &[Kind], mut heap: impl Heap) -> Result<Vec<Held>, String> {
    let steps = play(trace, kinds, &mut heap)?;
    heap.check().map(|()| steps)
}

pub fn run(ask: &Ask<'_>) -> Result<Findings, String> {
    ask.refuse(&["--peers", "--runs"], "")?;
    ask.known("heap", &HEAPS.map(|(name, ..)| name))?;
    let (scales, seeds): (&[usize], u64) = ask.form((&[1], 1), (&[1, 4, 16], 3));
    let heaps: Vec<_> = HEAPS.iter().filter(|(name, ..)| ask.wants(name)).collect();
    let (total, kinds) = (scales.len() * seeds as usize * heaps.len(), kinds());
    let (mut rows, mut done) = (Vec::new(), 0);
    for scale in scales.iter().copied() {
        for seed in 0..seeds {
            let trace = Trace::new(&kinds, scale, seed, Load::Usual);
            for (name, _, play) in heaps.iter().take_while(|_| !ask.stopped()) {
                ask.show(&format!("{scale} × 16 MB"), name, seed as usize, (done, total));
                rows.extend(rows_of(name, (scale, seed), play(&trace, &kinds, scale * ARENA_BYTES)));
                done += 1;
            }
        }
    }
    let text = show(&rows);
    let mut sheet = Sheet::new(ask, rows);
    let ratios = sheet.ratios(ratios, 3);
    draw(&mut sheet);
    let loads = if ask.stopped() { String::new() } else { loads(&kinds, seeds)? };
    sheet.findings(format!("{text}{ratios}\n{PAPER}\n{loads}"))
}

/// Their order depends on the load.
const ORDERED: [(&str, Play); 6] = [
    (OURS, |trace, kinds, bytes| caches(trace, kinds, bytes, Policy::USUAL)),
    ("craton-2k", |trace, kinds, bytes| caches(trace, kinds, bytes, Policy { page: 2 << 10, ..Policy::USUAL })),
    ("fast-fits", |trace, kinds, bytes| store(trace, kinds, bytes, FastFits::new)),
    ("fast-fits-keeps", |trace, kinds, bytes| store(trace, kinds, bytes, FastFits::keeping)),
    ("power-of-two", |trace, kinds, bytes| store(trace, kinds, bytes, PowerOfTwo::new)),
    ("lazy-buddy", |trace, kinds, bytes| store(trace, kinds, bytes, LazyBuddy::new)),
];
const LOADS: [(Load, &str); 3] = [
    (Load::Usual, "the load above"),
    (Load::SmallSpike, "a spike of 128 processes"),
    (Load::Between, "files come into memory between buffers of short lives"),
];

fn loads(kinds: &[Kind], seeds: u64) -> Result<String, String> {
    let mut text = "16 MB by load; fast-fits gives whole free pages back at once, fast-fits-keeps none\n".to_owned();
    for (load, what) in LOADS {
        let mut lines = vec![[&[what][..], &STEPS].concat().into_iter().map(str::to_owned).collect::<Vec<_>>()];
        for (name, play) in ORDERED {
            let mut sums = [0.0; STEPS.len()];
            for seed in 0..seeds {
                let held = play(&Trace::new(kinds, 1, seed, load), kinds, ARENA_BYTES)?;
                sums.iter_mut().zip(&held).for_each(|(sum, held)| *sum += held.fragmentation());
            }
            let parts = sums.map(|sum| percent(sum / seeds as f64, 1));
            lines.push(std::iter::once(format!("  {name}")).chain(parts).collect());
        }
        text += &craton_lab::format::table(&lines, &[0]);
    }
    Ok(text)
}

fn rows_of(allocator: &str, (scale, seed): (usize, u64), played: Result<Vec<Held>, String>) -> Vec<Row> {
    let row = |step: &str, held: Held, status: &str| {
        json!({
            "allocator": allocator,
            "scale": scale,
            "seed": seed,
            "step": step,
            "requested_bytes": held.requested,
            "consumed_bytes": held.consumed,
            "peak_bytes": held.most,
            "fragmentation": held.fragmentation(),
            "unasked_bytes": held.unasked.map(|parts| parts.named().into_iter().collect::<BTreeMap<_, _>>()),
            "status": status,
        })
    };
    match played {
        Ok(steps) => STEPS.into_iter().zip(steps).map(|(step, held)| row(step, held, "ok")).collect(),
        Err(why) => vec![row(STEPS[0], Held::default(), &why)],
    }
}

fn over_seeds(rows: &[Row], allocator: &str, scale: u64, step: &str) -> Option<f64> {
    let wanted = [("allocator", allocator), ("step", step), ("status", "ok")];
    let of = rows.iter().filter(|row| row.has(&wanted) && row.int("scale") == scale);
    let all: Vec<f64> = of.map(|row| row.num("fragmentation")).collect();
    (!all.is_empty()).then(|| mean(all))
}

/// By others', largest machine.
fn ratios(rows: &[Row]) -> Map {
    let (Some(first), Some(last)) = (rows.first(), rows.last()) else { return Map::new() };
    let end = |name: &str, scale| over_seeds(rows, name, scale, STEPS[3]);
    let used = |part: f64| 1.0 / (1.0 - part);
    let Some(ours) = end(OURS, last.int("scale")) else { return Map::new() };
    let others = HEAPS[CRATONS..].iter().filter_map(|(name, ..)| Some((*name, end(name, last.int("scale"))?)));
    let mut ratios: Map = others.map(|(name, its)| (format!("memory_vs_{name}"), used(ours) / used(its))).collect();
    ratios.insert("fragmentation_vs_reach".to_owned(), ours / REACH);
    ratios.extend(
        end(OURS, first.int("scale")).map(|small| ("fragmentation_of_16_mb_vs_reach".to_owned(), small / REACH)),
    );
    ratios
}

fn show(rows: &[Row]) -> String {
    let mut text = String::new();
    for scale in distinct(rows, |row| row.int("scale")) {
        let of = |wanted: &[(&str, &str)]| rows.iter().rfind(|row| row.int("scale") == scale && row.has(wanted));
        let live = of(&[("step", STEPS[3])]).map_or(0, |row| row.int("requested_bytes"));
        text +=
            &format!("a machine of {} MB, total fragmentation; {} of objects in the end\n", 16 * scale, bytes(live));
        let mut lines = vec![["allocator", STEPS[0], STEPS[1], STEPS[2], STEPS[3], "", ""].map(str::to_owned).to_vec()];
        for (name, what, _) in HEAPS {
            let part = |step| over_seeds(rows, name, scale, step).map_or("-".to_owned(), |part| percent(part, 1));
            let peak = of(&[("allocator", name)]);
            let peak = peak.map_or("-".to_owned(), |row| format!("peak {}", bytes(row.int("peak_bytes"))));
            lines.push([vec![name.to_owned()], STEPS.map(part).to_vec(), vec![peak, what.to_owned()]].concat());
        }
        text += &craton_lab::format::table(&lines, &[0, 6]);
        text.push('\n');
    }
    text += &parts(rows);
    let failed: Vec<&Row> = rows.iter().filter(|row| !row.is_ok()).collect();
    if !failed.is_empty() {
        let columns: [Column; 2] = [("failed", "allocator", Show::Text), ("", "status", Show::Text)];
        text += &table(&columns, failed);
    }
    text
}

fn parts(rows: &[Row]) -> String {
    let mut lines = vec![];
    for row in rows.iter().filter(|row| row.int("seed") == 0 && row.word("step") == STEPS[3]) {
        let Some(parts) = row["unasked_bytes"].as_object() else { continue };
        if lines.is_empty() {
            lines.push(
                ["in the end", ""].into_iter().chain(parts.keys().map(String::as_str)).map(str::to_owned).collect(),
            );
        }
        let whole = row.num("consumed_bytes").max(1.0);
        let place = [row.word("allocator").to_owned(), format!("{} MB", 16 * row.int("scale"))];
        let parts = parts.values().map(|bytes| percent(bytes.as_f64().unwrap_or(0.0) / whole, 1));
        lines.push(place.into_iter().chain(parts).collect::<Vec<String>>());
    }
    craton_lab::format::table(&lines, &[0]) + "\n"
}

fn draw(sheet: &mut Sheet) {
    let scale = sheet.rows().last().map_or(1, |row| row.int("scale"));
    let bar = |step: &str, name: &str| over_seeds(sheet.rows(), name, scale, step).map(Estimate::exact);
    let group =
        |step: &str| Group { name: step.to_owned(), bars: HEAPS.iter().map(|(name, ..)| bar(step, name)).collect() };
    let groups = STEPS.into_iter().map(group).collect();
    let title = Title(
        "",
        "Memory of a kernel that nobody asked for",
        &format!("total fragmentation after each step, a machine of {} MB; the line: 10 %", 16 * scale),
    );
    let series = HEAPS.map(|(name, ..)| name.to_owned());
    sheet.bars(title, Axis::linear("part of the memory consumed", Unit::Part), &series, groups, Some(REACH));
}

#[cfg(test)]
mod tests;
