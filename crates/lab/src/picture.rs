//! Pictures: charts as SVG, drawn from plain data.
//!
//! **What.** A chart is a struct with its data in public fields, and [`svg`](Dots::svg) makes a file of it: [`Dots`] for
//! ratios with intervals, [`Bars`] for groups of figures, [`Lines`] for what changes over time or size, [`Heat`] for a
//! table of ratios, [`Scatter`] for one figure against another. A file needs nothing besides itself, has a ground of its
//! own, can be put into a page as it is, and is the same for the same data. Pointing at a mark shows its numbers.
//!
//! **Units.** Each field says its own; sizes of pictures in pixels, which a reader can scale.
//!
//! **Failure.** What is not finite is left out; a chart without the rest says `no data`. No panics.
//!
//! **Not here.** What to draw, and where the numbers come from.

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

/// A figure, and how sure it is.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Estimate {
    /// The figure, such as a median.
    pub value: f64,
    /// The ends of its interval, low and high, in the figure's unit; none if it has none.
    pub interval: Option<(f64, f64)>,
}

impl Estimate {
    /// A figure without an interval.
    pub fn exact(value: f64) -> Self {
        Self { value, interval: None }
    }

    pub fn between(value: f64, low: f64, high: f64) -> Self {
        Self { value, interval: Some((low, high)) }
    }

    /// The interval, if both ends have a place on `axis`.
    fn span(&self, axis: &Axis) -> Option<(f64, f64)> {
        self.interval.filter(|(low, high)| axis.takes(*low) && axis.takes(*high))
    }

    fn values(&self) -> impl Iterator<Item = f64> {
        let (low, high) = self.interval.unwrap_or((self.value, self.value));
        [self.value, low, high].into_iter()
    }

    /// `0.88 (0.85–0.92)`, in the unit of `axis`.
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
