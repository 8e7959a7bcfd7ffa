//! `nvalloc-fig2`: where the first thousand flushes of metadata go (NVAlloc §3.3).

use super::nvalloc::{Cell, QUICK_PERCENT, check, measure, missing};
use super::sheet::{Column, Fields, Row, Sheet, Show, Title, distinct, table};
use super::{Ask, Findings};
use crate::heaps::{Kind, Load, Mode};
use craton_lab::picture::{Axis, Line, Point, Unit};

const PAPER: &str = "\
the paper's figures: the flushes of PMDK, nvm_malloc, PAllocator and Makalu are spread over the whole heap
";

const COLUMNS: [Column; 5] = [
    ("heap", "allocator", Show::Text),
    ("flushes", "", Show::By(|row| offsets(row).len().to_string())),
    ("lines", "", Show::By(|row| distinct_parts(row, 64).to_string())),
    ("hugepages touched", "", Show::By(|row| distinct_parts(row, 2 << 20).to_string())),
    ("in the last one's 256 bytes or the next", "", Show::By(sequential)),
];

fn offsets(row: &Row) -> Vec<u64> {
    row["flushes_at"].as_array().into_iter().flatten().filter_map(Row::as_u64).collect()
}

fn distinct_parts(row: &Row, bytes: u64) -> usize {
    let mut parts: Vec<u64> = offsets(row).into_iter().map(|at| at / bytes).collect();
    parts.sort_unstable();
    parts.dedup();
    parts.len()
}

fn sequential(row: &Row) -> String {
    let all = offsets(row);
    let near = all.windows(2).filter(|pair| (0..=1).contains(&((pair[1] / 256) as i64 - (pair[0] / 256) as i64)));
    format!("{:.0} %", 100.0 * near.count() as f64 / all.len().max(1) as f64)
}

pub fn run(ask: &Ask<'_>) -> Result<Findings, String> {
    check(ask, &[])?;
    let percent = ask.form(QUICK_PERCENT, 100);
    let cell = |heap| Cell::new(Load::FirstFlushes, heap, Mode::Counted, percent);
    let rows = measure(ask, [Kind::CratonLog, Kind::Pmdk].map(cell).to_vec(), 1)?;
    let mut sheet = Sheet::new(ask, rows);
    for name in distinct(sheet.rows(), |row| row.word("allocator").to_owned()) {
        let row = sheet.rows().iter().find(|row| row.word("allocator") == name);
        let points = row.map(offsets).unwrap_or_default();
        let points = points.into_iter().enumerate().map(|(i, at)| Point::new(i as f64, at as f64)).collect();
        let title =
            Title(&name, &format!("{name}: the first flushes of metadata"), "DBMStest; offsets in the heap's file");
        let axes = (Axis::linear("flushes", Unit::Count), Axis::linear("offset", Unit::Bytes));
        sheet.lines(title, axes, vec![Line { name: name.clone(), points }], None);
    }
    let table = table(&COLUMNS, sheet.rows());
    sheet.findings(format!("{table}\n{PAPER}{}", missing()))
}
