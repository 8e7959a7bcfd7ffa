//! A forest plot: runs as ticks, the interval as a line, the median as a dot.

use super::axis::{Axis, Ruler};
use super::canvas::{Stroke, Type};
use super::colour::{self, INK, QUIET};
use super::frame::{Frame, Heading, LABEL_SIZE, MARGIN};
use super::{Estimate, mark, text};

#[derive(Clone, Debug)]
pub struct Dots {
    pub heading: Heading,
    pub axis: Axis,
    pub rows: Vec<DotRow>,
    pub reference: Option<f64>,
    pub width_px: f64,
}

#[derive(Clone, Debug)]
pub struct DotRow {
    pub name: String,
    pub allocator: String,
    pub estimate: Option<Estimate>,
    pub runs: Vec<f64>,
    pub note: String,
}

const ROW: f64 = 30.0;

impl Dots {
    pub fn svg(&self) -> String {
        let mut frame = Frame::new(&self.heading, self.width_px);
        let names = self.rows.iter().map(|row| row.name.as_str());
        let left = MARGIN + text::widest(names, LABEL_SIZE, true).min(frame.width * 0.28) + 12.0;
        let notes: Vec<String> = self.rows.iter().map(|row| self.note(row)).collect();
        let note_room = text::widest(notes.iter().map(String::as_str), LABEL_SIZE, true).min(frame.width * 0.34);
        let right = frame.width - MARGIN - note_room - 14.0;
        let values = self.rows.iter().flat_map(|row| row.values()).chain(self.reference);
        let Some(ruler) = self.ruler(values, left, right) else { return frame.no_data() };
        let (top, bottom) = (frame.top, frame.top + ROW * self.rows.len() as f64);
        let end = frame.across(&ruler, left, right, top, bottom);
        if let Some(reference) = self.reference.filter(|r| ruler.holds(*r)) {
            let x = ruler.at(reference);
            frame.reference(x, top - 2.0, x, bottom + 2.0);
        }
        for (i, (row, note)) in self.rows.iter().zip(&notes).enumerate() {
            let y = top + ROW * (i as f64 + 0.5);
            let bold = colour::is_craton(&row.allocator);
            let name = text::cut(&row.name, LABEL_SIZE, bold, left - MARGIN - 12.0);
            let how = Type::new(LABEL_SIZE, INK).bold(bold);
            frame.canvas.text(left - 12.0, y + 4.0, &name, how.end());
            let quiet = if row.estimate.is_some() && row.note.is_empty() { how } else { Type { colour: QUIET, ..how } };
            frame.canvas.text(right + 14.0, y + 4.0, &text::cut(note, LABEL_SIZE, bold, note_room), quiet);
            frame.canvas.tip(&self.tip(row), |canvas| {
                canvas.veil(&format!("M{left:.2} {:.2}H{right:.2}V{:.2}H{left:.2}Z", y - 12.0, y + 12.0), INK, 0.0);
                let fill = colour::of(&row.allocator);
                for run in row.runs.iter().filter(|run| self.axis.takes(**run)) {
                    let x = ruler.at(*run);
                    canvas.line(x, y + 5.0, x, y + 11.0, Stroke::plain(fill, 1.0));
                }
                let Some(estimate) = row.estimate.filter(|e| self.axis.takes(e.value)) else { return };
                if let Some((low, high)) = estimate.span(&self.axis) {
                    canvas.line(ruler.at(low), y, ruler.at(high), y, Stroke::plain(fill, 2.5));
                }
                mark::draw(canvas, ruler.at(estimate.value), y, 5.5, &row.allocator);
            });
        }
        frame.finish(end)
    }

    fn ruler(&self, values: impl Iterator<Item = f64>, left: f64, right: f64) -> Option<Ruler> {
        let values: Vec<f64> = values.collect();
        // The reference alone is no data.
        let any = self.rows.iter().any(|row| row.values().any(|v| self.axis.takes(v)));
        if any { Ruler::new(&self.axis, values, left, right, true) } else { None }
    }

    fn note(&self, row: &DotRow) -> String {
        match &row.estimate {
            _ if !row.note.is_empty() => row.note.clone(),
            Some(estimate) if self.axis.takes(estimate.value) => estimate.write(&self.axis),
            _ => "no figure".to_owned(),
        }
    }

    fn tip(&self, row: &DotRow) -> String {
        let runs: Vec<String> = row.runs.iter().map(|run| self.axis.unit.write(*run)).collect();
        let runs = if runs.is_empty() { String::new() } else { format!("; single runs: {}", runs.join(", ")) };
        format!("{}: {}{runs}", row.name, self.note(row))
    }
}

impl DotRow {
    fn values(&self) -> impl Iterator<Item = f64> {
        let estimate = self.estimate.iter().flat_map(Estimate::values);
        estimate.chain(self.runs.iter().copied())
    }
}
