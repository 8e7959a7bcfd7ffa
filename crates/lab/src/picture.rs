//! Charts as SVG, the same for the same data. Values that are not finite are omitted.

mod axis;
mod bars;
mod canvas;
pub mod colour;
mod dots;
mod frame;
mod heat;
mod lines;
mod mark;
mod scatter;
mod text;
mod unit;

pub use axis::{Axis, Scale};
pub use bars::{Bars, Group};
pub use canvas::escape;
pub use colour::{is_craton, of as colour_of};
pub use dots::{DotRow, Dots};
pub use frame::Heading;
pub use heat::{Cell, Heat, HeatRow};
pub use lines::{Line, Lines, Point};
pub use scatter::{Scatter, Spot};
pub use unit::Unit;

#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Estimate {
    pub value: f64,
    pub interval: Option<(f64, f64)>,
}

impl Estimate {
    pub fn exact(value: f64) -> Self {
        Self { value, interval: None }
    }

    pub fn between(value: f64, low: f64, high: f64) -> Self {
        Self { value, interval: Some((low, high)) }
    }

    fn span(&self, axis: &Axis) -> Option<(f64, f64)> {
        self.interval.filter(|(low, high)| axis.takes(*low) && axis.takes(*high))
    }

    fn values(&self) -> impl Iterator<Item = f64> {
        let (low, high) = self.interval.unwrap_or((self.value, self.value));
        [self.value, low, high].into_iter()
    }

    fn write(&self, axis: &Axis) -> String {
        let value = axis.unit.write(self.value);
        match self.span(axis) {
            Some((low, high)) => format!("{value} ({}–{})", axis.unit.write(low), axis.unit.write(high)),
            None => value,
        }
    }
}

#[cfg(test)]
mod tests;
