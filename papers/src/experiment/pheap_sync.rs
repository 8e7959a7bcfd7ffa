//! `pheap-sync`: scattered pages made durable at once, all or none (docs/experiments.md). Files lie
//! in the temporary directory, which should be on a disk.

use super::sheet::{Column, Fields, Map, Row, Sheet, Show, Title, by, distinct, groups, json, mean, pairs, table};
use super::{Ask, Findings};
use crate::durable::{self, BYTES, CRATON, Durable, NAMES, RECORDS};
use craton_lab::picture::{Axis, Unit};
use craton_lab::rng::Rng;
use craton_lab::scratch::Scratch;
use craton_lab::summary::Spread;
use std::fs;
use std::time::Instant;

const PAGES: [usize; 4] = [1, 10, 100, 1000];
const FULL_ROUNDS: usize = 5;
const FULL_CHANGES: usize = 20;
const QUICK_CHANGES: usize = 2;

const COLUMNS: [Column; 8] = [
    ("pages", "pages", Show::Plain),
    ("store", "allocator", Show::Text),
    ("ms", "ms", Show::Fixed(2, "")),
    ("least", "ms_min", Show::Fixed(2, "")),
    ("and changes", "change_ms", Show::Fixed(2, "")),
    ("and work that waits, mean", "all_ms", Show::Fixed(2, "")),
    ("written", "written_bytes", Show::Bytes),
    ("", "status", Show::Status),
];

fn load(pages: usize) -> String {
    format!("sync-{pages}")
}

struct Place {
    name: &'static str,
    store: Box<dyn Durable>,
    /// Removed after the store.
    _folder: Scratch,
}

#[derive(Clone, Default)]
struct Found {
    /// Commits alone, then with the changes, and with all.
    ms: Vec<f64>,
    change_ms: Vec<f64>,
    all_ms: Vec<f64>,
    written_bytes: u64,
    failed: Option<String>,
}

pub fn run(ask: &Ask<'_>) -> Result<Findings, String> {
    ask.refuse(&["--peers"], ", which compares stores on a disk")?;
    ask.known("load", &PAGES.map(load))?;
    let (mut places, mut missing) = (Vec::new(), String::new());
    for name in NAMES {
        let folder = Scratch::new("a store's files")?;
        match durable::make(name, folder.path()) {
            Ok(store) => places.push(Place { name, store, _folder: folder }),
            Err(why) => missing += &format!("{name}: {why}\n"),
        }
    }
    let (rounds, mut rng) = (ask.rounds(1, FULL_ROUNDS), Rng::new(1, 0));
    let mut rows = Vec::new();
    for pages in PAGES.into_iter().filter(|pages| ask.wants(&load(*pages))) {
        let mut found = vec![Found::default(); places.len()];
        for turn in 0..rounds * places.len() {
            if ask.stopped() {
                break;
            }
            let (round, at) = (turn / places.len(), turn % places.len());
            ask.show(&load(pages), places[at].name, round, (turn, rounds * places.len()));
            for _ in 0..ask.form(QUICK_CHANGES, FULL_CHANGES) {
                change(&mut *places[at].store, pages, &mut rng, &mut found[at]);
            }
        }
        rows.extend(places.iter().zip(&found).filter_map(|(place, found)| row(place.name, pages, found)));
    }
    findings(ask, rows, &missing)
}

fn change(store: &mut dyn Durable, pages: usize, rng: &mut Rng, found: &mut Found) {
    let mut records = Vec::with_capacity(pages);
    while records.len() < pages {
        let record = rng.below(RECORDS);
        if !records.contains(&record) {
            records.push(record);
        }
    }
    let value = [rng.below(256) as u8; BYTES];
    let (before, start) = (written_bytes(), Instant::now());
    let ms = || start.elapsed().as_secs_f64() * 1e3;
    let changed = store.change(&records, &value);
    let before_commit = ms();
    let committed = changed.and_then(|()| store.commit());
    found.ms.push(ms() - before_commit);
    found.change_ms.push(ms());
    let done = committed.and_then(|()| store.tidy());
    found.all_ms.push(ms());
    found.written_bytes += written_bytes() - before;
    found.failed = found.failed.take().or(done.err());
}

/// That this process has sent to disks.
fn written_bytes() -> u64 {
    let io = fs::read_to_string("/proc/self/io").unwrap_or_default();
    let line = io.lines().find_map(|line| line.strip_prefix("write_bytes: "));
    line.and_then(|bytes| bytes.trim().parse().ok()).unwrap_or(0)
}

fn row(name: &str, pages: usize, found: &Found) -> Option<Row> {
    let ms = Spread::of(found.ms.iter().copied())?;
    Some(json!({
        "workload": load(pages),
        "pages": pages,
        "allocator": name,
        "changes": found.ms.len(),
        "ms": ms.median,
        "ms_min": found.ms.iter().copied().fold(f64::INFINITY, f64::min),
        "ms_max": found.ms.iter().copied().fold(0.0, f64::max),
        "change_ms": Spread::of(found.change_ms.iter().copied()).map(|of| of.median),
        "all_ms": mean(found.all_ms.iter().copied()),
        "written_bytes": found.written_bytes / found.ms.len() as u64,
        "status": found.failed.as_ref().map_or("ok".to_owned(), |why| format!("failed: {why}")),
    }))
}

/// Craton's times by each other's.
fn ratios(rows: &[Row]) -> Map {
    let ours = |row: &Row| row.word("allocator") == CRATON;
    let mut ratios = Map::new();
    for row in rows.iter().filter(|row| !ours(row)) {
        let theirs = |other: &Row| other == row;
        for (figure, name) in [("ms", "commit"), ("change_ms", "change"), ("all_ms", "all")] {
            if let [ratio] = pairs(rows, figure, (&ours, &theirs), &["workload"])[..] {
                ratios.insert(format!("{}_{name}_vs_{}", row.word("workload"), row.word("allocator")), ratio);
            }
        }
    }
    ratios
}

fn findings(ask: &Ask<'_>, rows: Vec<Row>, missing: &str) -> Result<Findings, String> {
    let mut sheet = Sheet::new(ask, rows).measured()?;
    let ratios = sheet.ratios(ratios, 3);
    let names = distinct(sheet.rows(), |row| row.word("allocator").to_owned());
    let bars = groups(sheet.rows(), by("workload"), (&names, by("allocator")), |row| row.num("ms") / 1e3);
    let title = Title("", "Time to make scattered pages durable", "of 64 MiB on a disk, all or none; medians");
    sheet.bars(title, Axis::log("time", Unit::Seconds), &names, bars, None);
    let table = table(&COLUMNS, sheet.rows());
    sheet.findings(format!("{table}\n{ratios}\nthe paper's figures: none\n{missing}"))
}
