use super::Result;
use crate::experiment::series;
use crate::experiment::sheet::Sheet;
use craton_lab::picture::{Axis, Cell, Estimate, Heat, HeatRow, Scatter, Spot, Unit};
use craton_lab::ratios::{BASE, others};
use craton_lab::summary::{Figure, Ratio, geomean, ratio};

/// From it on colours do not get stronger.
const LIMIT: f64 = 2.0;

pub fn draw(sheet: &mut Sheet, results: &[Result]) {
    sheet.picture("time", heat(results, sheet, "Wall time", Figure::Wall));
    sheet.picture("rss", heat(results, sheet, "Peak memory", Figure::PeakRss));
    sheet.picture("means", means(results, sheet));
}

fn heat(results: &[Result], sheet: &Sheet, what: &str, figure: Figure) -> String {
    let workloads = Result::runs(results);
    let names: Vec<&str> = others(&workloads, "").into_iter().filter(|name| *name != BASE).collect();
    let row = |result: &Result| HeatRow {
        name: result.name.clone(),
        cells: names.iter().map(|name| cell(result, name, figure)).collect(),
    };
    Heat {
        heading: sheet.heading(
            &format!("{what}, as a ratio to {BASE}"),
            "medians; below 1, less is needed; the last row is the geometric mean",
        ),
        label: format!("ratio to {BASE}"),
        columns: names.iter().map(|name| (*name).to_owned()).collect(),
        rows: results.iter().map(row).collect(),
        limit: LIMIT,
    }
    .svg()
}

fn cell(result: &Result, name: &str, figure: Figure) -> Cell {
    match ratio(&result.runs, name, BASE, figure) {
        Some(ratio) => Cell::Ratio(ratio.of_medians),
        None => Cell::Missing(series::status(&result.runs, name)),
    }
}

fn means(results: &[Result], sheet: &Sheet) -> String {
    let workloads = Result::runs(results);
    let spot = |name: &&str| {
        let of = |figure| geomean(&workloads, name, BASE, figure).map(estimate);
        Some(Spot { name: (*name).to_owned(), x: of(Figure::Wall)?, y: of(Figure::PeakRss)? })
    };
    let spots = others(&workloads, "").iter().filter_map(spot).collect();
    Scatter {
        heading: sheet.heading(
            "Time and memory",
            &format!("geometric means over {} workloads, as ratios to {BASE}", results.len()),
        ),
        x: Axis::log("wall time", Unit::Ratio),
        y: Axis::log("peak memory", Unit::Ratio),
        spots,
        corner: "faster and smaller".to_owned(),
        width_px: 720.0,
    }
    .svg()
}

fn estimate(ratio: Ratio) -> Estimate {
    ratio.interval.map_or(Estimate::exact(ratio.of_medians), |i| Estimate::between(ratio.of_medians, i.low, i.high))
}
