//! `slab-colour`: what it is worth that slabs begin their objects at different offsets.
//!
//! **What.** Objects of which only the first 48 bytes are used. Of a cache with colouring, one without, and 4.4BSD's powers of two: which part
//! of a cache's sets these bytes fall into, how many lines have no room in their set, and how long a walk takes over as many objects as would fill
//! three quarters of the processor's cache, if they were spread evenly.
//!
//! **From.** Bonwick94 §4.1, §4.3.
//!
//! **State.** Simulated: 32 KiB with 8 ways and 512 KiB with 8 ways, lines of 64 bytes, by address: the arena begins at a multiple of 512 KiB.
//! The walk is over caches of the sizes that the kernel tells of processor 0, or of these; it follows pointers in random order. Physical addresses
//! decide in caches beyond the first, so that the walk of those depends on what pages the kernel gave.
//!
//! **Unsafe.** Takes objects as raw memory, and follows pointers that it put into them.

use super::{Ask, Experiment, Findings, heading, simulation};
use crate::objects::{Arena, PowerOfTwo, Store};
use craton_base::PAGE_SIZE;
use craton_lab::document::Document;
use craton_lab::format::{Column, table_of};
use craton_lab::picture::{Axis, Bars, Direction, Estimate, Group, Unit};
use craton_lab::ratios::{OURS, Ratios};
use craton_lab::rng::Rng;
use craton_lab::summary::Spread;
use craton_slab::object::{ObjectLayout, ObjectSlabs};
use serde::Serialize;
use std::collections::BTreeMap;
use std::fs;
use std::time::Instant;

/// The experiment, in the list.
pub const EXPERIMENT: Experiment = Experiment {
    name: "slab-colour",
    about: "objects whose first 48 bytes are hot: use of a cache's sets and time of a walk, with colouring and without",
    answers: "Bonwick94 §4.1, §4.3",
    run,
};

/// Bytes of an object that are used.
const HOT: usize = 48;
const LINE: usize = 64;
/// Sizes by name.
const SIZES: [(&str, usize); 10] = [
    ("128", 128),
    ("200", 200),
    ("256", 256),
    ("300", 300),
    ("384", 384),
    ("512", 512),
    ("640", 640),
    ("1024", 1024),
    ("2048", 2048),
    ("4096", 4096),
];
const QUICK: [&str; 3] = ["256", "512", "1024"];

/// How objects are laid out.
const WAYS: [(&str, Layout); 3] =
    [(OURS, Layout::Coloured), ("craton-one-colour", Layout::Plain), ("power-of-two", Layout::Powers)];

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Layout {
    Coloured,
    Plain,
    Powers,
}

/// A cache of a processor.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Cache {
    level: u32,
    bytes: usize,
    ways: usize,
}

/// Those that are simulated.
const SIMULATED: [Cache; 2] =
    [Cache { level: 1, bytes: 32 << 10, ways: 8 }, Cache { level: 2, bytes: 512 << 10, ways: 8 }];

/// A row of the document.
#[derive(Clone, Serialize)]
struct ColourRow {
    allocator: &'static str,
    size_bytes: usize,
    colours: u32,
    level: u32,
    cache_bytes: usize,
    /// The part of the sets that the hot lines fall into.
    sets_used: f64,
    /// Lines in the fullest set, divided by the mean.
    imbalance: f64,
    /// The part of the lines for which their set has no room.
    without_room: f64,
    walk_objects: usize,
    walk_cache_bytes: usize,
    ns_median: f64,
    ns_min: f64,
    status: &'static str,
}

fn run(ask: &Ask<'_>) -> Result<Findings, String> {
    let mut sizes = Vec::new();
    for (size, _) in simulation::asked(ask, EXPERIMENT.name, &SIZES, &simulation::ONCE)? {
        if !ask.quick || QUICK.contains(&size.0) || !ask.only.is_empty() {
            sizes.push(size.1);
        }
    }
    let mut rows = Vec::new();
    for size in sizes {
        for (simulated, real) in SIMULATED.into_iter().zip(here()) {
            rows.extend(measure(size, simulated, real, if ask.quick { 5 } else { 31 })?);
        }
    }
    let mut document = Document::new(EXPERIMENT.name, ask.command, &[], rows, &Ratios::default());
    document.ratios = ratios(&document.rows);
    let pictures = vec![
        ("sets".to_owned(), picture(&document, "Sets of a cache that hot bytes fall into", |row| row.sets_used)),
        ("walk".to_owned(), picture(&document, "A step of a walk over hot bytes", |row| row.ns_median / 1e9)),
    ];
    Ok(Findings { text: show(&document), pictures, failed: 0, document: super::text(&document)? })
}

