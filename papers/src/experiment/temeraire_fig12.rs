//! `temeraire-fig12`: requests a little longer than half a hugepage, with and without regions.
//!
//! **What.** Live memory grows to some GiB in spans of 1.1 MiB, or of 0.6 to 2.5 MiB, two births to a death. Each such span leaves
//! slack behind it that no other fits into, unless spans may cross hugepages: backed by used memory as it grows.
//!
//! **From.** TEMERAIRE Figure 12 and §4.5. Regions start by themselves, once slack outweighs the small spans that could
//! fill it.
//!
//! **State.** Full: 16 GiB. Quick: 2 GiB.

use super::world::World;
use super::{Ask, Experiment, Findings, heading, simulation};
use craton_base::{Bytes, Density, PageRange, Pages};
use craton_lab::document::Document;
use craton_lab::format::{Column, bytes, table_of};
use craton_lab::picture::{Axis, Lines, Unit};
use craton_lab::rng::Rng;
use craton_pages::PageHeapExt;
use serde::Serialize;

/// The experiment, in the list.
pub const EXPERIMENT: Experiment = Experiment {
    name: "temeraire-fig12",
    about: "spans of 1.1 MiB, and of 0.6 to 2.5 MiB: backed by used memory, with and without regions",
    answers: "TEMERAIRE figure 12, §4.5",
    run,
};

const FULL_BYTES: u64 = 16 << 30;
const QUICK_BYTES: u64 = 2 << 30;
const SEED: u64 = 1;
/// Live bytes at the first row.
const FIRST_BYTES: u64 = 8 << 20;

/// The least and the most bytes of a request, by the name of the mix.
const MIXES: [(&str, (u64, u64)); 2] =
    [("1.1 MiB", (MIB * 11 / 10, MIB * 11 / 10)), ("mixed", (MIB * 6 / 10, MIB * 25 / 10))];
/// With regions and without, by the name in the picture.
const WAYS: [(&str, bool); 2] = [("with regions", true), ("without regions", false)];
const MIB: u64 = 1 << 20;

/// A row of the document.
#[derive(Clone, Serialize)]
struct SlackRow {
    requests: &'static str,
    regions: bool,
    used_bytes: u64,
    backed_bytes: u64,
    backed_per_used: f64,
    coverage: f64,
    region_hugepages: u32,
    status: &'static str,
}

fn run(ask: &Ask<'_>) -> Result<Findings, String> {
    let top = if ask.quick { QUICK_BYTES } else { FULL_BYTES };
    let mut rows = Vec::new();
    for ((name, range), (_, regions)) in simulation::asked(ask, EXPERIMENT.name, &MIXES, &WAYS)? {
        rows.extend(play(name, *range, *regions, top)?);
    }
    simulation::findings(ask, EXPERIMENT.name, rows, show, |document| vec![(String::new(), picture(document))])
}

/// Grows to `top` bytes; a row each time that live memory is a quarter more.
fn play(name: &'static str, (least, most): (u64, u64), regions: bool, top: u64) -> Result<Vec<SlackRow>, String> {
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
            rows.push(SlackRow {
                requests: name,
                regions,
                used_bytes: state.used,
                backed_bytes: state.backed,
                backed_per_used: state.ratio(),
                coverage: state.coverage(),
                region_hugepages: world.heap.stats().region.0,
                status: "ok",
            });
        }
    }
    Ok(rows)
}

fn series_name(row: &SlackRow) -> String {
    format!("{}, {}", row.requests, WAYS[usize::from(!row.regions)].0)
}

/// The rows of each series.
fn series(rows: &[SlackRow]) -> impl Iterator<Item = &[SlackRow]> {
    rows.chunk_by(|a, b| (a.requests, a.regions) == (b.requests, b.regions))
}

fn show(rows: &[SlackRow]) -> String {
    let columns: [Column<SlackRow>; 6] = [
        ("requests", series_name),
        ("used", |row| bytes(row.used_bytes)),
        ("backed", |row| bytes(row.backed_bytes)),
        ("÷ used", |row| format!("{:.3}", row.backed_per_used)),
        ("on hugepages", |row| simulation::percent(row.coverage)),
        ("hugepages of regions", |row| row.region_hugepages.to_string()),
    ];
    let table = table_of(&columns, &[0], series(rows).filter_map(<[_]>::last));
    format!("the largest heaps of each course\n\n{table}")
}

fn picture(document: &Document<SlackRow>) -> String {
    let point = |row: &SlackRow| (row.used_bytes as f64, row.backed_per_used);
    Lines {
        heading: heading(
            "Regions take the slack behind spans of half a hugepage and more",
            "memory ÷ bytes in spans as the heap grows; requests of 1.1 MiB, and of 0.6 to 2.5 MiB (mixed); in \
             simulated memory",
            document,
        ),
        x: Axis::log2("bytes in spans", Unit::Bytes),
        y: Axis::linear("memory ÷ bytes in spans", Unit::Ratio),
        series: series(&document.rows).map(|of| simulation::line(&series_name(&of[0]), of, point)).collect(),
        reference: Some(1.0),
        width_px: 860.0,
    }
    .svg()
}

#[cfg(test)]
mod tests;
