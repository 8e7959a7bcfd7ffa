//! Bars with whiskers. Linear bars begin at 0, logarithmic ones at the reference.

use super::axis::{Axis, Ruler, Scale};
use super::canvas::{Canvas, Stroke, Type};
use super::colour::{self, GROUND, INK, QUIET};
use super::frame::{Frame, Heading, LABEL_SIZE, MARGIN};
use super::{Estimate, text};

#[derive(Clone, Debug)]
pub struct Bars {
    pub heading: Heading,
    pub axis: Axis,
    pub series: Vec<String>,
    pub groups: Vec<Group>,
    pub reference: Option<f64>,
    pub width_px: f64,
}

#[derive(Clone, Debug)]
pub struct Group {
    pub name: String,
    pub bars: Vec<Option<Estimate>>,
}

const LABEL_GAP: f64 = 10.0;
const NO_FIGURE: &str = "no figure";

impl Bars {
    pub fn svg(&self) -> String {
        let any = self.estimates().any(|e| self.axis.takes(e.value));
        if !any || self.series.is_empty() {
            return Frame::new(&self.heading, self.width_px).no_data();
        }
        let mut frame = Frame::new(&self.heading, self.width_px);
        if !self.names_bars() && self.series.len() > 1 {
            frame.legend(&self.series);
        }
        let names: Vec<&str> = match self.names_bars() {
            true => self.series.iter().map(String::as_str).collect(),
            false => self.groups.iter().map(|group| group.name.as_str()).collect(),
        };
        let most = frame.width * 0.3;
        let left = MARGIN + text::widest(names, LABEL_SIZE, true).min(most) + LABEL_GAP;
        let thick = if self.names_bars() || self.series.len() == 1 { 18.0 } else { 13.0 };
        let written: Vec<String> = self.estimates().map(|e| self.axis.unit.write(e.value)).collect();
        let room = text::widest(written.iter().map(String::as_str), 11.0, true) + 8.0;
        let right = frame.width - MARGIN - room;
        let Some(ruler) = self.ruler(left, right) else { return frame.no_data() };
        let gap = if self.names_bars() { 8.0 } else { 12.0 };
        let step = if self.names_bars() { thick + gap } else { thick };
        let group_room = step * self.series.len() as f64 + if self.names_bars() { 0.0 } else { gap };
        let (top, bottom) = (frame.top, frame.top + group_room * self.groups.len() as f64);
        let end = frame.across(&ruler, left, right, top, bottom);
        let mut numbers = Vec::new();
        for (i, group) in self.groups.iter().enumerate() {
            let start = top + group_room * i as f64 + gap / 2.0;
            if !self.names_bars() {
                let middle = start + step * self.series.len() as f64 / 2.0;
                label_left(&mut frame.canvas, left, middle, &group.name, false, most);
            }
            for (j, name) in self.series.iter().enumerate() {
                let from = start + step * j as f64;
                let bar = group.bars.get(j).copied().flatten();
                if self.names_bars() {
                    label_left(&mut frame.canvas, left, from + thick / 2.0, name, colour::is_craton(name), most);
                }
                let thin = if self.names_bars() || self.series.len() == 1 { 0.0 } else { 1.0 };
                let past = self.bar(&mut frame.canvas, &ruler, (from, from + thick - thin), (&group.name, name), bar);
                let level = from + thick / 2.0 + 4.0;
                let how = Type::new(11.0, INK).bold(colour::is_craton(name)).rimmed(GROUND);
                match bar.filter(|e| self.axis.takes(e.value)) {
                    Some(estimate) => numbers.push((past + 6.0, level, self.axis.unit.write(estimate.value), how)),
                    None => numbers.push((past + 14.0, level, NO_FIGURE.to_owned(), Type { colour: QUIET, ..how })),
                }
            }
        }
        if let Some(reference) = self.reference.filter(|r| ruler.holds(*r)) {
            let x = ruler.at(reference);
            frame.reference(x, top - 2.0, x, bottom + 2.0);
        }
        for (x, y, number, how) in numbers {
            frame.canvas.text(x, y, &number, how);
        }
        frame.finish(end)
    }

    fn estimates(&self) -> impl Iterator<Item = &Estimate> {
        self.groups.iter().flat_map(|group| group.bars.iter().take(self.series.len()).flatten())
    }

    fn names_bars(&self) -> bool {
        self.groups.len() == 1
    }

    fn ruler(&self, from: f64, to: f64) -> Option<Ruler> {
        let zero = (self.axis.scale == Scale::Linear).then_some(0.0);
        let values = self.estimates().flat_map(Estimate::values).chain(self.reference).chain(zero);
        Ruler::new(&self.axis, values, from, to, true)
    }

    fn base(&self, ruler: &Ruler) -> f64 {
        if self.axis.scale == Scale::Linear {
            return 0.0f64.clamp(ruler.low, ruler.high);
        }
        self.reference.filter(|r| ruler.holds(*r)).unwrap_or(ruler.low)
    }

    fn bar(
        &self,
        canvas: &mut Canvas,
        ruler: &Ruler,
        (top, bottom): (f64, f64),
        (group, name): (&str, &str),
        bar: Option<Estimate>,
    ) -> f64 {
        let start = ruler.at(self.base(ruler));
        let middle = (top + bottom) / 2.0;
        let of = if group.is_empty() { String::new() } else { format!("{group}, ") };
        let Some(estimate) = bar.filter(|e| self.axis.takes(e.value)) else {
            canvas.tip(&format!("{of}{name}: {NO_FIGURE}"), |canvas| {
                for turn in [-3.0, 3.0] {
                    let stroke = Stroke::plain(QUIET, 1.5);
                    canvas.line(start + 2.0, middle - turn, start + 8.0, middle + turn, stroke);
                }
            });
            return start;
        };
        let end = ruler.at(estimate.value);
        let mut past = start.max(end);
        canvas.tip(&format!("{of}{name}: {}", estimate.write(&self.axis)), |canvas| {
            canvas.rect(start.min(end), top, (start - end).abs(), bottom - top, colour::of(name));
            let Some((low, high)) = estimate.span(&self.axis) else { return };
            let (low, high) = (ruler.at(low), ruler.at(high));
            past = past.max(low).max(high);
            for stroke in [Stroke::plain("#ffffff", 3.0), Stroke::plain(INK, 1.2)] {
                canvas.line(low, middle, high, middle, stroke);
            }
            let half = ((bottom - top) / 4.0).min(3.5);
            for end in [low, high] {
                canvas.line(end, middle - half, end, middle + half, Stroke::plain(INK, 1.2));
            }
        });
        past
    }
}

fn label_left(canvas: &mut Canvas, left: f64, middle: f64, name: &str, bold: bool, most: f64) {
    let name = text::cut(name, LABEL_SIZE, bold, most);
    canvas.text(left - LABEL_GAP, middle + 4.0, &name, Type::new(LABEL_SIZE, INK).bold(bold).end());
}
