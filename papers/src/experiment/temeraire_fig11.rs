//! `temeraire-fig11`: the choice of a hugepage for a span, and its cost after demand has dropped
//! (docs/experiments.md). The quick form's 512 MiB make the cache's minimum of 16 MiB 1/16 of the
//! demand after the drop.

use super::sheet::{
    Column, Fields, Row, Sheet, Show, Title, by, distinct, json, lines, part, percent, runs, table, with,
};
use super::world::{SECOND_NS, World};
use super::{Ask, Findings, profiles, simulation};
use crate::empirical::process::{self, Event, LARGEST_PART, Process};
use crate::empirical::profile::{self, Profile};
use crate::empirical::schedule::Schedule;
use crate::empirical::spans::{Lives, span_of, spans};
use craton_base::{Density, PageRange};
use craton_lab::picture::{Axis, Unit};
use craton_pages::{Fit, FullestFirst, GlobalBestFit, LongestFreeFirst};

const FULL_BYTES: u64 = 1 << 30;
const QUICK_BYTES: u64 = 512 << 20;
const HALF_S: f64 = 120.0;
const AFTER_S: f64 = 60.0;
const SEED: u64 = 1;

type Play = fn(&Profile, u64) -> Result<Vec<Row>, String>;
const POLICIES: [(&str, Play); 4] = [
    ("craton", play::<LongestFreeFirst, true>),
    ("longest free first", play::<LongestFreeFirst, false>),
    ("fullest first", play::<FullestFirst, false>),
    ("global best fit", play::<GlobalBestFit, false>),
];

const LOADS: [(&str, Lives, &str); 3] = [
    ("even", Lives::Even, "all spans live equally long"),
    ("object", Lives::Object, "a slab lives as long as one of its objects"),
    ("last object", Lives::LastObject, "a slab lives until the last of its objects has died"),
];
const NEAR: f64 = 1.1;

const LOAD: [&str; 2] = ["profile", "lives"];
const SEARCH: [&str; 3] = ["profile", "lives", "policy"];

const COLUMNS: [Column; 10] = [
    ("profile", "profile", Show::Text),
    ("lives", "lives", Show::Text),
    ("search", "policy", Show::Text),
    ("before the drop", "before", Show::Plain),
    ("at once", "at_once", Show::Plain),
    ("after 60 s", "after", Show::Plain),
    ("on hugepages", "coverage", Show::Plain),
    ("near after", "near_after_s", Show::Fixed(0, " s")),
    ("demand", "used_bytes", Show::Bytes),
    ("memory", "backed_bytes", Show::Bytes),
];

pub fn run(ask: &Ask<'_>) -> Result<Findings, String> {
    let profiles = profiles::here()?;
    let heap_bytes = ask.form(QUICK_BYTES, FULL_BYTES);
    let ways: Vec<_> = LOADS.iter().flat_map(|load| POLICIES.map(|(policy, play)| (policy, (load, play)))).collect();
    let mut rows = Vec::new();
    for ((name, profile), (policy, ((lives, of, _), play))) in simulation::asked(ask, &profiles, &ways)? {
        let course =
            play(&spans(profile, *of), heap_bytes).map_err(|why| format!("{name}, {lives}, {policy}: {why}"))?;
        let head = json!({ "profile": name, "lives": lives, "policy": policy });
        rows.extend(course.iter().map(|at| with(head.clone(), at, "ok")));
    }
    let mut sheet = Sheet::new(ask, rows.clone());
    runs(&rows, &LOAD).for_each(|of| draw(&mut sheet, of));
    let table = table(&COLUMNS, &runs(&rows, &SEARCH).map(compared).collect::<Vec<_>>());
    sheet.findings(format!(
        "{}\nmemory ÷ bytes in spans; half of the demand goes after {HALF_S} simulated seconds; near: memory stays below {NEAR} \
         times demand\n\n{table}",
        profiles::note(&profiles)
    ))
}

