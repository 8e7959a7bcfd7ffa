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
use super::{Ask, Experiment, Findings};
use crate::document::Document;
use crate::format::{bytes, table};
use crate::picture::{Axis, Line, Lines, Point, Unit};
use crate::ratios::Ratios;
use crate::work::rng::Rng;
use craton_base::{Bytes, Density, PageRange, Pages};
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
    [("1.1 MiB", (MIB * 11 / 10, MIB * 11 / 10)), ("0.6–2.5 MiB", (MIB * 6 / 10, MIB * 25 / 10))];
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
    super::simulated(ask, EXPERIMENT.name, &MIXES.map(|(name, _)| name))?;
    let top = if ask.quick { QUICK_BYTES } else { FULL_BYTES };
    let mut rows = Vec::new();
    for (name, range) in super::asked(ask, &MIXES) {
        for regions in [true, false] {
            rows.extend(play(name, *range, regions, top)?);
        }
    }
    let document = Document::new(EXPERIMENT.name, ask.command, &[], rows, &Ratios::default());
    Ok(Findings {
        text: show(&document.rows),
        pictures: vec![(String::new(), picture(&document))],
        failed: 0,
        document: super::text(&document)?,
    })
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
    format!("{}, {}", row.requests, if row.regions { "regions" } else { "none" })
}

/// The rows of each series, in their order.
fn series(rows: &[SlackRow]) -> Vec<(String, Vec<&SlackRow>)> {
    let mut series: Vec<(String, Vec<&SlackRow>)> = Vec::new();
    for row in rows {
        let name = series_name(row);
        match series.last_mut().filter(|(last, _)| *last == name) {
            Some((_, of)) => of.push(row),
            None => series.push((name, vec![row])),
        }
    }
    series
}

fn show(rows: &[SlackRow]) -> String {
    let head = ["requests", "used", "backed", "÷ used", "on hugepages", "hugepages of regions"];
    let mut lines = vec![head.map(str::to_owned).to_vec()];
    for (name, of) in series(rows) {
        let Some(last) = of.last() else { continue };
        lines.push(vec![
            name,
            bytes(last.used_bytes),
            bytes(last.backed_bytes),
            format!("{:.3}", last.backed_per_used),
            format!("{:.1} %", last.coverage * 100.0),
            last.region_hugepages.to_string(),
        ]);
    }
    format!("the largest heaps of each course\n\n{}", table(&lines, &[0]))
}

fn picture(document: &Document<SlackRow>) -> String {
    let line = |(name, of): (String, Vec<&SlackRow>)| Line {
        name,
        points: of.iter().map(|row| Point::new(row.used_bytes as f64, row.backed_per_used)).collect(),
    };
    Lines {
        heading: super::heading(
            "Regions take the slack behind spans of half a hugepage and more",
            "memory ÷ bytes in spans as the heap grows; requests of 1.1 MiB, and of 0.6 to 2.5 MiB; in simulated memory; none: \
             regions are not allowed",
            document,
        ),
        x: Axis::log2("bytes in spans", Unit::Bytes),
        y: Axis::linear("memory ÷ bytes in spans", Unit::Ratio),
        series: series(&document.rows).into_iter().map(line).collect(),
        reference: Some(1.0),
        width_px: 860.0,
    }
    .svg()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn regions_take_most_of_the_slack_away() {
        for (name, range) in MIXES {
            let last = |regions| play(name, range, regions, 1 << 30).expect("room").pop().expect("rows");
            let (with, without) = (last(true), last(false));
            assert!(with.region_hugepages > 0 && without.region_hugepages == 0, "{name}");
            assert!(
                with.backed_per_used - 1.0 < (without.backed_per_used - 1.0) / 2.0,
                "{name}: {}",
                with.backed_per_used
            );
            assert!(with.backed_per_used >= 1.0);
        }
    }

    #[test]
    fn without_regions_each_span_of_the_paper_s_length_has_a_hugepage_of_its_own() {
        let (name, range) = MIXES[0];
        let rows = play(name, range, false, 256 << 20).expect("room");
        let last = rows.last().expect("rows");
        assert!(last.backed_per_used > 1.6, "{}", last.backed_per_used);
    }
}
