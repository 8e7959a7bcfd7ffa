//! A coloured table of ratios, with the columns' geometric means.

use super::canvas::{Canvas, Stroke, Type, polyline};
use super::colour::{self, INK, QUIET};
use super::frame::{Frame, Heading, LABEL_SIZE, MARGIN};
use super::text;
use super::unit::three_digits;

#[derive(Clone, Debug)]
pub struct Heat {
    pub heading: Heading,
    pub label: String,
    pub columns: Vec<String>,
    pub rows: Vec<HeatRow>,
    /// Has the darkest colour, as its inverse; 2 is usual.
    pub limit: f64,
}

#[derive(Clone, Debug)]
pub struct HeatRow {
    pub name: String,
    pub cells: Vec<Cell>,
}

#[derive(Clone, Debug, PartialEq)]
pub enum Cell {
    Ratio(f64),
    /// In two words: `timed out`.
    Missing(String),
}

const ROW: f64 = 22.0;
const CELL: f64 = 58.0;
const NUMBER_SIZE: f64 = 11.5;
const REASON_SIZE: f64 = 9.0;
const MOST_NAME: f64 = 220.0;
const TURN: f64 = -40.0;
const SCALE: f64 = 240.0;

impl Heat {
    pub fn svg(&self) -> String {
        let any = self.rows.iter().any(|row| row.cells.iter().any(|cell| ratio(cell).is_some()));
        if !any || self.columns.is_empty() {
            return Frame::new(&self.heading, 480.0).no_data();
        }
        let names = self.rows.iter().map(|row| row.name.as_str()).chain(["geometric mean"]);
        let left = MARGIN + text::widest(names, LABEL_SIZE, true).min(MOST_NAME) + 10.0;
        let level = self.columns.iter().all(|name| text::width(name, LABEL_SIZE, true) < CELL - 4.0);
        let over = if level { 0.0 } else { self.overhang() };
        let width = left + CELL * self.columns.len() as f64 + over.max(MARGIN);
        let mut frame = Frame::new(&self.heading, width.max(SCALE + 2.0 * MARGIN + 60.0).max(420.0));
        self.scale(&mut frame);
        self.head(&mut frame, left, level);
        let mut y = frame.top;
        for row in &self.rows {
            let name = text::cut(&row.name, LABEL_SIZE, false, MOST_NAME);
            frame.canvas.text(left - 10.0, y + ROW / 2.0 + 4.0, &name, Type::new(LABEL_SIZE, INK).end());
            for (i, column) in self.columns.iter().enumerate() {
                let x = left + CELL * i as f64;
                let of = format!("{}, {column}", row.name);
                match row.cells.get(i) {
                    Some(Cell::Missing(why)) => missing(&mut frame.canvas, x, y, &of, why),
                    Some(Cell::Ratio(value)) if ratio(&Cell::Ratio(*value)).is_some() => {
                        let tip = format!("{of}: {}", three_digits(*value));
                        self.cell(&mut frame.canvas, x, y, *value, &tip, false);
                    }
                    _ => missing(&mut frame.canvas, x, y, &of, "no figure"),
                }
            }
            y += ROW;
        }
        let end = self.means(&mut frame, left, y + 8.0);
        frame.finish(end)
    }

    /// Of turned column names beyond the last column's middle.
    fn overhang(&self) -> f64 {
        let reach = |(i, name): (usize, &String)| {
            let after = CELL * (self.columns.len() - i) as f64 - CELL / 2.0;
            text::width(name, LABEL_SIZE, true) * TURN.to_radians().cos() - after + MARGIN + 8.0
        };
        self.columns.iter().enumerate().map(reach).fold(0.0, f64::max)
    }

    fn scale(&self, frame: &mut Frame) {
        let limit = self.limit();
        for line in text::wrap(&self.label, LABEL_SIZE, false, frame.width - 2.0 * MARGIN) {
            frame.canvas.text(MARGIN, frame.top + 10.0, &line, Type::new(LABEL_SIZE, INK));
            frame.top += 16.0;
        }
        const PARTS: usize = 24;
        let part = SCALE / PARTS as f64;
        let x = MARGIN + 20.0;
        for i in 0..PARTS {
            let share = (i as f64 + 0.5) / PARTS as f64 * 2.0 - 1.0;
            let (ground, _) = colour::of_ratio(limit.powf(share), limit);
            // Half a pixel more, so that no gap shows.
            let more = if i + 1 < PARTS { 0.5 } else { 0.0 };
            frame.canvas.rect(x + part * i as f64, frame.top, part + more, 10.0, &ground);
        }
        for share in [-1.0, -0.5, 0.0, 0.5, 1.0] {
            let label = three_digits(limit.powf(share));
            let label = match share {
                -1.0 => format!("≤ {label}"),
                1.0 => format!("≥ {label}"),
                _ => label,
            };
            let at = x + SCALE * (share + 1.0) / 2.0;
            frame.canvas.text(at, frame.top + 23.0, &label, Type::new(10.0, QUIET).middle());
        }
        frame.top += 38.0;
    }

