//! `slab-speed`: what it costs to take memory of one size and give it back.
//!
//! **What.** One object at a time, and a hundred: a cache of `libcraton.so`, each allocator's malloc, the slabs of `craton-slab` without
//! locks and processors' arrays, and the allocators of SunOS 4.1.3, 4.4BSD and SVr4, without locks too, in one program.
//!
//! **From.** Bonwick94 §5.1, first table.
//!
//! **State.** Full: seven sizes, five rounds. Quick: three sizes, one round.

use super::slab::{self, Case, ObjectRow};
use super::{Ask, Experiment, Findings, heading};
use crate::caching::From;
use craton_lab::document::Document;
use craton_lab::picture::{Axis, Line, Lines, Point, Unit};
use craton_lab::ratios::{BASE, OURS};
use std::collections::BTreeMap;

/// The experiment, in the list.
pub const EXPERIMENT: Experiment = Experiment {
    name: "slab-speed",
    about: "an object taken and given back: caches, slabs, every malloc, and three allocators of the paper's time",
    answers: "Bonwick94 §5.1; at most 4 ns, or no slower than the fastest malloc?",
    run,
};

const FULL: [usize; 7] = [16, 48, 128, 328, 512, 1096, 4096];
const QUICK: [usize; 3] = [48, 328, 1096];
const BATCHES: [usize; 2] = [1, 100];

const PAPER: &str = "\
the paper's figures, SPARCstation-2, in microseconds
kmem_cache_alloc 3.8; 4.4BSD 4.1; slab, kmem_alloc 4.7; SVr4 9.4; SunOS 4.1.3 25.0
";

fn run(ask: &Ask<'_>) -> Result<Findings, String> {
    let sizes: &[usize] = if ask.quick { &QUICK } else { &FULL };
    let names: Vec<String> = sizes.iter().map(usize::to_string).collect();
    if let Some(unknown) = ask.only.iter().find(|name| !names.contains(name)) {
        return Err(format!("--only {unknown}: no such size here; there are: {}", names.join(", ")));
    }
    let mut cases = Vec::new();
    for batch in BATCHES {
        for what in names.iter().filter(|name| ask.only.is_empty() || ask.only.contains(name)) {
            cases.extend(From::ALL.map(|(_, from)| Case { from, what: what.clone(), batch }));
        }
    }
    let rows = slab::measure(ask, &cases, ask.runs.unwrap_or(if ask.quick { 1 } else { 5 }))?;
    let found = (ratios(&rows), PAPER.to_owned());
    slab::findings(ask, EXPERIMENT.name, rows, found, picture)
}

/// Craton's cache and malloc against each malloc, and its slabs against the stores.
fn ratios(rows: &[ObjectRow]) -> BTreeMap<String, f64> {
    let mut ratios = BTreeMap::new();
    let servers = slab::servers(rows);
    for (name, from) in servers.iter().copied() {
        let key = match from {
            "malloc" => name,
            "cache" => continue,
            _ => from,
        };
        let mut add = |ours: &str, server| {
            if let Some(ratio) = slab::ratio(rows, server, (name, from)).filter(|_| server != (name, from)) {
                ratios.insert(format!("{ours}_vs_{key}"), ratio);
            }
        };
        add("cache", (OURS, "cache"));
        match from {
            "malloc" => add("malloc", (OURS, "malloc")),
            _ => add("slabs", ("slabs", "slabs")),
        }
    }
    // Against the single fastest malloc that is not ours.
    let peers = servers.iter().filter(|(name, from)| *from == "malloc" && !craton_lab::picture::is_craton(name));
    let of = |peer: &str| slab::ratio(rows, (peer, "malloc"), (BASE, "malloc"));
    let best = peers.filter_map(|(name, _)| Some((*name, of(name)?))).min_by(|a, b| a.1.total_cmp(&b.1));
    if let Some(ratio) = best.and_then(|(best, _)| slab::ratio(rows, (OURS, "cache"), (best, "malloc"))) {
        ratios.insert("cache_vs_best_peer".to_owned(), ratio);
    }
    ratios
}

fn picture(document: &Document<ObjectRow>) -> String {
    let line = |server: (&str, &str)| {
        let of =
            |row: &&ObjectRow| (row.allocator.as_str(), row.from) == server && row.batch == 1 && row.status == "ok";
        let point = |row: &ObjectRow| Some(Point::new(row.what.parse().ok()?, row.ns_median / 1e9));
        Line { name: slab::name(server), points: document.rows.iter().filter(of).filter_map(point).collect() }
    };
    Lines {
        heading: heading("An object is taken and given back", "one at a time, warm, one thread; median", document),
        x: Axis::log2("size of the object", Unit::Bytes),
        y: Axis::log("time", Unit::Seconds),
        series: slab::servers(&document.rows).into_iter().map(line).collect(),
        reference: None,
        width_px: 760.0,
    }
    .svg()
}
