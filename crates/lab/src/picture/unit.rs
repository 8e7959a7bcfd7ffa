//! Units of numbers: bytes in powers of 1024, the rest in powers of 1000.

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unit {
    Ratio,
    /// In percent.
    Part,
    Seconds,
    Bytes,
    Count,
}

impl Unit {
    fn steps(self) -> &'static [(f64, &'static str)] {
        const KIB: f64 = 1024.0;
        match self {
            Self::Ratio => &[(1.0, "")],
            Self::Part => &[(0.01, "%")],
            Self::Seconds => &[(1.0, "s"), (1e-3, "ms"), (1e-6, "µs"), (1e-9, "ns")],
            Self::Bytes => &[
                (KIB * KIB * KIB * KIB, "TiB"),
                (KIB * KIB * KIB, "GiB"),
                (KIB * KIB, "MiB"),
                (KIB, "KiB"),
                (1.0, "B"),
            ],
            Self::Count => &[(1e9, "G"), (1e6, "M"), (1e3, "k"), (1.0, "")],
        }
    }

    pub fn step(self, value: f64) -> (f64, &'static str) {
        let steps = self.steps();
        // 0.3 / 0.1 is not quite 3.
        let found = steps.iter().find(|(factor, _)| value.abs() >= factor * (1.0 - 1e-8));
        match found {
            Some(step) => *step,
            None if value == 0.0 => match self {
                Self::Seconds => steps[0],
                _ => steps[steps.len() - 1],
            },
            None => steps[steps.len() - 1],
        }
    }

    /// `12.3 MiB`, `0.88`, `1.50 s`.
    pub fn write(self, value: f64) -> String {
        if !value.is_finite() {
            return "–".to_owned();
        }
        let (factor, name) = self.step(value);
        let scaled = value / factor;
        let whole = matches!((self, name), (Self::Count, "") | (Self::Bytes, "B")) && scaled.fract() == 0.0;
        let digits = if whole { format!("{scaled}") } else { three_digits(scaled) };
        joined(&digits, name)
    }

    /// `10 µs`, `64 KiB`, `0.5`.
    pub fn write_round(self, value: f64) -> String {
        let (factor, name) = self.step(value);
        joined(&shortest(value / factor), name)
    }
}

fn joined(digits: &str, unit: &str) -> String {
    if unit.is_empty() { digits.to_owned() } else { format!("{digits} {unit}") }
}

pub fn three_digits(value: f64) -> String {
    let decimals = match value.abs() {
        v if v >= 99.95 => 0,
        v if v >= 9.995 => 1,
        v if v >= 0.0995 || v == 0.0 => 2,
        _ => 3,
    };
    format!("{value:.decimals$}")
}

fn shortest(value: f64) -> String {
    // Drops a division's rest: 2.0000000000000004 is 2.
    let rounded: f64 = format!("{value:.11e}").parse().unwrap_or(value);
    format!("{}", rounded + 0.0)
}
