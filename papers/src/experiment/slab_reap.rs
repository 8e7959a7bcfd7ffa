//! `slab-reap`: the memory that a cache keeps after a spike, and the cost of the next one
//! (Bonwick94 §3.4).
//!
//! **Unsafe.** Moves raw objects and magazines.

use super::sheet::{Column, Fields, Map, Row, Sheet, Show, Title, by, json, lines, mean, part, table};
use super::{Ask, Findings, simulation};
use crate::objects::Arena;
use craton_lab::format::bytes;
use craton_lab::picture::{Axis, Unit};
use craton_lab::rng::Rng;
use craton_slab::object::{Depot, Magazine, ObjectLayout, ObjectSlabs, Taken};

/// An inode.
const OBJECT: usize = 328;
const SPIKE: usize = 4096;
const SPIKES: [u64; 7] = [10, 15, 20, 25, 30, 50, 170];
const SECONDS: u64 = 240;
const SECOND_NS: u64 = 1_000_000_000;
/// The part of a spike that is live besides.
const STEADY: usize = 8;

const INTERVALS: [(&str, u64); 3] = [("0 s", 0), ("15 s", Depot::INTERVAL_NS), ("for ever", u64::MAX)];

const COLUMNS: [Column; 6] = [
    ("interval", "interval", Show::Text),
    ("spike at", "second", Show::Fixed(0, " s")),
    ("objects", "objects", Show::Count),
    ("memory", "memory_bytes", Show::Bytes),
    ("slabs anew", "slabs_made", Show::Count),
    ("constructors", "constructed", Show::Count),
];

pub fn run(ask: &Ask<'_>) -> Result<Findings, String> {
    let mut rows = Vec::new();
    for ((name, interval), _) in simulation::asked(ask, &INTERVALS, &simulation::ONCE)? {
        rows.extend(play(name, *interval, SPIKE)?);
    }
    let text = show(&rows);
    let mut sheet = Sheet::new(ask, rows);
    let ratios = sheet.ratios(ratios, 3);
    let title = Title(
        "",
        "A cache's memory around spikes",
        "by the interval of its working set; seven spikes of a second each, in virtual time",
    );
    let series = lines(sheet.rows(), by("interval"), |row| (row.num("second"), row.num("memory_bytes")));
    sheet.lines(title, (Axis::linear("time", Unit::Seconds), Axis::linear("memory", Unit::Bytes)), series, None);
    sheet.findings(format!("{text}\n{ratios}"))
}

struct Cache {
    arena: Arena,
    slabs: ObjectSlabs,
    depot: Depot,
    interval_ns: u64,
    loaded: Option<Magazine>,
    previous: Option<Magazine>,
    constructed: u64,
    destroyed: u64,
}

impl Cache {
    fn new(pages: usize, interval_ns: u64) -> Result<Self, String> {
        let layout = ObjectLayout::of(OBJECT, 8, true).map_err(|why| why.to_string())?;
        let mut depot = Depot::new(OBJECT);
        depot.set_interval_ns(interval_ns);
        Ok(Self {
            arena: Arena::new(pages),
            slabs: ObjectSlabs::new(layout),
            depot,
            interval_ns,
            loaded: None,
            previous: None,
            constructed: 0,
            destroyed: 0,
        })
    }

    fn alloc(&mut self) -> Result<*mut u8, String> {
        for _ in 0..2 {
            if let Some(object) = self.loaded.as_mut().and_then(Magazine::pop) {
                return Ok(object);
            }
            std::mem::swap(&mut self.loaded, &mut self.previous);
        }
        if let Some(full) = self.depot.get_full() {
            if let Some(empty) = self.previous.replace(full) {
                // SAFETY: the arena is always the supplier; the magazine is the depot's.
                unsafe { self.depot.put_empty(empty, &mut self.arena) };
            }
            std::mem::swap(&mut self.loaded, &mut self.previous);
            return self.loaded.as_mut().and_then(Magazine::pop).ok_or_else(|| "a full magazine is empty".to_owned());
        }
        // SAFETY: the arena is always the supplier.
        match unsafe { self.slabs.alloc(&mut self.arena) } {
            Some(Taken::Constructed(object)) => Ok(object),
            Some(Taken::Raw(object)) => {
                self.constructed += 1;
                Ok(object)
            }
            None => Err("the arena is used up".to_owned()),
        }
    }

    fn free(&mut self, object: *mut u8) {
        for _ in 0..2 {
            if self.loaded.as_mut().is_some_and(|magazine| magazine.push(object)) {
                return;
            }
            std::mem::swap(&mut self.loaded, &mut self.previous);
        }
        // SAFETY: as above.
        if let Some(mut empty) = unsafe { self.depot.get_empty(&mut self.arena) } {
            empty.push(object);
            if let Some(full) = self.previous.replace(empty) {
                if full.is_empty() {
                    // SAFETY: as above.
                    unsafe { self.depot.put_empty(full, &mut self.arena) };
                } else {
                    self.depot.put_full(full);
                }
            }
            std::mem::swap(&mut self.loaded, &mut self.previous);
        } else {
            give(&mut self.slabs, object);
        }
    }

