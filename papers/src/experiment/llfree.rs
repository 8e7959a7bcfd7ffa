//! Common parts of the experiments that time allocators of frames (docs/experiments.md).

use super::sheet::{Column, Fields, Map, Row, Sheet, Show, Title, by, distinct, geomean, json, lines, pairs, table};
use super::{Ask, Findings};
use crate::frames::loops::{Loop, Loops, Times};
use crate::frames::{Design, GIB, World, authors};
use craton_lab::machine::processors;
use craton_lab::picture::{Axis, Unit};
use craton_lab::ratios::OURS;
use craton_lab::summary::Spread;

pub const FULL_GIB: usize = 128;
pub const QUICK_GIB: usize = 4;
pub const FULL_ROUNDS: usize = 5;
pub const QUICK_ROUNDS: usize = 3;
const FULL_PAIRS: usize = 4_000_000;
const QUICK_PAIRS: usize = 200_000;
const LEAST_BLOCKS: usize = 16;

pub struct Grid {
    pub designs: Vec<Design>,
    pub orders: Vec<u32>,
    pub threads: Vec<usize>,
}

/// A loop, and the end of its field `ns_per_…`.
pub type Of = (Loop, &'static str);

pub const FIGURES: [Of; 4] = [(Loop::Bulk, "get"), (Loop::Bulk, "put"), (Loop::Random, "put"), (Loop::Repeat, "pair")];

pub const COLUMNS: [Column; 8] = [
    ("loop", "workload", Show::Text),
    ("order", "order", Show::Plain),
    ("threads", "threads", Show::Plain),
    ("allocator", "allocator", Show::Text),
    ("get", "", Show::By(|row| cell(row, "get"))),
    ("put", "", Show::By(|row| cell(row, "put"))),
    ("pair", "", Show::By(|row| cell(row, "pair"))),
    ("", "status", Show::Status),
];

fn cell(row: &Row, what: &str) -> String {
    match (&row[format!("ns_per_{what}")], &row[format!("ns_per_{what}_min")]) {
        (Row::Number(median), Row::Number(min)) => {
            let of = |number: &serde_json::Number| number.as_f64().unwrap_or(0.0);
            format!("{:.1} [{:.1}]", of(median), of(min))
        }
        _ => String::new(),
    }
}

/// Powers of two up to all processors, and those.
pub fn threads() -> Vec<usize> {
    let all = processors().len().max(1);
    let mut threads: Vec<usize> = (0..).map(|power| 1 << power).take_while(|threads| *threads < all).collect();
    threads.push(all);
    threads
}

/// All where none is named.
fn choose(ask: &Ask<'_>, designs: &[Design]) -> Result<(Vec<Loop>, Vec<Design>), String> {
    ask.refuse(&["--peers"], ", which compares allocators of frames")?;
    let (loops, names) = (Loop::ALL.map(Loop::name), designs.iter().map(|of| of.name()).collect::<Vec<_>>());
    ask.known("loop or allocator", &[&loops, &names[..]].concat())?;
    let asked = |of: &[&str], name| !ask.only.iter().any(|only| of.contains(&only.as_str())) || ask.wants(name);
    let loops = Loop::ALL.into_iter().filter(|of| asked(&loops, of.name())).collect();
    Ok((loops, designs.iter().copied().filter(|of| asked(&names, of.name())).collect()))
}

pub fn measure(ask: &Ask<'_>, grid: &Grid) -> Result<Vec<Row>, String> {
    let (loops, designs) = choose(ask, &grid.designs)?;
    let (gib, pairs) = ask.form((QUICK_GIB, QUICK_PAIRS), (FULL_GIB, FULL_PAIRS));
    let rounds = ask.rounds(QUICK_ROUNDS, FULL_ROUNDS);
    let most = grid.threads.iter().copied().max().unwrap_or(1);
    let total = grid.orders.len() * grid.threads.len() * rounds * designs.len();
    let (mut rows, mut done) = (Vec::new(), 0);
    for (order, threads) in grid.orders.iter().flat_map(|order| grid.threads.iter().map(move |of| (*order, *of))) {
        let world = World { frames: gib * GIB, order, processors: threads };
        // Half of all memory when every processor takes part.
        let blocks = ((world.frames >> order) / (2 * most)).max(LEAST_BLOCKS);
        let job = Loops { of: &loops, order, threads, blocks, pairs };
        let mut found: Vec<Vec<Result<Vec<Times>, String>>> = vec![Vec::new(); designs.len()];
        for round in 0..rounds {
            for (design, found) in designs.iter().zip(&mut found) {
                if ask.stopped() {
                    break;
                }
                ask.show(&format!("order {order}, {threads} threads"), design.name(), round, (done, total));
                found.push(design.with(&world, job).and_then(|done| done));
                done += 1;
            }
        }
        for (design, found) in designs.iter().zip(&found) {
            rows.extend(loops.iter().filter_map(|of| row(*design, &job, *of, gib, found)));
        }
    }
    if rows.is_empty() { Err("nothing was measured".to_owned()) } else { Ok(rows) }
}

fn row(design: Design, job: &Loops<'_>, of: Loop, gib: usize, found: &[Result<Vec<Times>, String>]) -> Option<Row> {
    let wrong = found.iter().find_map(|round| round.as_ref().err());
    let good = || found.iter().flatten().flatten().filter(|times| times.of == of);
    let spread = |figure: fn(&Times) -> Option<f64>| {
        let spread = Spread::of(good().filter_map(figure));
        (spread.map(|of| of.median), spread.map(|of| of.min))
    };
    let [get, put, pair] = [spread(|t| t.ns_per_get), spread(|t| t.ns_per_put), spread(|t| t.ns_per_pair)];
    let row = || {
        json!({
            "workload": of.name(),
            "allocator": design.name(),
            "order": job.order,
            "threads": job.threads,
            "memory_bytes": (gib as u64) << 30,
            "blocks": job.blocks,
            "rounds": good().count(),
            "ns_per_get": get.0,
            "ns_per_get_min": get.1,
            "ns_per_put": put.0,
            "ns_per_put_min": put.1,
            "ns_per_pair": pair.0,
            "ns_per_pair_min": pair.1,
            "status": wrong.map_or("ok".to_owned(), |wrong| format!("failed: {wrong}")),
        })
    };
    (!found.is_empty()).then(row)
}

pub fn ratios(rows: &[Row]) -> Map {
    let mut ratios = Map::new();
    let others = distinct(rows, |row| row.word("allocator")).into_iter().filter(|name| *name != OURS);
    for other in others {
        let mut logs = Vec::new();
        for (of, what) in FIGURES {
            let one = |name: &'static str| move |row: &Row| row.has(&[("allocator", name), ("workload", of.name())]);
            let theirs = |row: &Row| row.has(&[("allocator", other), ("workload", of.name())]);
            let same = ["workload", "order", "threads"];
            let all = pairs(rows, &format!("ns_per_{what}"), (&one(OURS), &theirs), &same);
            if !all.is_empty() {
                ratios.insert(format!("{}_{what}_vs_{other}", of.name()), geomean(&all));
            }
            logs.extend(all);
        }
        if !logs.is_empty() {
            ratios.insert(format!("time_vs_{other}"), geomean(&logs));
        }
    }
    ratios
}

pub fn findings(ask: &Ask<'_>, rows: Vec<Row>, paper: &str, draw: impl FnOnce(&mut Sheet)) -> Result<Findings, String> {
    let mut sheet = Sheet::new(ask, rows);
    let ratios = sheet.ratios(ratios, 3);
    draw(&mut sheet);
    let place = |row: &&Row| Loop::ALL.iter().position(|of| of.name() == row.word("workload"));
    let mut sorted: Vec<&Row> = sheet.rows().iter().collect();
    sorted.sort_by_key(place);
    let table = table(&COLUMNS, sorted);
    sheet.findings(format!(
        "ns for each operation, the median over rounds and [the least]\n\n{table}\n{ratios}\n{paper}{}",
        authors::note()
    ))
}

pub fn done(sheet: &Sheet) -> Vec<Of> {
    let done = |(of, _): &Of| sheet.rows().iter().any(|row| row.word("workload") == of.name());
    FIGURES.into_iter().filter(done).collect()
}

pub fn picture(
    sheet: &mut Sheet,
    (of, what): Of,
    (name, title): (&str, &str),
    (x, field): (Axis, &str),
    wanted: impl Fn(&Row) -> bool,
) {
    let memory = sheet.rows().first().map_or(0, |row| row.int("memory_bytes") >> 30);
    let title = Title(
        &format!("{}-{what}{name}", of.name()),
        &format!("{}: {what}{title}", of.name()),
        &format!("time of an operation on each thread, {memory} GiB; medians"),
    );
    let figure = format!("ns_per_{what}");
    let has = |row: &&Row| row.word("workload") == of.name() && row[&figure].is_number() && wanted(row);
    let rows: Vec<&Row> = sheet.rows().iter().filter(has).collect();
    let series = lines(rows, by("allocator"), |row| (row.num(field), row.num(&figure) / 1e9));
    sheet.lines(title, (x, Axis::log(format!("time of a {what}"), Unit::Seconds)), series, None);
}

pub fn over_threads(sheet: &mut Sheet, orders: &[u32]) {
    for figure in done(sheet) {
        for order in orders {
            let names = (&*format!("-order{order}"), &*format!(", order {order}"));
            let x = (Axis::log2("threads", Unit::Count), "threads");
            picture(sheet, figure, names, x, |row| row.int("order") == u64::from(*order));
        }
    }
}

#[cfg(test)]
mod tests;
