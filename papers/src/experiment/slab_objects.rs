//! `slab-objects`: what it saves that objects stay constructed while they are free.
//!
//! **What.** For each type of [`crate::caching::types`] an object is taken, used and given back: of each allocator's malloc, constructed and destroyed
//! each time; and of a cache of `libcraton.so`, constructed once. Below the table stands how much faster the cache is.
//!
//! **From.** Bonwick94 §2 and the second table of §5.1.
//!
//! **State.** Full: one object at a time and a hundred, five rounds. Quick: one at a time, one round.

use super::slab::{self, Case, ObjectRow};
use super::{Ask, Experiment, Findings, heading};
use crate::caching::From;
use crate::caching::types::TYPES;
use craton_lab::document::Document;
use craton_lab::picture::{Axis, Bars, Direction, Estimate, Group, Unit};
use craton_lab::ratios::OURS;
use std::collections::BTreeMap;

/// The experiment, in the list.
pub const EXPERIMENT: Experiment = Experiment {
    name: "slab-objects",
    about: "objects with locks, conditions, lists and buffers: constructed each time, and kept constructed by a cache",
    answers: "Bonwick94 §2, §5.1",
    run,
};

const PAPER: &str = "\
the paper's figures, SPARCstation-2, times faster with a cache
allocb 1.4, dupb 1.5, shalloc 5.1, allocp 3.7, anonmap_alloc 1.6, makepipe 1.3; streams (§2) 33 us to 5.7 us
";

fn run(ask: &Ask<'_>) -> Result<Findings, String> {
    let names: Vec<&str> = TYPES.iter().map(|of| of.name).collect();
    if let Some(unknown) = ask.only.iter().find(|name| !names.contains(&name.as_str())) {
        return Err(format!("--only {unknown}: no such type here; there are: {}", names.join(", ")));
    }
    let batches: &[usize] = if ask.quick { &[1] } else { &[1, 100] };
    let mut cases = Vec::new();
    for batch in batches.iter().copied() {
        for name in names.iter().filter(|name| ask.only.is_empty() || ask.only.iter().any(|only| only == **name)) {
            cases.extend([From::Malloc, From::Cache].map(|from| Case { from, what: (*name).to_owned(), batch }));
        }
    }
    let rows = slab::measure(ask, &cases, ask.runs.unwrap_or(if ask.quick { 1 } else { 5 }))?;
    let found = (ratios(&rows), format!("{}\n{PAPER}", times_faster(&rows)));
    slab::findings(ask, EXPERIMENT.name, rows, found, picture)
}

/// Rows of one type and batch.
fn of_type<'a>(rows: &'a [ObjectRow], name: &str, batch: usize) -> Vec<ObjectRow> {
    rows.iter().filter(|row: &&'a ObjectRow| row.what == name && row.batch == batch).cloned().collect()
}

/// The cache's time as a part of malloc's, constructor and all: of each type on Craton, and of all types on each allocator.
fn ratios(rows: &[ObjectRow]) -> BTreeMap<String, f64> {
    let cached = (OURS, "cache");
    let mut ratios = BTreeMap::new();
    for of in &TYPES {
        let one = slab::ratio(&of_type(rows, of.name, 1), cached, (OURS, "malloc"));
        ratios.extend(one.map(|ratio| (format!("cached_{}_vs_craton", of.name), ratio)));
    }
    for server in slab::servers(rows).into_iter().filter(|(_, from)| *from == "malloc") {
        ratios.extend(slab::ratio(rows, cached, server).map(|ratio| (format!("cached_vs_{}", server.0), ratio)));
    }
    ratios
}

fn times_faster(rows: &[ObjectRow]) -> String {
    let servers: Vec<_> = slab::servers(rows).into_iter().filter(|(_, from)| *from == "malloc").collect();
    let mut lines = vec![vec!["times faster".to_owned(), "batch".to_owned()]];
    lines[0].extend(servers.iter().map(|server| format!("than {}", server.0)));
    for batch in [1, 100] {
        for of in &TYPES {
            let all = of_type(rows, of.name, batch);
            if all.is_empty() {
                continue;
            }
            let cell = |server: &(&str, &str)| {
                slab::ratio(&all, (OURS, "cache"), *server)
                    .map_or("-".to_owned(), |ratio| format!("{:.1}", 1.0 / ratio))
            };
            let place = [format!("{} ({} B)", of.name, of.bytes), batch.to_string()];
            lines.push(place.into_iter().chain(servers.iter().map(cell)).collect());
        }
    }
    craton_lab::format::table(&lines, &[0])
}

fn picture(document: &Document<ObjectRow>) -> String {
    let servers = slab::servers(&document.rows);
    let group = |name: &str| Group {
        name: name.to_owned(),
        bars: servers
            .iter()
            .map(|(allocator, from)| {
                let same = |row: &&ObjectRow| row.allocator == *allocator && row.from == *from && row.what == name;
                let found = document.rows.iter().filter(same).find(|row| row.batch == 1 && row.status == "ok");
                found.map(|row| Estimate::exact(row.ns_median / 1e9))
            })
            .collect(),
    };
    let is_there = |name: &&str| document.rows.iter().any(|row| row.what == *name);
    Bars {
        heading: heading(
            "Objects that stay constructed",
            "an object is taken, used and given back; constructed each time, and by a cache; one at a time, median",
            document,
        ),
        axis: Axis::linear("time", Unit::Seconds),
        series: servers.iter().map(|server| slab::name(*server)).collect(),
        groups: TYPES.iter().map(|of| of.name).filter(is_there).map(group).collect(),
        reference: None,
        direction: Direction::Up,
        width_px: 860.0,
    }
    .svg()
}
