//! The sheet of an experiment: rows, and what is made from them. A row without `status`, or with
//! `ok`, succeeded.

use super::{Ask, Findings};
use craton_lab::document::{Described, Document};
use craton_lab::format;
use craton_lab::measure::Allocator;
use craton_lab::picture::{Axis, Bars, Estimate, Group, Heading, Line, Lines, Point};
use craton_lab::ratios::Ratios;
use serde::Serialize;
use std::collections::BTreeMap;

pub use serde_json::{Value as Row, json};

pub type Map = BTreeMap<String, f64>;

pub trait Fields {
    /// NaN if missing.
    fn num(&self, field: &str) -> f64;
    /// 0 if missing.
    fn int(&self, field: &str) -> u64;
    /// Empty if missing.
    fn word(&self, field: &str) -> &str;
    fn is_ok(&self) -> bool;
    fn has(&self, words: &[(&str, &str)]) -> bool;
    fn like(&self, other: &Self, fields: &[&str]) -> bool;
}

impl Fields for Row {
    fn num(&self, field: &str) -> f64 {
        self[field].as_f64().unwrap_or(f64::NAN)
    }

    fn int(&self, field: &str) -> u64 {
        self[field].as_u64().unwrap_or(0)
    }

    fn word(&self, field: &str) -> &str {
        self[field].as_str().unwrap_or("")
    }

    fn is_ok(&self) -> bool {
        matches!(self["status"].as_str(), None | Some("ok"))
    }

    fn has(&self, words: &[(&str, &str)]) -> bool {
        words.iter().all(|(field, word)| self.word(field) == *word)
    }

    fn like(&self, other: &Self, fields: &[&str]) -> bool {
        fields.iter().all(|field| self[*field] == other[*field])
    }
}

pub fn with(mut row: Row, more: &impl Serialize, status: &str) -> Row {
    if let (Row::Object(fields), Ok(Row::Object(more))) = (&mut row, serde_json::to_value(more)) {
        fields.extend(more);
        fields.insert("status".to_owned(), status.into());
    }
    row
}

/// Adjacent rows alike in these fields.
pub fn runs<'a>(rows: &'a [Row], fields: &'a [&str]) -> impl Iterator<Item = &'a [Row]> {
    rows.chunk_by(move |a, b| a.like(b, fields))
}

#[derive(Clone, Copy)]
pub enum Show {
    Text,
    Plain,
    /// In groups of three digits.
    Count,
    Bytes,
    Seconds,
    /// Decimals, and unit.
    Fixed(usize, &'static str),
    Percent(usize),
    Status,
    By(fn(&Row) -> String),
}

pub type Column = (&'static str, &'static str, Show);

fn cell(row: &Row, field: &str, show: Show) -> String {
    let value = &row[field];
    match show {
        Show::By(of) => of(row),
        Show::Status if row.is_ok() => String::new(),
        Show::Status => row.word("status").to_owned(),
        _ if value.is_null() => "-".to_owned(),
        Show::Text | Show::Plain => value.as_str().map_or_else(|| value.to_string(), str::to_owned),
        Show::Count => format::count(row.int(field)),
        Show::Bytes => format::bytes(row.num(field) as u64),
        Show::Seconds => format::seconds(row.num(field)),
        Show::Fixed(digits, unit) => format!("{:.digits$}{unit}", row.num(field)),
        Show::Percent(digits) => percent(row.num(field), digits),
    }
}

pub fn table<'a>(columns: &[Column], rows: impl IntoIterator<Item = &'a Row>) -> String {
    let left: Vec<usize> = (0..columns.len()).filter(|i| matches!(columns[*i].2, Show::Text)).collect();
    let mut cells = vec![columns.iter().map(|(head, ..)| (*head).to_owned()).collect::<Vec<_>>()];
    let line = |row| columns.iter().map(|(_, field, show)| cell(row, field, *show)).collect();
    cells.extend(rows.into_iter().map(line));
    format::table(&cells, &left)
}

pub fn percent(part: f64, digits: usize) -> String {
    format!("{:.digits$} %", part * 100.0)
}

pub fn part(part: u64, whole: u64) -> f64 {
    if whole == 0 { 0.0 } else { part as f64 / whole as f64 }
}

pub fn mean(values: impl IntoIterator<Item = f64>) -> f64 {
    let (sum, count) = values.into_iter().fold((0.0, 0), |(sum, count), value| (sum + value, count + 1));
    if count == 0 { 0.0 } else { sum / f64::from(count) }
}

pub type Who<'a> = (&'a dyn Fn(&Row) -> bool, &'a dyn Fn(&Row) -> bool);

/// By the first of `theirs` with equal fields `same`.
pub fn pairs(rows: &[Row], figure: &str, (ours, theirs): Who<'_>, same: &[&str]) -> Vec<f64> {
    let good = |row: &&Row| row.is_ok() && row.num(figure) > 0.0;
    let its = |mine: &Row| rows.iter().filter(good).find(|row| theirs(row) && row.like(mine, same));
    let mine = rows.iter().filter(good).filter(|row| ours(row));
    mine.filter_map(|row| Some(row.num(figure) / its(row)?.num(figure))).collect()
}

pub fn geomean(values: &[f64]) -> f64 {
    mean(values.iter().map(|value| value.ln())).exp()
}

