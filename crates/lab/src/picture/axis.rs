//! Axes, with ticks at round numbers.
//!
//! A [`Ruler`] uses the densest set of round numbers whose labels fit. The axis reaches from tick
//! to tick around the data; one of powers of two may end between ticks. Values that are not finite,
//! beyond 10^30, or on a logarithmic axis not above 10^-30, are not on it.

use super::text;
use super::unit::Unit;

pub const TICK_SIZE: f64 = 11.0;
const MOST_REACH: f64 = 2.5;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scale {
    Linear,
    Log,
    Log2,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Axis {
    pub label: String,
    pub unit: Unit,
    pub scale: Scale,
}

impl Axis {
    pub fn linear(label: impl Into<String>, unit: Unit) -> Self {
        Self { label: label.into(), unit, scale: Scale::Linear }
    }

    pub fn log(label: impl Into<String>, unit: Unit) -> Self {
        Self { label: label.into(), unit, scale: Scale::Log }
    }

    pub fn log2(label: impl Into<String>, unit: Unit) -> Self {
        Self { label: label.into(), unit, scale: Scale::Log2 }
    }

    pub fn takes(&self, value: f64) -> bool {
        value.abs() < 1e30 && (self.scale == Scale::Linear || value > 1e-30)
    }
}

#[derive(Clone, Debug, PartialEq)]
pub struct Tick {
    pub value: f64,
    pub label: String,
}

#[derive(Clone, Debug)]
pub struct Ruler {
    pub low: f64,
    pub high: f64,
    pub ticks: Vec<Tick>,
    pub label: String,
    log: bool,
    from: f64,
    to: f64,
}

impl Ruler {
    /// From pixel `from` to `to`; `level`: labels are side by side.
    pub fn new(axis: &Axis, values: impl IntoIterator<Item = f64>, from: f64, to: f64, level: bool) -> Option<Self> {
        let (mut low, mut high) = (f64::INFINITY, f64::NEG_INFINITY);
        for value in values.into_iter().filter(|v| axis.takes(*v)) {
            low = low.min(value);
            high = high.max(value);
        }
        if low > high {
            return None;
        }
        let length = (to - from).abs();
        let log = axis.scale != Scale::Linear;
        let (factor, unit) = if log { (1.0, "") } else { axis.unit.step(low.abs().max(high.abs())) };
        let (low, high) = if log { apart_log(low, high) } else { apart(low / factor, high / factor) };
        let sets = if log { log_sets(axis.scale, low, high) } else { linear_sets(low, high) };
        let labelled = |set: &Vec<f64>| -> Vec<Tick> {
            let label = |v: f64| if log { axis.unit.write_round(v) } else { Unit::Ratio.write_round(v) };
            set.iter().map(|v| Tick { value: v * factor, label: label(*v) }).collect()
        };
        let mut choices = sets.iter().map(labelled).filter(|ticks| ticks.len() > 1).collect::<Vec<_>>();
        if choices.is_empty() {
            return None;
        }
        let two = (axis.scale == Scale::Log2).then(|| powers_of_two(low, high));
        let ends = |ticks: &[Tick]| match two {
            Some((first, last)) => (2f64.powi(first), 2f64.powi(last)),
            None => (ticks[0].value, ticks[ticks.len() - 1].value),
        };
        // Sparse sets reach far beyond the data: rather omit labels.
        let near = |ticks: &[Tick]| {
            let (first, last) = ends(ticks);
            let reach = share(log, low * factor, high * factor, last) - share(log, low * factor, high * factor, first);
            reach < MOST_REACH
        };
        let place = choices.iter().position(|ticks| near(ticks) && fit(ticks, log, ends(ticks), length, level));
        let mut ticks = choices.swap_remove(place.unwrap_or(0));
        let (low, high) = ends(&ticks);
        if place.is_none() {
            thin(&mut ticks, log, (low, high), length, level);
        }
        let label = if unit.is_empty() || axis.label.is_empty() {
            format!("{}{unit}", axis.label)
        } else {
            format!("{} ({unit})", axis.label)
        };
        Some(Self { low, high, ticks, label, log, from, to })
    }

    pub fn at(&self, value: f64) -> f64 {
        let part = share(self.log, self.low, self.high, value).clamp(0.0, 1.0);
        self.from + (self.to - self.from) * part
    }

    pub fn holds(&self, value: f64) -> bool {
        value >= self.low && value <= self.high
    }
}

fn share(log: bool, low: f64, high: f64, value: f64) -> f64 {
    if log { (value / low).ln() / (high / low).ln() } else { (value - low) / (high - low) }
}

fn apart(low: f64, high: f64) -> (f64, f64) {
    let least = low.abs().max(high.abs()) * 1e-3;
    match high - low {
        _ if low == 0.0 && high == 0.0 => (0.0, 1.0),
        gap if gap < least => (low - (least - gap) / 2.0, high + (least - gap) / 2.0),
        _ => (low, high),
    }
}

fn apart_log(low: f64, high: f64) -> (f64, f64) {
    if high / low < 1.01 { (low / 1.01, high * 1.01) } else { (low, high) }
}

fn linear_sets(low: f64, high: f64) -> Vec<Vec<f64>> {
    let power = (high - low).log10().floor() as i32;
    let mut sets = Vec::new();
    for exponent in power - 2..=power + 2 {
        for mantissa in [1.0, 2.0, 5.0] {
            let set = multiples(mantissa, exponent, low, high);
            if set.len() <= 40 {
                sets.push(set);
            }
        }
    }
    sets
}

/// `mantissa` · 10^`exponent` each; empty if too many.
fn multiples(mantissa: f64, exponent: i32, low: f64, high: f64) -> Vec<f64> {
    let step = mantissa * 10f64.powi(exponent);
    // Rounding must not skip a multiple.
    let (first, last) = ((low / step + 1e-9).floor(), (high / step - 1e-9).ceil());
    if last - first > 60.0 {
        return Vec::new();
    }
    (0..=(last - first) as usize).map(|i| decimal((first + i as f64) * mantissa, exponent)).collect()
}

/// Rounded once: 3 · 10^-1 is 0.3.
fn decimal(count: f64, exponent: i32) -> f64 {
    if exponent < 0 { count / 10f64.powi(-exponent) } else { count * 10f64.powi(exponent) }
}

fn powers_of_two(low: f64, high: f64) -> (i32, i32) {
    let first = (low.log2() + 1e-9).floor() as i32;
    (first, ((high.log2() - 1e-9).ceil() as i32).max(first + 1))
}

fn log_sets(scale: Scale, low: f64, high: f64) -> Vec<Vec<f64>> {
    let mut sets = Vec::new();
    if scale == Scale::Log2 {
        let (first, last) = powers_of_two(low, high);
        for stride in [1, 2, 3, 4, 5, 6, 8, 10, 20, 40, 100, 200] {
            sets.push((first..=last).step_by(stride).map(|e| 2f64.powi(e)).collect());
        }
        return sets;
    }
    if high / low < 2.5 {
        sets = linear_sets(low, high);
        sets.retain(|set| set.first().is_some_and(|first| *first > 0.0));
    }
    const MANTISSAS: [&[f64]; 5] =
        [&[1.0, 1.5, 2.0, 3.0, 4.0, 5.0, 7.0], &[1.0, 1.5, 2.0, 3.0, 5.0, 7.0], &[1.0, 2.0, 5.0], &[1.0, 3.0], &[1.0]];
    let (first, last) = (low.log10().floor() as i32, high.log10().ceil() as i32);
    for mantissas in MANTISSAS {
        let all = (first - 1..=last + 1).flat_map(|e| mantissas.iter().map(move |m| decimal(*m, e))).collect();
        sets.push(enclosing(all, low, high));
    }
    for stride in [2, 3, 6, 12, 24, 48, 96, 300] {
        let first = first.div_euclid(stride) * stride;
        let all = (first..=last + stride).step_by(stride as usize).map(|e| decimal(1.0, e)).collect();
        sets.push(enclosing(all, low, high));
    }
    sets
}

fn enclosing(all: Vec<f64>, low: f64, high: f64) -> Vec<f64> {
    let first = all.iter().rposition(|v| *v <= low * (1.0 + 1e-9)).unwrap_or(0);
    let last = all.iter().position(|v| *v >= high * (1.0 - 1e-9)).unwrap_or(all.len().saturating_sub(1));
    all.get(first..=last).map(<[f64]>::to_vec).unwrap_or_default()
}

fn fit(ticks: &[Tick], log: bool, ends: (f64, f64), length: f64, level: bool) -> bool {
    ticks.windows(2).all(|pair| apart_by(&pair[0], &pair[1], log, ends, level, length))
}

/// Removes ticks that touch one before.
fn thin(ticks: &mut Vec<Tick>, log: bool, ends: (f64, f64), length: f64, level: bool) {
    let mut kept: Vec<Tick> = Vec::new();
    for tick in ticks.drain(..) {
        if kept.last().is_none_or(|last| apart_by(last, &tick, log, ends, level, length)) {
            kept.push(tick);
        }
    }
    *ticks = kept;
}

fn apart_by(a: &Tick, b: &Tick, log: bool, (low, high): (f64, f64), level: bool, length: f64) -> bool {
    let half = |tick: &Tick| {
        if level { text::width(&tick.label, TICK_SIZE, false).max(24.0) / 2.0 + 8.0 } else { 15.0 }
    };
    let at = |tick: &Tick| share(log, low, high, tick.value) * length;
    at(b) - at(a) >= half(a) + half(b)
}
