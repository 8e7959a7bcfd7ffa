//! The heap's size over a run (TEMERAIRE §6.1, docs/empirical.md).

use std::f64::consts::TAU;

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Schedule {
    Steady,
    Diurnal,
    Spikes,
    Ramp,
    Drop,
}

const DAYS: f64 = 2.0;
/// In a run, and their part of the period.
const SPIKES: f64 = 4.0;
const SPIKE_PART: f64 = 0.1;

impl Schedule {
    pub const ALL: [(&'static str, Self); 5] = [
        ("steady", Self::Steady),
        ("diurnal", Self::Diurnal),
        ("spikes", Self::Spikes),
        ("ramp", Self::Ramp),
        ("drop", Self::Drop),
    ];

    /// `over`: the passed part of the run.
    pub fn at(self, over: f64) -> f64 {
        let over = over.clamp(0.0, 1.0);
        match self {
            Self::Steady => 1.0,
            Self::Diurnal => 0.75 - 0.25 * (TAU * DAYS * over).cos(),
            Self::Spikes => {
                let since = (over * SPIKES).fract();
                let middle = (since - 0.5).abs() < SPIKE_PART / 2.0;
                if middle { 2.0 } else { 1.0 }
            }
            Self::Ramp if over <= 0.5 => 0.1 + 1.8 * over,
            Self::Ramp => 1.0 - 1.4 * (over - 0.5),
            Self::Drop => {
                if over < 0.5 {
                    1.0
                } else {
                    0.5
                }
            }
        }
    }

    pub fn peak(self) -> f64 {
        if self == Self::Spikes { 2.0 } else { 1.0 }
    }

    pub fn mean(self) -> f64 {
        match self {
            Self::Steady => 1.0,
            Self::Diurnal => 0.75,
            Self::Spikes => 1.0 + SPIKE_PART,
            Self::Ramp => 0.5 * (0.1 + 1.0) / 2.0 + 0.5 * (1.0 + 0.3) / 2.0,
            Self::Drop => 0.75,
        }
    }
}

#[cfg(test)]
mod tests;
