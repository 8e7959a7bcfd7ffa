//! One figure against another: a named mark for each allocator.

use super::axis::{Axis, Ruler};
use super::canvas::{Stroke, Type};
use super::colour::{self, GROUND, INK, QUIET, RULE};
use super::frame::{Frame, Heading, LABEL_SIZE, MARGIN};
use super::{Estimate, mark, text};

#[derive(Clone, Debug)]
pub struct Scatter {
    pub heading: Heading,
    pub x: Axis,
    pub y: Axis,
    pub spots: Vec<Spot>,
    pub corner: String,
    pub width_px: f64,
}

#[derive(Clone, Debug)]
pub struct Spot {
    pub name: String,
    pub x: Estimate,
    pub y: Estimate,
}

const RADIUS: f64 = 6.0;

/// Left, top, right, bottom.
type Area = [f64; 4];

impl Scatter {
    pub fn svg(&self) -> String {
        let mut frame = Frame::new(&self.heading, self.width_px);
        let spots: Vec<&Spot> =
            self.spots.iter().filter(|s| self.x.takes(s.x.value) && self.y.takes(s.y.value)).collect();
        let height = (frame.width * 0.6).clamp(220.0, 460.0);
        let ys = || spots.iter().flat_map(|spot| spot.y.values()).chain([1.0]);
        let first = Ruler::new(&self.y, ys(), height, 0.0, false).filter(|_| !spots.is_empty());
        let Some(first) = first else { return frame.no_data() };
        frame.name_upwards(&first.label);
        let (top, bottom) = (frame.top, frame.top + height);
        let Some(y) = Ruler::new(&self.y, ys(), bottom, top, false) else { return frame.no_data() };
        let (left, right) = (MARGIN + Frame::room_upwards(&y).max(24.0), frame.width - MARGIN - 12.0);
        let xs = spots.iter().flat_map(|spot| spot.x.values()).chain([1.0]);
        let Some(x) = Ruler::new(&self.x, xs, left, right, true) else { return frame.no_data() };
        let one = (x.at(1.0), y.at(1.0));
        if !self.corner.is_empty() {
            frame.canvas.rect(left, one.1, one.0 - left, bottom - one.1, "#f0f6fc");
        }
        frame.upwards(&y, left, right);
        let end = frame.across(&x, left, right, top, bottom);
        frame.reference(one.0, top, one.0, bottom);
        frame.reference(left, one.1, right, one.1);
        let mut taken: Vec<Area> = Vec::new();
        let corner = text::width(&self.corner, 11.0, false);
        if corner > 0.0 && corner < one.0 - left - 12.0 && bottom - one.1 > 24.0 {
            frame.canvas.text(left + 8.0, bottom - 8.0, &self.corner, Type::new(11.0, QUIET));
            taken.push([left + 8.0, bottom - 19.0, left + 8.0 + corner, bottom - 5.0]);
        }
        let places: Vec<(f64, f64)> = spots.iter().map(|s| (x.at(s.x.value), y.at(s.y.value))).collect();
        taken.extend(places.iter().map(|(x, y)| [x - RADIUS, y - RADIUS, x + RADIUS, y + RADIUS]));
        // Names cross neither lines at 1 nor, if possible, a whisker.
        taken.push([one.0 - 2.0, top, one.0 + 2.0, bottom]);
        taken.push([left, one.1 - 2.0, right, one.1 + 2.0]);
        for (spot, (at_x, at_y)) in spots.iter().zip(&places) {
            let fill = colour::of(&spot.name);
            if let Some((low, high)) = spot.x.span(&self.x) {
                frame.canvas.line(x.at(low), *at_y, x.at(high), *at_y, Stroke::plain(fill, 1.2));
                taken.push([x.at(low), at_y - 1.0, x.at(high), at_y + 1.0]);
            }
            if let Some((low, high)) = spot.y.span(&self.y) {
                frame.canvas.line(*at_x, y.at(low), *at_x, y.at(high), Stroke::plain(fill, 1.2));
                taken.push([at_x - 1.0, y.at(high), at_x + 1.0, y.at(low)]);
            }
        }
        for (spot, (at_x, at_y)) in spots.iter().zip(&places) {
            let tip = format!("{}: {}, {}", spot.name, spot.x.write(&self.x), spot.y.write(&self.y));
            frame.canvas.tip(&tip, |canvas| mark::draw(canvas, *at_x, *at_y, RADIUS, &spot.name));
        }
        let mut order: Vec<usize> = (0..spots.len()).collect();
        order.sort_by_key(|i| !colour::is_craton(&spots[*i].name));
        let edge = [left + 2.0, top, frame.width - MARGIN, bottom - 2.0];
        for i in order {
            let bold = colour::is_craton(&spots[i].name);
            let label = text::cut(&spots[i].name, LABEL_SIZE, bold, (edge[2] - edge[0]) * 0.6);
            let width = text::width(&label, LABEL_SIZE, bold);
            let Some((area, far)) = free_place(places[i], width, edge, &taken) else { continue };
            if far {
                let (near_x, near_y) = (places[i].0.clamp(area[0], area[2]), places[i].1.clamp(area[1], area[3]));
                frame.canvas.line(places[i].0, places[i].1, near_x, near_y, Stroke::plain(RULE, 0.8));
            }
            frame.canvas.text(area[0], area[3] - 4.0, &label, Type::new(LABEL_SIZE, INK).bold(bold).rimmed(GROUND));
            taken.push(area);
        }
        frame.finish(end)
    }
}

/// Of `width` pixels, and whether it needs a line to the spot.
fn free_place((x, y): (f64, f64), width: f64, edge: Area, taken: &[Area]) -> Option<(Area, bool)> {
    const HIGH: f64 = 15.0;
    for ring in 0..12 {
        let away = RADIUS + 3.0 + 9.0 * f64::from(ring);
        let (beside, over) = (width / 2.0 + away, HIGH / 2.0 + away);
        let near = [
            (beside, 0.0),
            (-beside, 0.0),
            (0.0, -over),
            (0.0, over),
            (beside, -over),
            (-beside, -over),
            (beside, over),
            (-beside, over),
        ];
        for (right, down) in near {
            let (middle, level) = (x + right, y + down);
            let area = [middle - width / 2.0, level - HIGH / 2.0, middle + width / 2.0, level + HIGH / 2.0];
            let inside = area[0] >= edge[0] && area[1] >= edge[1] && area[2] <= edge[2] && area[3] <= edge[3];
            if inside && !taken.iter().any(|other| touch(&area, other)) {
                return Some((area, ring > 0));
            }
        }
    }
    None
}

fn touch(a: &Area, b: &Area) -> bool {
    a[0] < b[2] && b[0] < a[2] && a[1] < b[3] && b[1] < a[3]
}
