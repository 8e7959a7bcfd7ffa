//! `nvalloc-fig15`: space and speed when the sizes of objects change (NVAlloc §6.4).

use super::nvalloc::{Cell, FULL_ROUNDS, SPEED, check, grid, measure, missing, ratios};
use super::sheet::{Column, Fields, Map, Row, Sheet, Show, Title, by, distinct, geomean, groups, pairs, table};
use super::{Ask, Findings};
use crate::heaps::{Kind, Load, Mode};
use craton_lab::picture::{Axis, Unit};

const PAPER: &str = "\
the paper's figures: peak by live data 1.7 to 2.8 for the others, NVAlloc-LOG least; morphing saves up to 41.9 % of memory, and costs
4.5 % of speed on average
others on a machine as this one, W1 to W4: Makalu 2.20, 2.06, 2.06, 2.19; PMDK 2.84, 2.42, 2.47, 2.70; the authors' NVAlloc 2.78, 2.81,
2.50, 2.94, without morphing 3.56, 3.00, 3.09, 2.94
";

pub const STATIC: &str = ", static";

const COLUMNS: [Column; 8] = [
    ("load", "workload", Show::Text),
    ("heap", "allocator", Show::Text),
    ("peak ÷ live", "peak_per_live", Show::Fixed(2, "")),
    ("peak", "peak_bytes", Show::Bytes),
    ("slabs below 30 %", "slabs_below_30", Show::Percent(0)),
    ("30 to 70 %", "slabs_30_70", Show::Percent(0)),
    ("above 70 %", "slabs_above_70", Show::Percent(0)),
    ("", "status", Show::Status),
];

pub fn run(ask: &Ask<'_>) -> Result<Findings, String> {
    check(ask, &Load::FRAGBENCH)?;
    let ours = |heap| grid(ask, &Load::FRAGBENCH, &[heap], &[Mode::Flush], &[1]);
    let fixed = ours(Kind::CratonLog).into_iter().map(|cell| cell.with("morph", 0, STATIC));
    let mut cells: Vec<Cell> = ours(Kind::CratonLog).into_iter().chain(fixed).chain(ours(Kind::CratonGc)).collect();
    // Each load's heaps take turns.
    cells.sort_by_key(|cell| Load::FRAGBENCH.iter().position(|load| *load == cell.load));
    let mut rows = measure(ask, cells, ask.rounds(1, FULL_ROUNDS))?;
    // PMDK takes the same space each time, and ten times as long.
    let theirs = grid(ask, &Load::FRAGBENCH, &[Kind::Pmdk], &[Mode::Flush], &[1]);
    if Kind::Pmdk.is_here().is_ok() {
        rows.extend(measure(ask, theirs, 1)?);
    }
    rows.sort_by_key(|row| row.word("workload").to_owned());
    let mut sheet = Sheet::new(ask, rows);
    let ratios = sheet.ratios(all_ratios, 3);
    let names = distinct(sheet.rows(), |row| row.word("allocator").to_owned());
    let bars = groups(sheet.rows(), by("workload"), (&names, by("allocator")), |row| row.num("peak_per_live"));
    let title = Title("", "Space when sizes change", "Fragbench W1 to W4: most space of the file by live data");
    sheet.bars(title, Axis::linear("peak space ÷ live data", Unit::Ratio), &names, bars, Some(1.0));
    let (space, speed) = (table(&COLUMNS, sheet.rows()), table(&SPEED, sheet.rows()));
    sheet.findings(format!("{space}\n{speed}\n{ratios}\n{PAPER}{}", missing()))
}

fn all_ratios(rows: &[Row]) -> Map {
    let mut all = ratios(rows, "ns_per_op", "time");
    all.extend(ratios(rows, "peak_bytes", "space").into_iter().filter(|(name, _)| name.starts_with("space")));
    let ours = |row: &Row| row.word("allocator") == Kind::CratonLog.name();
    let fixed = |row: &Row| row.word("allocator") == format!("{}{STATIC}", Kind::CratonLog.name());
    for (name, figure) in [("time", "ns_per_op"), ("space", "peak_bytes")] {
        let pairs = pairs(rows, figure, (&ours, &fixed), &["workload"]);
        if !pairs.is_empty() {
            all.insert(format!("{name}_morphing_vs_static"), geomean(&pairs));
        }
    }
    all
}
