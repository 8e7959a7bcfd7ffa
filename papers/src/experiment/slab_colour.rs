//! `slab-colour`: the benefit of slabs whose objects begin at different offsets (Bonwick94 §4.1,
//! §4.3).
//!
//! **Unsafe.** Uses raw memory.

use super::sheet::{Column, Fields, Map, Row, Sheet, Show, Title, by, groups, json, mean, percent, ratio, table};
use super::{Ask, Findings, simulation};
use crate::objects::{Arena, PowerOfTwo, Store};
use craton_base::PAGE_SIZE;
use craton_lab::picture::{Axis, Unit};
use craton_lab::ratios::OURS;
use craton_lab::rng::Rng;
use craton_lab::summary::Spread;
use craton_slab::object::{ObjectLayout, ObjectSlabs};
use std::fs;
use std::time::Instant;

const HOT: usize = 48;
const LINE: usize = 64;
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

const WAYS: [(&str, Layout); 3] =
    [(OURS, Layout::Coloured), ("craton-one-colour", Layout::Plain), ("power-of-two", Layout::Powers)];

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Layout {
    Coloured,
    Plain,
    Powers,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Cache {
    level: u32,
    bytes: usize,
    ways: usize,
}

const SIMULATED: [Cache; 2] =
    [Cache { level: 1, bytes: 32 << 10, ways: 8 }, Cache { level: 2, bytes: 512 << 10, ways: 8 }];

const COLUMNS: [Column; 9] = [
    ("bytes", "size_bytes", Show::Plain),
    ("level", "level", Show::Plain),
    ("allocator", "allocator", Show::Text),
    ("colours", "colours", Show::Plain),
    ("sets used", "sets_used", Show::Percent(0)),
    ("fullest ÷ mean", "imbalance", Show::Fixed(1, "")),
    ("without room", "without_room", Show::Percent(0)),
    ("ns a step", "ns_median", Show::Fixed(2, "")),
    ("least", "ns_min", Show::Fixed(2, "")),
];

pub fn run(ask: &Ask<'_>) -> Result<Findings, String> {
    let mut rows = Vec::new();
    for (size, _) in simulation::asked(ask, &SIZES, &simulation::ONCE)? {
        if ask.quick && ask.only.is_empty() && !QUICK.contains(&size.0) {
            continue;
        }
        for (simulated, real) in SIMULATED.into_iter().zip(here()) {
            rows.extend(measure(size.1, simulated, real, ask.form(5, 31))?);
        }
    }
    let text = show(&rows);
    let mut sheet = Sheet::new(ask, rows);
    let ratios = sheet.ratios(ratios, 3);
    let subtitle = "objects of which the first 48 bytes are used, as many as three quarters of the lines";
    let series = WAYS.map(|(name, _)| name.to_owned());
    for (name, title, axis, field, unit) in [
        (
            "sets",
            "Sets of a cache that hot bytes fall into",
            Axis::linear("part of the sets", Unit::Part),
            "sets_used",
            1.0,
        ),
        ("walk", "A step of a walk over hot bytes", Axis::linear("time of a step", Unit::Seconds), "ns_median", 1e-9),
    ] {
        let place = |row: &Row| format!("{} B, level {}", row.int("size_bytes"), row.int("level"));
        let bars = groups(sheet.rows(), place, (&series, by("allocator")), |row| row.num(field) * unit);
        sheet.bars(Title(name, title, subtitle), axis, &series, bars, None);
    }
    sheet.findings(text + ratios.as_str())
}

/// Of processor 0, as far as reported.
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
    let take = |_| unsafe { slabs.alloc(&mut arena) }.map(|taken| taken.object());
    let at = (0..count).map(take).collect::<Option<_>>().ok_or_else(none)?;
    let colours = if layout == Layout::Coloured { of.colours() } else { 1 };
    Ok(Objects { at, colours, _memory: Memory::Slabs(arena) })
}

fn fill(cache: Cache) -> usize {
    cache.bytes / LINE * 3 / 4
}

fn measure(size: usize, simulated: Cache, real: Cache, repetitions: usize) -> Result<Vec<Row>, String> {
    let mut rows = Vec::new();
    let (mut walks, mut times) = (Vec::new(), vec![Vec::new(); WAYS.len()]);
    for (allocator, layout) in WAYS {
        let of = objects(size, fill(simulated), layout)?;
        let addresses: Vec<usize> = of.at.iter().map(|at| *at as usize).collect();
        let (sets_used, imbalance, without_room) = spread(&addresses, simulated);
        let walk = objects(size, fill(real), layout)?;
        link(&walk.at);
        walks.push(walk);
        rows.push(json!({
            "allocator": allocator,
            "size_bytes": size,
            "colours": of.colours,
            "level": simulated.level,
            "cache_bytes": simulated.bytes,
            "sets_used": sets_used,
            "imbalance": imbalance,
            "without_room": without_room,
            "walk_objects": fill(real),
            "walk_cache_bytes": real.bytes,
            "ns_median": 0.0,
            "ns_min": 0.0,
            "status": "ok",
        }));
    }
    // In turns: a disturbance affects all.
    for _ in 0..repetitions {
        for (walk, times) in walks.iter().zip(&mut times) {
            times.push(step_ns(&walk.at));
        }
    }
    for (row, times) in rows.iter_mut().zip(times) {
        let spread = Spread::of(times).ok_or("no walk was timed")?;
        (row["ns_median"], row["ns_min"]) = (spread.median.into(), spread.min.into());
    }
    Ok(rows)
}

/// The part of sets with hot bytes; the fullest set by the mean; lines without room.
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

fn link(at: &[*mut u8]) {
    let mut order: Vec<usize> = (0..at.len()).collect();
    let mut rng = Rng::new(3, at.len() as u64);
    for i in (1..order.len()).rev() {
        order.swap(i, rng.below(i as u32 + 1) as usize);
    }
    for (i, from) in order.iter().enumerate() {
        let to = at[order[(i + 1) % order.len()]];
        // SAFETY: ours, and larger than its hot part.
        unsafe { at[*from].cast::<*mut u8>().write(to) };
    }
}

/// Of a warm step: an object's first word is the next one's address.
fn step_ns(at: &[*mut u8]) -> f64 {
    let walk = |steps: usize| {
        let mut here = at[0];
        for _ in 0..steps {
            // SAFETY: a circle of our objects.
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

fn ratios(rows: &[Row]) -> Map {
    let mut ratios = Map::new();
    for level in [1, 2] {
        for other in [WAYS[1].0, WAYS[2].0] {
            let of = |name: &'static str| move |row: &Row| row.word("allocator") == name && row.int("level") == level;
            let mean = ratio(rows, "ns_median", (&of(OURS), &of(other)), &["size_bytes", "level"]);
            ratios.extend(mean.map(|mean| (format!("walk_l{level}_vs_{other}"), mean)));
        }
    }
    ratios
}

fn show(rows: &[Row]) -> String {
    let used = |(name, _): (&'static str, Layout)| {
        let all = rows.iter().filter(|row| row.word("allocator") == name).map(|row| row.num("sets_used"));
        format!("{name} uses {} of the sets\n", percent(mean(all), 0))
    };
    let caches = here().map(|cache| format!("{} KiB, {} ways", cache.bytes >> 10, cache.ways));
    format!(
        "sets: 32 KiB and 512 KiB of 8 ways, simulated; walks over three quarters of {}\n\n{}\n{}\n",
        caches.join(" and of "),
        table(&COLUMNS, rows),
        WAYS.map(used).concat()
    )
}

#[cfg(test)]
mod tests;
