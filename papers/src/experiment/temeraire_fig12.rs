//! `temeraire-fig12`: requests a little longer than half a hugepage, with and without regions
//! (TEMERAIRE Figure 12, §4.5).

use super::sheet::{Column, Fields, Row, Sheet, Show, Title, json, lines, part, runs, table};
use super::world::World;
use super::{Ask, Findings, simulation};
use craton_base::{Bytes, Density, PageRange, Pages};
use craton_lab::picture::{Axis, Unit};
use craton_lab::rng::Rng;
use craton_pages::PageHeapExt;

const FULL_BYTES: u64 = 16 << 30;
const QUICK_BYTES: u64 = 2 << 30;
const SEED: u64 = 1;
const FIRST_BYTES: u64 = 8 << 20;

const MIXES: [(&str, (u64, u64)); 2] =
    [("1.1 MiB", (MIB * 11 / 10, MIB * 11 / 10)), ("mixed", (MIB * 6 / 10, MIB * 25 / 10))];
const WAYS: [(&str, bool); 2] = [("with regions", true), ("without regions", false)];
const MIB: u64 = 1 << 20;

const COLUMNS: [Column; 6] = [
    ("requests", "requests", Show::By(series_name)),
    ("used", "used_bytes", Show::Bytes),
    ("backed", "backed_bytes", Show::Bytes),
    ("÷ used", "backed_per_used", Show::Fixed(3, "")),
    ("on hugepages", "coverage", Show::Percent(1)),
    ("hugepages of regions", "region_hugepages", Show::Plain),
];

pub fn run(ask: &Ask<'_>) -> Result<Findings, String> {
    let top = ask.form(QUICK_BYTES, FULL_BYTES);
    let mut rows = Vec::new();
    for ((name, range), (_, regions)) in simulation::asked(ask, &MIXES, &WAYS)? {
        rows.extend(play(name, *range, *regions, top)?);
    }
    let text = table(&COLUMNS, runs(&rows, &["requests", "regions"]).filter_map(<[_]>::last));
    let mut sheet = Sheet::new(ask, rows);
    let title = Title(
        "",
        "Regions take the slack behind spans of half a hugepage and more",
        "memory ÷ bytes in spans as the heap grows; requests of 1.1 MiB, and of 0.6 to 2.5 MiB (mixed); in simulated \
                   memory",
    );
    let axes = (Axis::log2("bytes in spans", Unit::Bytes), Axis::linear("memory ÷ bytes in spans", Unit::Ratio));
    let series = lines(sheet.rows(), series_name, |row| (row.num("used_bytes"), row.num("backed_per_used")));
    sheet.lines(title, axes, series, Some(1.0));
    sheet.findings(format!("the largest heaps of each course\n\n{text}"))
}

/// A row for each growth by a quarter.
fn play(name: &str, (least, most): (u64, u64), regions: bool, top: u64) -> Result<Vec<Row>, String> {
    let mut world: World = World::new(4 * top + (4 << 30));
    world.heap.set_regions(regions);
    let mut rng = Rng::new(SEED, 0);
    let mut spans: Vec<PageRange> = Vec::new();
    let (mut rows, mut next) = (Vec::new(), FIRST_BYTES);
    while next <= top {
        let size = least + ((u128::from(rng.next()) * u128::from(most - least + 1)) >> 64) as u64;
        let pages = Bytes(size as usize).pages_up().unwrap_or(Pages(1));
        spans.push(world.alloc(pages, Density::Sparse)?);
        if rng.one_in(2) {
            let dead = spans.swap_remove(rng.below(spans.len() as u32) as usize);
            world.free(dead, Density::Sparse);
        }
        let state = world.state();
        if state.used >= next {
            next += next / 4;
            rows.push(json!({
                "requests": name,
                "regions": regions,
                "used_bytes": state.used,
                "backed_bytes": state.backed,
                "backed_per_used": part(state.backed, state.used),
                "coverage": part(state.huge, state.backed),
                "region_hugepages": world.heap.stats().region.0,
                "status": "ok",
            }));
        }
    }
    Ok(rows)
}

fn series_name(row: &Row) -> String {
    format!("{}, {}", row.word("requests"), WAYS[usize::from(row["regions"] == false)].0)
}

#[cfg(test)]
mod tests;
