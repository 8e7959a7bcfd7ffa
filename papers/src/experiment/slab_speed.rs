//! `slab-speed`: the cost of memory of one size (Bonwick94 §5.1, first table).

use super::sheet::{Fields, Map, Row, Title, lines};
use super::slab::{self, Case};
use super::{Ask, Findings};
use crate::caching::From;
use craton_lab::picture::{Axis, Unit, is_craton};
use craton_lab::ratios::{BASE, OURS};

const FULL: [usize; 7] = [16, 48, 128, 328, 512, 1096, 4096];
const QUICK: [usize; 3] = [48, 328, 1096];
const BATCHES: [usize; 2] = [1, 100];

const PAPER: &str = "\
the paper's figures, SPARCstation-2, in microseconds
kmem_cache_alloc 3.8; 4.4BSD 4.1; slab, kmem_alloc 4.7; SVr4 9.4; SunOS 4.1.3 25.0
";

pub fn run(ask: &Ask<'_>) -> Result<Findings, String> {
    let sizes: &[usize] = ask.form(&QUICK, &FULL);
    let names: Vec<String> = sizes.iter().map(usize::to_string).collect();
    ask.known("size", &names)?;
    let mut cases = Vec::new();
    for batch in BATCHES {
        for what in names.iter().filter(|name| ask.wants(name)) {
            cases.extend(From::ALL.map(|(_, from)| Case { from, what: what.clone(), batch }));
        }
    }
    let rows = slab::measure(ask, &cases, ask.rounds(1, 5))?;
    let ratios = ratios(&rows);
    let mut sheet = slab::sheet(ask, rows);
    let title = Title("", "An object is taken and given back", "one at a time, warm, one thread; median");
    let single: Vec<&Row> = sheet.rows().iter().filter(|row| row.int("batch") == 1 && row.is_ok()).collect();
    let size = |row: &Row| row.word("what").parse().unwrap_or(f64::NAN);
    let series = lines(single, slab::server, |row| (size(row), row.num("ns_median") / 1e9));
    sheet.lines(title, (Axis::log2("size of the object", Unit::Bytes), Axis::log("time", Unit::Seconds)), series, None);
    slab::findings(sheet, ratios, PAPER)
}

fn ratios(rows: &[Row]) -> Map {
    let mut ratios = Map::new();
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
    // The fastest but ours.
    let peers = servers.iter().filter(|(name, from)| *from == "malloc" && !is_craton(name));
    let of = |peer: &str| slab::ratio(rows, (peer, "malloc"), (BASE, "malloc"));
    let best = peers.filter_map(|(name, _)| Some((*name, of(name)?))).min_by(|a, b| a.1.total_cmp(&b.1));
    if let Some(ratio) = best.and_then(|(best, _)| slab::ratio(rows, (OURS, "cache"), (best, "malloc"))) {
        ratios.insert("cache_vs_best_peer".to_owned(), ratio);
    }
    ratios
}