pub fn ratio(rows: &[Row], figure: &str, who: Who<'_>, same: &[&str]) -> Option<f64> {
    let pairs = pairs(rows, figure, who, same);
    (!pairs.is_empty()).then(|| geomean(&pairs))
}

/// In the order of appearance.
pub fn distinct<'a, T: PartialEq>(rows: impl IntoIterator<Item = &'a Row>, of: impl Fn(&'a Row) -> T) -> Vec<T> {
    let mut values = Vec::new();
    for value in rows.into_iter().map(of) {
        if !values.contains(&value) {
            values.push(value);
        }
    }
    values
}

pub fn by(field: &str) -> impl Fn(&Row) -> String {
    move |row| row.word(field).to_owned()
}

pub fn lines<'a>(
    rows: impl IntoIterator<Item = &'a Row> + Clone,
    name: impl Fn(&Row) -> String,
    at: impl Fn(&Row) -> (f64, f64),
) -> Vec<Line> {
    let line = |of: String| {
        let points = rows.clone().into_iter().filter(|row| name(row) == of).map(&at);
        Line { points: points.map(|(x, y)| Point::new(x, y)).collect(), name: of }
    };
    distinct(rows.clone(), &name).into_iter().map(line).collect()
}

pub fn fields<'a>(rows: impl IntoIterator<Item = &'a Row> + Clone, x: &str, y: &[(&str, &str)]) -> Vec<Line> {
    let line = |(name, y): &(&str, &str)| lines(rows.clone(), |_| (*name).to_owned(), |row| (row.num(x), row.num(y)));
    y.iter().flat_map(line).collect()
}

pub fn groups<'a>(
    rows: impl IntoIterator<Item = &'a Row> + Clone,
    name: impl Fn(&Row) -> String,
    (series, of): (&[String], impl Fn(&Row) -> String),
    figure: impl Fn(&Row) -> f64,
) -> Vec<Group> {
    let group = |group: String| {
        let bar = |series: &String| {
            let mut good = rows.clone().into_iter().filter(|row| row.is_ok() && name(row) == group);
            good.find(|row| of(row) == *series).map(&figure).filter(|value| value.is_finite()).map(Estimate::exact)
        };
        Group { bars: series.iter().map(bar).collect(), name: group }
    };
    distinct(rows.clone(), &name).into_iter().map(group).collect()
}

/// File suffix, subject, content.
#[derive(Clone, Copy)]
pub struct Title<'a>(pub &'a str, pub &'a str, pub &'a str);

pub struct Sheet {
    pub document: Document<Row>,
    pictures: Vec<(String, String)>,
    pub failed: usize,
}

impl Sheet {
    pub fn new(ask: &Ask<'_>, rows: Vec<Row>) -> Self {
        let failed = rows.iter().filter(|row| !row.is_ok()).count();
        let document = Document::new(ask.name, ask.command, &[], rows, &Ratios::default());
        Self { document, pictures: Vec::new(), failed }
    }

    pub fn compared(self, allocators: &[Allocator], ratios: &Ratios) -> Self {
        let (allocators, intervals) = (allocators.iter().map(Described::new).collect(), ratios.intervals());
        let document = Document { allocators, intervals, ratios: ratios.values(), ..self.document };
        Self { document, ..self }
    }

    pub fn measured(self) -> Result<Self, String> {
        if self.rows().is_empty() { Err("nothing was measured".to_owned()) } else { Ok(self) }
    }

    pub fn rows(&self) -> &[Row] {
        &self.document.rows
    }

    pub fn ratios(&mut self, of: impl FnOnce(&[Row]) -> Map, digits: usize) -> String {
        self.document.ratios = of(self.rows());
        self.document.ratios.iter().map(|(name, ratio)| format!("{name} {ratio:.digits$}\n")).collect()
    }

    pub fn heading(&self, title: &str, subtitle: &str) -> Heading {
        let Document { machine, commit, command, .. } = &self.document;
        let source = format!(
            "{}, {} processors, Linux {}, THP {}; commit {}; {}",
            machine.cpu,
            machine.cpus,
            machine.kernel,
            machine.thp,
            commit.get(..12).unwrap_or(commit),
            command.join(" ")
        );
        Heading { title: title.to_owned(), subtitle: subtitle.to_owned(), source }
    }

    pub fn picture(&mut self, name: &str, svg: String) {
        self.pictures.push((name.to_owned(), svg));
    }

    pub fn lines(&mut self, title: Title<'_>, (x, y): (Axis, Axis), series: Vec<Line>, reference: Option<f64>) {
        let heading = self.heading(title.1, title.2);
        let series = series.into_iter().filter(|line| !line.points.is_empty()).collect();
        self.picture(title.0, Lines { heading, x, y, series, reference, width_px: 860.0 }.svg());
    }

    pub fn bars(&mut self, title: Title<'_>, axis: Axis, names: &[String], groups: Vec<Group>, reference: Option<f64>) {
        let (heading, series) = (self.heading(title.1, title.2), names.to_vec());
        self.picture(title.0, Bars { heading, axis, series, groups, reference, width_px: 760.0 }.svg());
    }

    pub fn findings(self, text: String) -> Result<Findings, String> {
        let document = self.document.text().map_err(|e| format!("cannot write the figures as JSON: {e}"))?;
        Ok(Findings { document, text, pictures: self.pictures, failed: self.failed })
    }
}
