//! Ratios and tables of the rows. Below 1, Craton needs less.

use super::MicroRow;
use std::collections::BTreeMap;
use std::fmt::Write;

type Figure = (&'static str, fn(&MicroRow) -> Option<f64>);

/// Times contain the loop, instructions do not.
const FIGURES: [Figure; 2] =
    [("ns", |row| row.is_timed().then_some(row.ns_median)), ("instructions", |row| row.instructions)];

/// Geometric means over the sizes that both have, of `pair` on one thread;
/// `pair_instructions_vs_best_peer` is the largest, without the C library's.
pub fn ratios(rows: &[MicroRow], own: &str) -> BTreeMap<String, f64> {
    let mut ratios = BTreeMap::new();
    for other in allocators(rows).into_iter().filter(|name| *name != own) {
        for (figure, value) in FIGURES {
            let ratio = geometric_mean(pairs(rows, own, other, value).into_iter().map(|(a, b)| a / b));
            ratios.extend(ratio.map(|ratio| (format!("pair_{figure}_vs_{other}"), ratio)));
        }
    }
    let is_peer = |name: &str| name.strip_prefix("pair_instructions_vs_").is_some_and(|other| other != "glibc");
    let best = ratios.iter().filter(|(name, _)| is_peer(name)).map(|(_, ratio)| *ratio).reduce(f64::max);
    ratios.extend(best.map(|best| ("pair_instructions_vs_best_peer".to_owned(), best)));
    ratios
}

fn pairs(rows: &[MicroRow], own: &str, other: &str, value: fn(&MicroRow) -> Option<f64>) -> Vec<(f64, f64)> {
    let compared: Vec<&MicroRow> = rows.iter().filter(|row| row.pattern == "pair" && row.threads == 1).collect();
    let of = |name: &str, size| {
        let row = compared.iter().find(|row| row.allocator == name && row.size_bytes == size);
        row.and_then(|row| value(row)).filter(|value| *value > 0.0)
    };
    let sizes = compared.iter().filter(|row| row.allocator == own).map(|row| row.size_bytes);
    sizes.filter_map(|size| Some((of(own, size)?, of(other, size)?))).collect()
}

fn geometric_mean(values: impl Iterator<Item = f64>) -> Option<f64> {
    let logarithms: Vec<f64> = values.map(f64::ln).collect();
    (!logarithms.is_empty()).then(|| (logarithms.iter().sum::<f64>() / logarithms.len() as f64).exp())
}

fn allocators(rows: &[MicroRow]) -> Vec<&str> {
    distinct(rows.iter().map(|row| row.allocator.as_str()))
}

fn distinct<T: PartialEq>(values: impl Iterator<Item = T>) -> Vec<T> {
    let mut seen = Vec::new();
    for value in values {
        if !seen.contains(&value) {
            seen.push(value);
        }
    }
    seen
}

pub fn table(rows: &[MicroRow]) -> String {
    let mut text = String::from("ns of one operation, the loop's included (median)\n");
    let time = |row: &MicroRow| row.is_timed().then_some(row.ns_median);
    let of_loop = |row: &MicroRow| (row.loop_ns > 0.0).then_some(row.loop_ns);
    text += &grid(rows, &time, &of_loop, &|_| true);
    let counted: Vec<_> = rows.iter().filter(|row| row.instructions.is_some()).map(place).collect();
    if !counted.is_empty() {
        text += "\nInstructions of one operation, without the loop's\n";
        text +=
            &grid(rows, &|row| row.instructions, &|row| row.loop_instructions, &|row| counted.contains(&place(row)));
    }
    let reasons = distinct(rows.iter().filter(|r| r.status != super::Status::Ok).map(|r| (&r.allocator, &r.status)));
    for (allocator, status) in reasons {
        let places = rows.iter().filter(|row| row.allocator == *allocator && row.status == *status);
        let _ = write!(text, "\n{allocator}: {status} ({} rows)", places.count());
    }
    text.trim_end().to_owned() + "\n"
}

fn place(row: &MicroRow) -> (&str, usize, usize) {
    (&row.pattern, row.size_bytes, row.threads)
}

type Value<'a> = &'a dyn Fn(&MicroRow) -> Option<f64>;

fn grid(rows: &[MicroRow], value: Value<'_>, of_loop: Value<'_>, shown: &dyn Fn(&MicroRow) -> bool) -> String {
    let names = allocators(rows);
    let mut lines = vec![vec!["pattern".to_owned(), "bytes".to_owned(), "threads".to_owned()]];
    lines[0].extend(names.iter().map(|name| (*name).to_owned()));
    lines[0].push("loop".to_owned());
    for at in distinct(rows.iter().filter(|row| shown(row)).map(place)) {
        let here: Vec<&MicroRow> = rows.iter().filter(|row| place(row) == at).collect();
        let mut line = vec![at.0.to_owned(), at.1.to_string(), at.2.to_string()];
        let of = |name: &str| here.iter().find(|row| row.allocator == name).and_then(|row| value(row));
        line.extend(names.iter().map(|name| number(of(name))));
        line.push(number(crate::summary::Spread::of(here.iter().filter_map(|row| of_loop(row))).map(|s| s.median)));
        lines.push(line);
    }
    let width = |column: usize| lines.iter().map(|line| line[column].len()).max().unwrap_or(0);
    let widths: Vec<usize> = (0..lines[0].len()).map(width).collect();
    lines.iter().fold(String::new(), |mut text, line| {
        let _ = write!(text, "{:width$}", line[0], width = widths[0]);
        for (cell, width) in line.iter().zip(&widths).skip(1) {
            let _ = write!(text, "  {cell:>width$}");
        }
        text + "\n"
    })
}

fn number(value: Option<f64>) -> String {
    match value {
        None => "-".to_owned(),
        Some(value) if value < 100.0 => format!("{value:.1}"),
        Some(value) => format!("{value:.0}"),
    }
}
