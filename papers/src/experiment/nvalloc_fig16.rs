//! `nvalloc-fig16`: stripes of bitmaps, and the share of live objects below which a slab morphs
//! (NVAlloc §6.5).

use super::nvalloc::{Cell, FULL_ROUNDS, QUICK_PERCENT, SPEED, check, measure, modelled};
use super::sheet::{Column, Fields, Row, Sheet, Show, Title, by, lines, table};
use super::{Ask, Findings};
use crate::heaps::{Kind, Load, Mode};
use craton_lab::picture::{Axis, Unit};

const STRIPES: [u64; 5] = [1, 2, 4, 6, 8];
const THRESHOLDS: [u64; 6] = [0, 10, 20, 30, 40, 50];

const PAPER: &str = "\
the paper's figures: 6 stripes and a threshold of 20 % are best for its memory and its loads
";

const SPACE: [Column; 5] = [
    ("threshold in percent", "value", Show::Plain),
    ("M ops/s", "", Show::By(|row| format!("{:.2}", 1e3 / row.num("ns_per_op")))),
    ("peak ÷ live", "peak_per_live", Show::Fixed(3, "")),
    ("slabs above 70 %", "slabs_above_70", Show::Percent(0)),
    ("", "status", Show::Status),
];

pub fn sweep(ask: &Ask<'_>, load: Load, mode: Mode, option: &'static str, values: &[u64]) -> Result<Vec<Row>, String> {
    let percent = ask.form(QUICK_PERCENT, 100);
    let cell = |value: &u64| {
        Cell::new(load, Kind::CratonLog, mode, percent).with(option, value, &format!(", {option} {value}"))
    };
    let rounds = if mode == Mode::Counted { 1 } else { ask.rounds(1, FULL_ROUNDS) };
    let mut rows = measure(ask, values.iter().map(cell).collect(), rounds)?;
    for (row, value) in rows.iter_mut().zip(values) {
        row["option"] = option.into();
        row["value"] = (*value).into();
    }
    Ok(rows)
}

pub fn draw(sheet: &mut Sheet, option: &str, title: Title<'_>) {
    let rows: Vec<&Row> =
        sheet.rows().iter().filter(|row| row.word("option") == option && row["ns_per_op"].is_number()).collect();
    let series = lines(rows, by("mode"), |row| (row.num("value"), row.num("ns_per_op") / 1e9));
    let axes = (Axis::linear(option, Unit::Count), Axis::linear("time of an operation", Unit::Seconds));
    sheet.lines(title, axes, series, None);
}

pub fn run(ask: &Ask<'_>) -> Result<Findings, String> {
    check(ask, &[])?;
    let mut rows = Vec::new();
    for mode in [Mode::Flush, Mode::None, Mode::Counted] {
        rows.extend(sweep(ask, Load::Threadtest, mode, "stripes", &STRIPES)?);
    }
    modelled(&mut rows);
    let at = rows.len();
    rows.extend(sweep(ask, Load::FragbenchW4, Mode::Flush, "morph", &THRESHOLDS)?);
    let mut sheet = Sheet::new(ask, rows);
    draw(&mut sheet, "stripes", Title("stripes", "Stripes of bitmaps", "Threadtest, one thread; medians"));
    draw(&mut sheet, "morph", Title("morph", "The threshold of morphing", "Fragbench W4; medians"));
    let (stripes, morph) = sheet.rows().split_at(at);
    let stripes = table(&SPEED, stripes.iter().filter(|row| row.word("mode") != Mode::Counted.name()));
    let text = format!("{stripes}\n{}\n{PAPER}", table(&SPACE, morph));
    sheet.findings(text)
}
