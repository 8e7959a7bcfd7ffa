//! `slab-objects`: the benefit of objects that stay constructed while they are free (Bonwick94 §2,
//! second table of §5.1).

use super::sheet::{Fields, Map, Row, Title, by, groups};
use super::slab::{self, Case};
use super::{Ask, Findings};
use crate::caching::From;
use crate::caching::types::TYPES;
use craton_lab::picture::{Axis, Unit};
use craton_lab::ratios::OURS;

const PAPER: &str = "\
the paper's figures, SPARCstation-2, times faster with a cache
allocb 1.4, dupb 1.5, shalloc 5.1, allocp 3.7, anonmap_alloc 1.6, makepipe 1.3; streams (§2) 33 us to 5.7 us
";

pub fn run(ask: &Ask<'_>) -> Result<Findings, String> {
    let names = TYPES.each_ref().map(|of| of.name);
    ask.known("type", &names)?;
    let batches: &[usize] = ask.form(&[1], &[1, 100]);
    let mut cases = Vec::new();
    for batch in batches.iter().copied() {
        for name in names.into_iter().filter(|name| ask.wants(name)) {
            cases.extend([From::Malloc, From::Cache].map(|from| Case { from, what: name.to_owned(), batch }));
        }
    }
    let rows = slab::measure(ask, &cases, ask.rounds(1, 5))?;
    let (ratios, notes) = (ratios(&rows), format!("{}\n{PAPER}", times_faster(&rows)));
    let mut sheet = slab::sheet(ask, rows);
    let title = Title(
        "",
        "Objects that stay constructed",
        "an object is taken, used and given back; constructed each time, and by a cache; one at a time, median",
    );
    let series: Vec<String> = slab::servers(sheet.rows()).into_iter().map(slab::name).collect();
    let single = sheet.rows().iter().filter(|row| row.int("batch") == 1);
    let bars = groups(single, by("what"), (&series, slab::server), |row| row.num("ns_median") / 1e9);
    sheet.bars(title, Axis::linear("time", Unit::Seconds), &series, bars, None);
    slab::findings(sheet, ratios, &notes)
}

fn of_type(rows: &[Row], name: &str, batch: u64) -> Vec<Row> {
    rows.iter().filter(|row| row.word("what") == name && row.int("batch") == batch).cloned().collect()
}

/// By malloc's with constructor.
fn ratios(rows: &[Row]) -> Map {
    let cached = (OURS, "cache");
    let mut ratios = Map::new();
    for of in &TYPES {
        let one = slab::ratio(&of_type(rows, of.name, 1), cached, (OURS, "malloc"));
        ratios.extend(one.map(|ratio| (format!("cached_{}_vs_craton", of.name), ratio)));
    }
    for server in slab::servers(rows).into_iter().filter(|(_, from)| *from == "malloc") {
        ratios.extend(slab::ratio(rows, cached, server).map(|ratio| (format!("cached_vs_{}", server.0), ratio)));
    }
    ratios
}

fn times_faster(rows: &[Row]) -> String {
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