    fn tick(&mut self, now_ns: u64) {
        let Self { arena, slabs, depot, destroyed, interval_ns, .. } = self;
        if depot.tick(now_ns) {
            while let Some(mut magazine) = depot.get_idle() {
                while let Some(object) = magazine.pop() {
                    give(slabs, object);
                }
                // SAFETY: as above.
                unsafe { depot.drop_empty(magazine, arena) };
            }
            // SAFETY: as above.
            unsafe { depot.reap_empty(false, arena) };
            slabs.turn();
            if *interval_ns == 0 {
                slabs.turn();
            }
        }
        let keep = slabs.complete() - slabs.idle().min(slabs.complete());
        // SAFETY: as above; counting does not use it.
        unsafe { slabs.reap(keep, arena, |_| *destroyed += 1) };
    }
}

fn give(slabs: &mut ObjectSlabs, object: *mut u8) {
    // SAFETY: free and constructed.
    unsafe { slabs.free(object, true) }.expect("it is an object of the cache");
}

fn play(interval: &'static str, interval_ns: u64, spike: usize) -> Result<Vec<Row>, String> {
    let mut cache = Cache::new(spike * OBJECT * 4 / craton_base::PAGE_SIZE + 64, interval_ns)?;
    let mut rng = Rng::new(1, 0);
    let (mut out, mut rows): (Vec<*mut u8>, Vec<Row>) = (Vec::new(), Vec::new());
    for second in 0..SECONDS {
        let before = (cache.slabs.stats().slabs_made.into(), cache.constructed, cache.destroyed);
        let steady = spike / STEADY;
        while out.len() < steady {
            out.push(cache.alloc()?);
        }
        for _ in 0..steady {
            let gone = rng.below(out.len() as u32) as usize;
            cache.free(out.swap_remove(gone));
            out.push(cache.alloc()?);
        }
        if SPIKES.contains(&second) {
            for _ in 0..spike {
                out.push(cache.alloc()?);
            }
            let objects = out.len() as u64;
            rows.push(row(&cache, interval, second, objects, before));
            // The last first; a few were exchanged with steady ones.
            while out.len() > steady {
                let last = out.len() - 1;
                if rng.one_in(500) {
                    out.swap(last, rng.below(steady as u32) as usize);
                }
                cache.free(out.pop().expect("more than the steady ones are out"));
            }
            cache.tick(second * SECOND_NS);
            continue;
        }
        cache.tick(second * SECOND_NS);
        rows.push(row(&cache, interval, second, out.len() as u64, before));
    }
    cache.slabs.check().map_err(|broken| format!("{broken:?}"))?;
    cache.depot.check().map_err(|broken| format!("{broken:?}"))?;
    Ok(rows)
}

fn row(cache: &Cache, interval: &'static str, second: u64, objects: u64, before: (u64, u64, u64)) -> Row {
    json!({
        "interval": interval,
        "second": second,
        "objects": objects,
        "memory_bytes": cache.arena.consumed(),
        "slabs_made": u64::from(cache.slabs.stats().slabs_made) - before.0,
        "constructed": cache.constructed - before.1,
        "destroyed": cache.destroyed - before.2,
        "status": "ok",
    })
}

fn of<'a>(rows: &'a [Row], interval: &'a str) -> impl Iterator<Item = &'a Row> {
    rows.iter().filter(move |row| row.word("interval") == interval)
}

fn memory(rows: &[Row], interval: &str) -> f64 {
    mean(of(rows, interval).map(|row| row.num("memory_bytes")))
}

fn constructors(rows: &[Row], interval: &str) -> u64 {
    of(rows, interval).map(|row| row.int("constructed")).sum()
}

fn ratios(rows: &[Row]) -> Map {
    let usual = INTERVALS[1].0;
    let mut ratios = Map::new();
    for (name, key) in [(INTERVALS[0].0, "0s"), (INTERVALS[2].0, "for_ever")] {
        if of(rows, usual).next().is_some() && of(rows, name).next().is_some() {
            ratios.insert(format!("memory_of_15s_vs_{key}"), memory(rows, usual) / memory(rows, name));
            let calls = part(constructors(rows, usual), constructors(rows, name));
            ratios.insert(format!("constructors_of_15s_vs_{key}"), calls);
        }
    }
    ratios
}

fn show(rows: &[Row]) -> String {
    let text = table(&COLUMNS, rows.iter().filter(|row| SPIKES.contains(&row.int("second"))));
    let mut lines = vec![["interval", "1 s", "15 s", "31 s", "60 s", "mean"].map(str::to_owned).to_vec()];
    for (name, _) in INTERVALS.iter().filter(|(name, _)| of(rows, name).next().is_some()) {
        let at = |after: u64| {
            let found = of(rows, name).find(|row| row.int("second") == SPIKES[SPIKES.len() - 1] + after);
            found.map_or("-".to_owned(), |row| bytes(row.int("memory_bytes")))
        };
        lines.push(vec![(*name).to_owned(), at(1), at(15), at(31), at(60), bytes(memory(rows, name) as u64)]);
    }
    let after = craton_lab::format::table(&lines, &[0]);
    format!("{text}\nmemory so many seconds after the last spike, and in the mean\n{after}")
}

#[cfg(test)]
mod tests;
