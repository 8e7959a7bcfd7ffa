//! Figures over time, sizes or threads, with bands for intervals.

use super::axis::{Axis, Ruler, Scale};
use super::canvas::{Stroke, Type, polyline};
use super::colour::{self, INK};
use super::frame::{Frame, Heading, LABEL_SIZE, MARGIN};
use super::{mark, text};

#[derive(Clone, Debug)]
pub struct Lines {
    pub heading: Heading,
    pub x: Axis,
    pub y: Axis,
    pub series: Vec<Line>,
    pub reference: Option<f64>,
    pub width_px: f64,
}

#[derive(Clone, Debug)]
pub struct Line {
    pub name: String,
    /// By ascending `x`.
    pub points: Vec<Point>,
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Point {
    pub x: f64,
    pub y: f64,
    pub band: Option<(f64, f64)>,
}

impl Point {
    pub fn new(x: f64, y: f64) -> Self {
        Self { x, y, band: None }
    }
}

const HEIGHT: f64 = 270.0;
const MOST_MARKS: usize = 24;
const NAME_STEP: f64 = 15.0;

impl Lines {
    pub fn svg(&self) -> String {
        let mut frame = Frame::new(&self.heading, self.width_px);
        let any = self.series.iter().any(|line| line.points.iter().any(|p| self.takes(p)));
        let Some(first) = self.y_ruler(HEIGHT, 0.0).filter(|_| any) else { return frame.no_data() };
        frame.name_upwards(&first.label);
        let height = HEIGHT.max(NAME_STEP * self.series.len() as f64);
        let (top, bottom) = (frame.top, frame.top + height);
        let names = self.series.iter().map(|line| line.name.as_str());
        let name_room = text::widest(names, LABEL_SIZE, true).min(frame.width * 0.3);
        let Some(y) = self.y_ruler(bottom, top) else { return frame.no_data() };
        let left = (MARGIN + Frame::room_upwards(&y)).max(MARGIN + 24.0);
        let right = frame.width - MARGIN - name_room - 20.0;
        let xs = self.points().map(|p| p.x);
        let Some(x) = Ruler::new(&self.x, xs, left, right, true) else { return frame.no_data() };
        frame.upwards(&y, left, right);
        let end = frame.across(&x, left, right, top, bottom);
        if let Some(reference) = self.reference.filter(|r| y.holds(*r)) {
            frame.reference(left, y.at(reference), right, y.at(reference));
        }
        for line in &self.series {
            self.band(&mut frame, line, &x, &y);
        }
        // Craton last, so on top.
        let mut order: Vec<&Line> = self.series.iter().collect();
        order.sort_by_key(|line| colour::is_craton(&line.name));
        for line in &order {
            self.line(&mut frame, line, &x, &y);
        }
        self.names(&mut frame, &x, &y, (right, name_room, top, bottom));
        frame.finish(end)
    }

    fn takes(&self, point: &Point) -> bool {
        self.x.takes(point.x) && self.y.takes(point.y)
    }

    fn points(&self) -> impl Iterator<Item = &Point> {
        self.series.iter().flat_map(|line| &line.points).filter(|p| self.takes(p))
    }

    fn y_ruler(&self, bottom: f64, top: f64) -> Option<Ruler> {
        let zero = (self.y.scale == Scale::Linear).then_some(0.0);
        let bands = self.points().filter_map(|p| p.band).flat_map(|(low, high)| [low, high]);
        let values = self.points().map(|p| p.y).chain(bands).chain(self.reference).chain(zero);
        Ruler::new(&self.y, values, bottom, top, false)
    }

    fn band(&self, frame: &mut Frame, line: &Line, x: &Ruler, y: &Ruler) {
        let ends: Vec<(f64, f64, f64)> = line
            .points
            .iter()
            .filter(|p| self.takes(p))
            .filter_map(|p| p.band.map(|(low, high)| (p.x, low, high)))
            .filter(|(_, low, high)| self.y.takes(*low) && self.y.takes(*high))
            .collect();
        if ends.len() < 2 {
            return;
        }
        let there = ends.iter().map(|(at, low, _)| (x.at(*at), y.at(*low)));
        let back = ends.iter().rev().map(|(at, _, high)| (x.at(*at), y.at(*high)));
        frame.canvas.veil(&(polyline(there.chain(back)) + "Z"), colour::of(&line.name), 0.16);
    }

    fn line(&self, frame: &mut Frame, line: &Line, x: &Ruler, y: &Ruler) {
        let place = |p: &Point| if self.takes(p) { (x.at(p.x), y.at(p.y)) } else { (f64::NAN, f64::NAN) };
        let d = polyline(line.points.iter().map(place));
        let width = if colour::is_craton(&line.name) { 2.6 } else { 1.7 };
        let stroke = Stroke { colour: colour::of(&line.name), width, dash: mark::dash(&line.name) };
        frame.canvas.tip(&line.name, |canvas| canvas.path(&d, "none", Some(stroke)));
        let drawn = line.points.iter().filter(|p| self.takes(p)).count();
        if drawn > MOST_MARKS {
            return;
        }
        for point in line.points.iter().filter(|p| self.takes(p)) {
            let (at, figure) = (self.x.unit.write(point.x), self.y.unit.write(point.y));
            frame.canvas.tip(&format!("{} at {at}: {figure}", line.name), |canvas| {
                mark::draw(canvas, x.at(point.x), y.at(point.y), 3.8, &line.name);
            });
        }
    }

    fn names(&self, frame: &mut Frame, x: &Ruler, y: &Ruler, (right, room, top, bottom): (f64, f64, f64, f64)) {
        let last = |line: &Line| line.points.iter().rev().find(|p| self.takes(p)).map(|p| (x.at(p.x), y.at(p.y)));
        let mut ends: Vec<(&str, f64, f64)> =
            self.series.iter().filter_map(|line| last(line).map(|(x, y)| (line.name.as_str(), x, y))).collect();
        ends.sort_by(|a, b| a.2.total_cmp(&b.2));
        let wanted: Vec<f64> = ends.iter().map(|end| end.2).collect();
        let places = spread(&wanted, NAME_STEP, top, bottom);
        for ((name, end_x, end_y), place) in ends.iter().zip(places) {
            let bold = colour::is_craton(name);
            let bend = polyline([(end_x + 4.0, *end_y), (right + 6.0, *end_y), (right + 16.0, place)]);
            frame.canvas.path(&bend, "none", Some(Stroke::plain(colour::of(name), 1.0)));
            let label = text::cut(name, LABEL_SIZE, bold, room);
            frame.canvas.text(right + 19.0, place + 4.0, &label, Type::new(LABEL_SIZE, INK).bold(bold));
        }
    }
}

/// At least `step` apart, near the ascending `wanted` ones.
fn spread(wanted: &[f64], step: f64, low: f64, high: f64) -> Vec<f64> {
    let mut places = Vec::with_capacity(wanted.len());
    let mut least = low;
    for want in wanted {
        let place = want.max(least);
        places.push(place);
        least = place + step;
    }
    let mut most = high;
    for place in places.iter_mut().rev() {
        *place = place.min(most);
        most = *place - step;
    }
    places
}