/// The data caches of processor 0 of levels 1 and 2, as far as the kernel tells.
fn here() -> [Cache; 2] {
    let mut caches = SIMULATED;
    for index in 0..8 {
        let read = |file: &str| {
            let path = format!("/sys/devices/system/cpu/cpu0/cache/index{index}/{file}");
            fs::read_to_string(path).unwrap_or_default().trim().to_owned()
        };
        let number = |file: &str| read(file).parse::<usize>().ok();
        let size = read("size").strip_suffix('K').and_then(|kib| kib.parse::<usize>().ok());
        let (Some(level), Some(kib), Some(ways)) = (number("level"), size, number("ways_of_associativity")) else {
            continue;
        };
        if let (1 | 2, "Data" | "Unified") = (level, read("type").as_str()) {
            caches[level - 1] = Cache { level: level as u32, bytes: kib << 10, ways };
        }
    }
    caches
}

/// The objects of a layout, each of them ours alone as long as the memory lives.
struct Objects {
    at: Vec<*mut u8>,
    colours: u32,
    _memory: Memory,
}

enum Memory {
    Slabs(#[expect(dead_code, reason = "keeps the objects")] Arena),
    Store(#[expect(dead_code, reason = "keeps the objects")] PowerOfTwo),
}

fn objects(size: usize, count: usize, layout: Layout) -> Result<Objects, String> {
    let mut arena = Arena::new(2 * count * size.next_power_of_two() / PAGE_SIZE + 16);
    let none = || format!("no room for {count} objects of {size} bytes");
    if layout == Layout::Powers {
        let mut store = PowerOfTwo::new(arena);
        let at = (0..count).map(|_| store.get(size)).collect::<Option<_>>().ok_or_else(none)?;
        return Ok(Objects { at, colours: 1, _memory: Memory::Store(store) });
    }
    let of = ObjectLayout::of(size, 8, false).map_err(|why| why.to_string())?;
    let mut slabs = ObjectSlabs::new(of);
    slabs.set_colouring(layout == Layout::Coloured);
    // SAFETY: the arena is the one supplier.
    let take = |_| unsafe { slabs.take(&mut arena) }.map(|taken| taken.object());
    let at = (0..count).map(take).collect::<Option<_>>().ok_or_else(none)?;
    let colours = if layout == Layout::Coloured { of.colours() } else { 1 };
    Ok(Objects { at, colours, _memory: Memory::Slabs(arena) })
}

/// So many objects as have three quarters of a cache's lines, if each has one.
fn fill(cache: Cache) -> usize {
    cache.bytes / LINE * 3 / 4
}

fn measure(size: usize, simulated: Cache, real: Cache, repetitions: usize) -> Result<Vec<ColourRow>, String> {
    let mut rows = Vec::new();
    let (mut walks, mut times) = (Vec::new(), vec![Vec::new(); WAYS.len()]);
    for (allocator, layout) in WAYS {
        let of = objects(size, fill(simulated), layout)?;
        let addresses: Vec<usize> = of.at.iter().map(|at| *at as usize).collect();
        let (sets_used, imbalance, without_room) = spread(&addresses, simulated);
        let walk = objects(size, fill(real), layout)?;
        link(&walk.at);
        walks.push(walk);
        rows.push(ColourRow {
            allocator,
            size_bytes: size,
            colours: of.colours,
            level: simulated.level,
            cache_bytes: simulated.bytes,
            sets_used,
            imbalance,
            without_room,
            walk_objects: fill(real),
            walk_cache_bytes: real.bytes,
            ns_median: 0.0,
            ns_min: 0.0,
            status: "ok",
        });
    }
    // In turns, so that what disturbs the machine disturbs all.
    for _ in 0..repetitions {
        for (walk, times) in walks.iter().zip(&mut times) {
            times.push(step_ns(&walk.at));
        }
    }
    for (row, times) in rows.iter_mut().zip(times) {
        let spread = Spread::of(times).ok_or("no walk was timed")?;
        (row.ns_median, row.ns_min) = (spread.median, spread.min);
    }
    Ok(rows)
}

/// The part of the sets that hot bytes fall into, the fullest set's lines by the mean, and the part of the lines that find no room.
fn spread(addresses: &[usize], cache: Cache) -> (f64, f64, f64) {
    let mut sets = vec![0usize; cache.bytes / LINE / cache.ways];
    for at in addresses {
        for line in at / LINE..=(at + HOT - 1) / LINE {
            let count = sets.len();
            sets[line % count] += 1;
        }
    }
    let lines: usize = sets.iter().sum();
    let used = sets.iter().filter(|lines| **lines > 0).count();
    let most = sets.iter().copied().max().unwrap_or(0);
    let over: usize = sets.iter().map(|lines| lines.saturating_sub(cache.ways)).sum();
    let mean = lines as f64 / sets.len() as f64;
    (used as f64 / sets.len() as f64, most as f64 / mean, over as f64 / lines.max(1) as f64)
}

/// Makes each object point to another one, in one circle.
fn link(at: &[*mut u8]) {
    let mut order: Vec<usize> = (0..at.len()).collect();
    let mut rng = Rng::new(3, at.len() as u64);
    for i in (1..order.len()).rev() {
        order.swap(i, rng.below(i as u32 + 1) as usize);
    }
    for (i, from) in order.iter().enumerate() {
        let to = at[order[(i + 1) % order.len()]];
        // SAFETY: the object is ours, and larger than what is hot.
        unsafe { at[*from].cast::<*mut u8>().write(to) };
    }
}

/// Nanoseconds of a step, warm: the next object is known by this one's first word, and its last hot word is changed.
fn step_ns(at: &[*mut u8]) -> f64 {
    let walk = |steps: usize| {
        let mut here = at[0];
        for _ in 0..steps {
            // SAFETY: objects are linked in a circle, and ours.
            unsafe {
                let last = here.add(HOT - 8).cast::<u64>();
                last.write(last.read().wrapping_add(1));
                here = here.cast::<*mut u8>().read();
            }
        }
        std::hint::black_box(here);
    };
    walk(at.len());
    let steps = at.len() * (200_000 / at.len()).max(2);
    let start = Instant::now();
    walk(steps);
    start.elapsed().as_nanos() as f64 / steps as f64
}

fn ratios(rows: &[ColourRow]) -> BTreeMap<String, f64> {
    let mut ratios = BTreeMap::new();
    for level in [1, 2] {
        for other in [WAYS[1].0, WAYS[2].0] {
            let of = |name: &'static str| {
                rows.iter().filter(move |row| row.allocator == name && row.level == level).map(|row| row.ns_median.ln())
            };
            let logarithms: Vec<f64> = of(OURS).zip(of(other)).map(|(ours, its)| ours - its).collect();
            if !logarithms.is_empty() {
                let mean = (logarithms.iter().sum::<f64>() / logarithms.len() as f64).exp();
                ratios.insert(format!("walk_l{level}_vs_{other}"), mean);
            }
        }
    }
    ratios
}

fn show(document: &Document<ColourRow>) -> String {
    let percent = |part: f64| format!("{:.0} %", part * 100.0);
    let columns: [Column<ColourRow>; 9] = [
        ("bytes", |row| row.size_bytes.to_string()),
        ("level", |row| row.level.to_string()),
        ("allocator", |row| row.allocator.to_owned()),
        ("colours", |row| row.colours.to_string()),
        ("sets used", |row| format!("{:.0} %", row.sets_used * 100.0)),
        ("fullest ÷ mean", |row| format!("{:.1}", row.imbalance)),
        ("without room", |row| format!("{:.0} %", row.without_room * 100.0)),
        ("ns a step", |row| format!("{:.2}", row.ns_median)),
        ("least", |row| format!("{:.2}", row.ns_min)),
    ];
    let mean = |name: &str| {
        let all: Vec<f64> = document.rows.iter().filter(|row| row.allocator == name).map(|row| row.sets_used).collect();
        all.iter().sum::<f64>() / all.len().max(1) as f64
    };
    let used: String =
        WAYS.iter().map(|(name, _)| format!("{name} uses {} of the sets\n", percent(mean(name)))).collect();
    let ratios: String = document.ratios.iter().map(|(name, ratio)| format!("{name} {ratio:.3}\n")).collect();
    let caches: Vec<String> =
        here().iter().map(|cache| format!("{} KiB, {} ways", cache.bytes >> 10, cache.ways)).collect();
    format!(
        "sets: 32 KiB and 512 KiB of 8 ways, simulated; walks over three quarters of {}\n\n{}\n{used}\n{ratios}",
        caches.join(" and of "),
        table_of(&columns, &[2], &document.rows)
    )
}

fn picture(document: &Document<ColourRow>, title: &str, figure: fn(&ColourRow) -> f64) -> String {
    let sets = title.starts_with("Sets");
    let group = |rows: &[ColourRow]| Group {
        name: format!("{} B, level {}", rows[0].size_bytes, rows[0].level),
        bars: rows.iter().map(|row| Some(Estimate::exact(figure(row)))).collect(),
    };
    Bars {
        heading: heading(
            title,
            "objects of which the first 48 bytes are used, as many as three quarters of the lines",
            document,
        ),
        axis: if sets {
            Axis::linear("part of the sets", Unit::Part)
        } else {
            Axis::linear("time of a step", Unit::Seconds)
        },
        series: WAYS.map(|(name, _)| name.to_owned()).to_vec(),
        groups: document.rows.chunk_by(|a, b| (a.size_bytes, a.level) == (b.size_bytes, b.level)).map(group).collect(),
        reference: None,
        direction: Direction::Up,
        width_px: 860.0,
    }
    .svg()
}

#[cfg(test)]
mod tests;
