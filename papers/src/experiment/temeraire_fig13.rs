//! `temeraire-fig13`: the part of the heap on hugepages, with and without release (TEMERAIRE Figure
//! 13).

use super::courses::{self, Course, RELEASE, rate_name};
use super::sheet::{Column, Fields, Row, Sheet, Show, Title, by, groups, lines, part, runs, table};
use super::{Ask, Findings};
use craton_lab::picture::{Axis, Unit};

const FULL: (u64, u64) = (4 << 30, 24_000_000);
const QUICK: (u64, u64) = (256 << 20, 600_000);
const SECONDS: f64 = 3600.0;

const COLUMNS: [Column; 6] = [
    ("course", "course", Show::Text),
    ("", "rate", Show::Text),
    ("on hugepages", "steady_coverage", Show::Percent(1)),
    ("memory ÷ in spans", "steady_per_span", Show::Fixed(3, "")),
    ("peak memory", "peak_backed_bytes", Show::Bytes),
    ("released", "released_bytes", Show::Bytes),
];

pub fn run(ask: &Ask<'_>) -> Result<Findings, String> {
    let courses = courses::play(ask, &RELEASE, ask.form(QUICK, FULL), SECONDS)?;
    let (rows, summaries) = (courses::rows(&courses), courses.iter().map(Course::summary_row).collect::<Vec<Row>>());
    let mut sheet = Sheet::new(ask, rows.clone());
    let axis = || Axis::linear("part of the memory on hugepages", Unit::Part);
    let title = Title(
        "",
        "Memory on intact hugepages",
        "the built-in profile under courses of demand, in simulated memory; mean over the second half; more is better",
    );
    let series = RELEASE.map(|(name, _)| name.to_owned());
    let bars = groups(&summaries, by("course"), (&series, by("rate")), |row| row.num("steady_coverage"));
    sheet.bars(title, axis(), &series, bars, Some(1.0));
    for of in runs(&rows, &["schedule"]) {
        let name = of[0].word("schedule");
        let title = Title(
            name,
            &format!("Memory on intact hugepages over time: {name}"),
            "the built-in profile on the page heap alone, in simulated memory; more is better",
        );
        let coverage = |row: &Row| (row.num("time_s"), part(row.int("huge_bytes"), row.int("backed_bytes")));
        let lines = lines(of, |row| rate_name(row.int("release_bytes_per_s")).to_owned(), coverage);
        sheet.lines(title, (Axis::linear("simulated time", Unit::Seconds), axis()), lines, None);
    }
    let table = table(&COLUMNS, &summaries);
    sheet.findings(format!("means over the second half of {SECONDS} simulated seconds\n\n{table}"))
}

#[cfg(test)]
mod tests;