    fn head(&self, frame: &mut Frame, left: f64, level: bool) {
        let widest = text::widest(self.columns.iter().map(String::as_str), LABEL_SIZE, true);
        frame.top += if level { 18.0 } else { widest * TURN.abs().to_radians().sin() + 14.0 };
        for (i, name) in self.columns.iter().enumerate() {
            let how = Type::new(LABEL_SIZE, INK).bold(colour::is_craton(name));
            let middle = left + CELL * (i as f64 + 0.5);
            match level {
                true => frame.canvas.text(middle, frame.top - 7.0, name, how.middle()),
                false => frame.canvas.text(middle, frame.top - 7.0, name, how.turned(TURN)),
            }
        }
    }

    fn limit(&self) -> f64 {
        if self.limit.is_finite() && self.limit > 1.01 { self.limit } else { 2.0 }
    }

    fn cell(&self, canvas: &mut Canvas, x: f64, y: f64, value: f64, tip: &str, bold: bool) {
        let (ground, ink) = colour::of_ratio(value, self.limit());
        canvas.tip(tip, |canvas| {
            canvas.rect(x, y, CELL - 1.5, ROW - 1.5, &ground);
            let how = Type::new(NUMBER_SIZE, ink).bold(bold).middle();
            canvas.text(x + CELL / 2.0 - 0.75, y + ROW / 2.0 + 3.5, &number(value), how);
        });
    }

    fn means(&self, frame: &mut Frame, left: f64, y: f64) -> f64 {
        let how = Type::new(LABEL_SIZE, INK).bold(true);
        frame.canvas.text(left - 10.0, y + ROW / 2.0 + 4.0, "geometric mean", how.end());
        let mut some_missing = false;
        for (i, column) in self.columns.iter().enumerate() {
            let x = left + CELL * i as f64;
            let values: Vec<f64> = self.rows.iter().filter_map(|row| row.cells.get(i).and_then(ratio)).collect();
            let (have, of) = (values.len(), self.rows.len());
            match geometric_mean(&values) {
                Some(mean) => {
                    let tip = format!("{column}: geometric mean {} of {have} of {of} rows", three_digits(mean));
                    self.cell(&mut frame.canvas, x, y, mean, &tip, true);
                }
                None => missing(&mut frame.canvas, x, y, column, "no figure"),
            }
            if have < of {
                some_missing = true;
                let count = format!("{have} of {of}");
                frame.canvas.text(x + CELL / 2.0, y + ROW + 11.0, &count, Type::new(REASON_SIZE, QUIET).middle());
            }
        }
        y + ROW + if some_missing { 16.0 } else { 2.0 }
    }
}

fn ratio(cell: &Cell) -> Option<f64> {
    match cell {
        Cell::Ratio(value) if value.is_finite() && *value > 0.0 => Some(*value),
        _ => None,
    }
}

fn number(value: f64) -> String {
    match value {
        v if v >= 999_999.5 => format!("{v:.0e}"),
        v if v >= 99.95 => format!("{v:.0}"),
        v if v >= 9.995 => format!("{v:.1}"),
        v if v >= 0.005 => format!("{v:.2}"),
        v => format!("{v:.0e}"),
    }
}

fn geometric_mean(values: &[f64]) -> Option<f64> {
    let sum: f64 = values.iter().map(|v| v.ln()).sum();
    if values.is_empty() { None } else { Some((sum / values.len() as f64).exp()) }
}

fn missing(canvas: &mut Canvas, x: f64, y: f64, of: &str, why: &str) {
    let (width, height) = (CELL - 1.5, ROW - 1.5);
    canvas.tip(&format!("{of}: {why}"), |canvas| {
        canvas.rect(x, y, width, height, "#eceef1");
        // A line rises by the cell's height over the same width; clipped by hand.
        let mut from = -height;
        let mut hatch = String::new();
        while from < width {
            let (start, end) = (from.max(0.0), (from + height).min(width));
            if end > start {
                hatch += &polyline([(x + start, y + height - (start - from)), (x + end, y + height - (end - from))]);
            }
            from += 7.0;
        }
        canvas.path(&hatch, "none", Some(Stroke::plain("#c9ced5", 1.0)));
        let label = text::cut(why, REASON_SIZE, false, width - 6.0);
        if label.is_empty() {
            return;
        }
        let ground = text::width(&label, REASON_SIZE, false) + 4.0;
        canvas.rect(x + (width - ground) / 2.0, y + 4.0, ground, height - 8.0, "#eceef1");
        canvas.text(x + width / 2.0, y + height / 2.0 + 3.0, &label, Type::new(REASON_SIZE, "#3f464e").middle());
    });
}
