//! Parts of all pictures. A chart draws from `top` and returns its lowest pixel.

use super::axis::{Ruler, TICK_SIZE};
use super::canvas::{Canvas, Stroke, Type};
use super::colour::{self, GRID, GROUND, INK, QUIET, RULE};
use super::text;

pub const MARGIN: f64 = 18.0;
pub const LABEL_SIZE: f64 = 12.0;

const TITLE_SIZE: f64 = 16.0;
const SUBTITLE_SIZE: f64 = 12.5;
const SOURCE_SIZE: f64 = 10.0;
const LEAST_WIDTH: f64 = 280.0;

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Heading {
    pub title: String,
    pub subtitle: String,
    pub source: String,
}

pub struct Frame {
    pub canvas: Canvas,
    pub width: f64,
    pub top: f64,
    title: String,
    source: String,
}

impl Frame {
    /// At least `width` pixels.
    pub fn new(heading: &Heading, width: f64) -> Self {
        let width = if width.is_finite() { width.clamp(LEAST_WIDTH, 20_000.0) } else { LEAST_WIDTH };
        let mut canvas = Canvas::new();
        let most = width - 2.0 * MARGIN;
        let mut y = MARGIN - 2.0;
        for line in text::wrap(&heading.title, TITLE_SIZE, true, most) {
            y += 20.0;
            canvas.text(MARGIN, y - 5.0, &line, Type::new(TITLE_SIZE, INK).bold(true));
        }
        for line in text::wrap(&heading.subtitle, SUBTITLE_SIZE, false, most) {
            y += 17.0;
            canvas.text(MARGIN, y - 4.0, &line, Type::new(SUBTITLE_SIZE, QUIET));
        }
        Self { canvas, width, top: y + 12.0, title: heading.title.clone(), source: heading.source.clone() }
    }

    pub fn finish(mut self, bottom: f64) -> String {
        let mut y = bottom + 8.0;
        for line in text::wrap(&self.source, SOURCE_SIZE, false, self.width - 2.0 * MARGIN) {
            y += 14.0;
            self.canvas.text(MARGIN, y - 3.0, &line, Type::new(SOURCE_SIZE, QUIET));
        }
        self.canvas.finish(self.width, y + MARGIN - 6.0, GROUND, &self.title)
    }

    pub fn no_data(mut self) -> String {
        let (top, width, height) = (self.top, self.width - 2.0 * MARGIN, 90.0);
        self.canvas.rect(MARGIN, top, width, height, "#f6f7f9");
        self.canvas.text(self.width / 2.0, top + height / 2.0 + 5.0, "no data", Type::new(14.0, QUIET).middle());
        self.finish(top + height)
    }

    /// Moves `top`.
    pub fn legend(&mut self, names: &[String]) {
        let (mut x, mut y) = (MARGIN, self.top);
        let most = self.width - 2.0 * MARGIN - 40.0;
        for name in names {
            let bold = colour::is_craton(name);
            let label = text::cut(name, LABEL_SIZE, bold, most);
            let advance = 20.0 + text::width(&label, LABEL_SIZE, bold) + 16.0;
            if x > MARGIN && x + advance - 16.0 > self.width - MARGIN {
                x = MARGIN;
                y += 19.0;
            }
            self.canvas.rect(x, y + 2.0, 12.0, 12.0, colour::of(name));
            self.canvas.text(x + 18.0, y + 12.0, &label, Type::new(LABEL_SIZE, INK).bold(bold));
            x += advance;
        }
        if !names.is_empty() {
            self.top = y + 28.0;
        }
    }

    /// Returns the lowest pixel.
    pub fn across(&mut self, ruler: &Ruler, from: f64, to: f64, top: f64, bottom: f64) -> f64 {
        for tick in &ruler.ticks {
            let x = ruler.at(tick.value);
            self.canvas.line(x, top, x, bottom, Stroke::plain(GRID, 1.0));
            self.canvas.text(x, bottom + 15.0, &tick.label, Type::new(TICK_SIZE, QUIET).middle());
        }
        let mut y = bottom + 18.0;
        for line in text::wrap(&ruler.label, LABEL_SIZE, false, self.width - 2.0 * MARGIN) {
            y += 16.0;
            let half = text::width(&line, LABEL_SIZE, false) / 2.0;
            let middle = ((from + to) / 2.0).min(self.width - MARGIN - half).max(MARGIN + half);
            self.canvas.text(middle, y - 2.0, &line, Type::new(LABEL_SIZE, INK).middle());
        }
        y
    }

    pub fn upwards(&mut self, ruler: &Ruler, left: f64, right: f64) {
        for tick in &ruler.ticks {
            let y = ruler.at(tick.value);
            self.canvas.line(left, y, right, y, Stroke::plain(GRID, 1.0));
            self.canvas.text(left - 7.0, y + 4.0, &tick.label, Type::new(TICK_SIZE, QUIET).end());
        }
    }

    pub fn room_upwards(ruler: &Ruler) -> f64 {
        text::widest(ruler.ticks.iter().map(|tick| tick.label.as_str()), TICK_SIZE, false) + 8.0
    }

    /// Above the labels, since turned text reads badly.
    pub fn name_upwards(&mut self, name: &str) {
        for line in text::wrap(name, LABEL_SIZE, false, self.width - 2.0 * MARGIN) {
            self.canvas.text(MARGIN, self.top + 10.0, &line, Type::new(LABEL_SIZE, INK));
            self.top += 16.0;
        }
        self.top += 8.0;
    }

    pub fn reference(&mut self, x1: f64, y1: f64, x2: f64, y2: f64) {
        self.canvas.line(x1, y1, x2, y2, Stroke::plain(RULE, 1.5));
    }
}