fn rate_and_bytes(spans: &Profile, heap_bytes: u64) -> (f64, f64) {
    let fit = spans.rows().iter().filter(|row| row.size <= heap_bytes / LARGEST_PART);
    fit.fold((0.0, 0.0), |(rate, bytes), row: &profile::Row| (rate + row.rate, bytes + row.live * row.size as f64))
}

fn play<P: Fit, const APART: bool>(spans: &Profile, heap_bytes: u64) -> Result<Vec<Row>, String> {
    let (rate, bytes) = rate_and_bytes(spans, heap_bytes);
    // A larger heap means longer lives; faster time restores the profile's.
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
    let stretch = seconds / process.duration_s;
    let mut world: World<P> = World::new(4 * heap_bytes + (1 << 30));
    let mut out: Vec<PageRange> = Vec::with_capacity(process.slots_expected());
    let mut rows = Vec::with_capacity(seconds as usize + 2);
    while let Some(event) = process.next_event() {
        let now_s = process.now_s * stretch;
        world.pass_until((now_s * SECOND_NS as f64) as u64);
        // The last moment has a separate row.
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

fn row<P: Fit>(world: &World<P>, time_s: f64) -> Row {
    let state = world.state();
    json!({ "time_s": time_s, "used_bytes": state.used, "backed_bytes": state.backed, "huge_bytes": state.huge })
}

fn at(rows: &[Row], time_s: f64) -> Option<&Row> {
    rows.iter().rfind(|row| row.num("time_s") <= time_s + 0.5)
}

fn per_used(row: &Row) -> f64 {
    part(row.int("backed_bytes"), row.int("used_bytes"))
}

/// From then on memory stays near demand.
fn near_after_s(rows: &[Row]) -> Option<f64> {
    let far = rows.iter().rposition(|row| per_used(row) > NEAR);
    let near = rows.get(far.map_or(0, |far| far + 1))?;
    Some((near.num("time_s") - HALF_S).max(0.0))
}

fn late(rows: &[Row]) -> Row {
    at(rows, HALF_S + AFTER_S).cloned().unwrap_or_default()
}

fn compared(rows: &[Row]) -> Row {
    let per_used = |time_s| at(rows, time_s).map(|row| format!("{:.3}", per_used(row)));
    let late = late(rows);
    json!({
        "profile": rows[0]["profile"],
        "lives": rows[0]["lives"],
        "policy": rows[0]["policy"],
        "before": per_used(HALF_S - 2.0),
        "at_once": per_used(HALF_S + 1.0),
        "after": per_used(HALF_S + AFTER_S),
        "coverage": percent(part(late.int("huge_bytes"), late.int("backed_bytes")), 1),
        "near_after_s": near_after_s(rows),
        "used_bytes": late["used_bytes"],
        "backed_bytes": late["backed_bytes"],
    })
}

fn draw(sheet: &mut Sheet, rows: &[Row]) {
    let (profile, name) = (rows[0].word("profile"), rows[0].word("lives"));
    let mut series = lines(rows, by("policy"), |row| (row.num("time_s"), row.num("backed_bytes")));
    let first = distinct(rows, |row| row.word("policy"))[0];
    let demand = |row: &&Row| row.word("policy") == first;
    let demand: Vec<Row> = rows.iter().filter(demand).cloned().collect();
    series.extend(lines(&demand, |_| "demand".to_owned(), |row| (row.num("time_s"), row.num("used_bytes"))));
    let lives = LOADS.iter().find(|(load, ..)| *load == name).map_or("", |(.., lives)| lives);
    let title = Title(
        &format!("{profile}-{}", name.replace(' ', "-")),
        &format!("Memory when half of the demand goes at once: {profile}, lives: {name}"),
        &format!(
            "the page heap alone, simulated; {lives}; demand: bytes in spans; the others: memory, by where spans are placed; \
             craton: longest free first, dense spans apart"
        ),
    );
    let axes = (Axis::linear("simulated time", Unit::Seconds), Axis::linear("memory", Unit::Bytes));
    sheet.lines(title, axes, series, None);
}

#[cfg(test)]
mod tests;
