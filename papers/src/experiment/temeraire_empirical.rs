//! `temeraire-empirical`: the page heap's memory under a varying load (TEMERAIRE §6.1).

use super::courses::{self, Course, RELEASE};
use super::sheet::{Column, Row, Sheet, Show, Title, fields, runs, table};
use super::{Ask, Findings};
use craton_lab::picture::{Axis, Unit};

const FULL: (u64, u64) = (4 << 30, 12_000_000);
const QUICK: (u64, u64) = (256 << 20, 400_000);
/// Long by the demand windows of seconds.
const SECONDS: f64 = 600.0;

const COLUMNS: [Column; 7] = [
    ("course", "course", Show::Text),
    ("peak live", "peak_live_bytes", Show::Bytes),
    ("peak backed", "peak_backed_bytes", Show::Bytes),
    ("÷ live", "peak_overhead", Show::Fixed(3, "")),
    ("steady ÷ live", "steady_overhead", Show::Fixed(3, "")),
    ("on hugepages", "steady_coverage", Show::Percent(1)),
    ("released", "released_bytes", Show::Bytes),
];
const LINES: [(&str, &str); 3] =
    [("live objects", "live_bytes"), ("spans", "span_bytes"), ("with memory", "backed_bytes")];

pub fn run(ask: &Ask<'_>) -> Result<Findings, String> {
    let courses = courses::play(ask, &RELEASE[..1], ask.form(QUICK, FULL), SECONDS)?;
    let rows = courses::rows(&courses);
    let mut sheet = Sheet::new(ask, rows.clone());
    for of in runs(&rows, &["schedule"]) {
        let name = of[0]["schedule"].as_str().unwrap_or_default();
        let title = Title(
            name,
            &format!("Demand and memory: {name}"),
            "the empirical driver on the page heap alone, in simulated memory",
        );
        let axes = (Axis::linear("simulated time", Unit::Seconds), Axis::linear("memory", Unit::Bytes));
        sheet.lines(title, axes, fields(of, "time_s", &LINES), None);
    }
    let summaries: Vec<Row> = courses.iter().map(Course::summary_row).collect();
    let table = table(&COLUMNS, &summaries);
    sheet.findings(format!("the page heap in simulated memory; backed bytes divided by live ones\n\n{table}"))
}
