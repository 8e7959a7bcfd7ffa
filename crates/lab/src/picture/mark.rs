//! A shape for each allocator, for people who cannot tell colours apart.

use super::canvas::{Canvas, Stroke, polyline};
use super::colour::{self, GROUND};
use std::f64::consts::TAU;

const DASHES: [&str; 6] = ["", "7 3", "2 3", "9 3 2 3", "5 2 2 2 2 2", "12 4"];

pub fn draw(canvas: &mut Canvas, x: f64, y: f64, radius: f64, name: &str) {
    let fill = colour::of(name);
    // Shapes with few corners are larger, to look as heavy as a disc.
    let (corners, turn, grow) = match colour::rank(name) % 6 {
        0 => return canvas.disc(x, y, radius, fill, GROUND),
        1 => (4, 0.125, 1.2),
        2 => (3, 0.0, 1.3),
        3 => (4, 0.0, 1.25),
        4 => (3, 0.5, 1.3),
        _ => (5, 0.0, 1.15),
    };
    let corner = |i: usize| {
        let angle = (i as f64 / f64::from(corners) + turn) * TAU;
        (x + radius * grow * angle.sin(), y - radius * grow * angle.cos())
    };
    let outline = polyline((0..corners as usize).map(corner)) + "Z";
    canvas.path(&outline, fill, Some(Stroke::plain(GROUND, 1.0)));
}

pub fn dash(name: &str) -> &'static str {
    DASHES[colour::rank(name) % DASHES.len()]
}
