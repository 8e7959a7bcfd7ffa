//! What the experiments on the simulated page heap have in common.
//!
//! **What.** Such an experiment holds its scenario, its row, the columns of its table and the titles of its pictures. Here is the rest:
//! which cases are asked for, findings made of rows, lines made of rows, and a picture of them over simulated time.
//!
//! **Failure.** An option that a simulation has no use for, and a case that it does not have, are errors that name it.

use super::{Ask, Findings, heading, no_use};
use craton_lab::document::Document;
use craton_lab::measure::Progress;
use craton_lab::picture::{Axis, Line, Lines, Point, Unit};
use craton_lab::ratios::Ratios;
use serde::Serialize;
use std::sync::atomic::Ordering::Relaxed;

/// The one way of an experiment that plays each case once.
pub const ONCE: [(&str, ()); 1] = [("the page heap", ())];

/// Refuses what a simulation of Craton's page heap has no use for, and cases that it does not have.
///
/// # Errors
/// The option, or the name.
pub fn check<N: AsRef<str>, T>(ask: &Ask<'_>, experiment: &str, cases: &[(N, T)]) -> Result<(), String> {
    if ask.peers_asked || ask.runs.is_some() {
        let option = if ask.peers_asked { "--peers" } else { "--runs" };
        return Err(no_use(option, &format!("{experiment}, which is a simulation of Craton's page heap")));
    }
    if cases.is_empty() && !ask.only.is_empty() {
        return Err(no_use("--only", experiment));
    }
    let names: Vec<&str> = cases.iter().map(|(name, _)| name.as_ref()).collect();
    match ask.only.iter().find(|name| !names.contains(&name.as_str())) {
        Some(unknown) => Err(format!("--only {unknown}: no such case here; there are: {}", names.join(", "))),
        None => Ok(()),
    }
}

/// A case and a way to play it, each with its name.
pub type Asked<'a, N, T, W> = (&'a (N, T), &'a (&'static str, W));

/// The cases of a simulation that are asked for, each in every way, until the caller stops.
///
/// # Errors
/// As [`check`].
pub fn asked<'a, N: AsRef<str>, T, W>(
    ask: &'a Ask<'_>,
    experiment: &str,
    cases: &'a [(N, T)],
    ways: &'a [(&'static str, W)],
) -> Result<impl Iterator<Item = Asked<'a, N, T, W>>, String> {
    check(ask, experiment, cases)?;
    let total = cases.len() * ways.len();
    let all = cases.iter().flat_map(move |case| ways.iter().map(move |way| (case, way)));
    let wanted = |name: &str| ask.only.is_empty() || ask.only.iter().any(|only| only == name);
    let asked = all.enumerate().filter(move |(_, (case, _))| wanted(case.0.as_ref()));
    Ok(asked.take_while(|_| !ask.stop.load(Relaxed)).map(move |(done, (case, way))| {
        (ask.progress)(case.0.as_ref(), Progress { allocator: way.0, round: Some(0), done, total });
        (case, way)
    }))
}

/// Findings of which every row is a success: the table that `text` makes of the rows, and the pictures of the document, by name.
///
/// # Errors
/// A number that the document cannot hold.
pub fn findings<R: Serialize>(
    ask: &Ask<'_>,
    experiment: &str,
    rows: Vec<R>,
    text: impl FnOnce(&[R]) -> String,
    pictures: impl FnOnce(&Document<R>) -> Vec<(String, String)>,
) -> Result<Findings, String> {
    let document = Document::new(experiment, ask.command, &[], rows, &Ratios::default());
    Ok(Findings {
        text: text(&document.rows),
        pictures: pictures(&document),
        failed: 0,
        document: super::text(&document)?,
    })
}

/// A line through a point of each row.
pub fn line<R>(name: &str, rows: &[R], at: impl Fn(&R) -> (f64, f64)) -> Line {
    let point = |row| {
        let (x, y) = at(row);
        Point::new(x, y)
    };
    Line { name: name.to_owned(), points: rows.iter().map(point).collect() }
}

/// Lines over simulated time.
pub fn over_time<R>(title: &str, subtitle: &str, document: &Document<R>, y: Axis, series: Vec<Line>) -> String {
    let (heading, x) = (heading(title, subtitle, document), Axis::linear("simulated time", Unit::Seconds));
    Lines { heading, x, y, series, reference: None, width_px: 860.0 }.svg()
}

/// A part of a whole; 0 of nothing.
pub fn ratio(part: u64, whole: u64) -> f64 {
    if whole == 0 { 0.0 } else { part as f64 / whole as f64 }
}

/// A part in percent, with one digit behind the point.
pub fn percent(part: f64) -> String {
    format!("{:.1} %", part * 100.0)
}
