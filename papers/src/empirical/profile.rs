//! A program's allocations by size; docs/empirical.md describes the files.
//!
//! **From.** TEMERAIRE §6.1: distributions sampled from a fleet. The built-in one has the shape of
//! published ones of servers.

use std::collections::BTreeMap;
use std::path::Path;

#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Row {
    /// 1 to [`MAX_SIZE`].
    pub size: u64,
    /// Per second, not negative.
    pub rate: f64,
    /// Mean, not negative; above 0 where the rate is.
    pub live: f64,
}

/// Ascending by size. Spans may have several rows of a size, with different lives.
#[derive(Clone, PartialEq, Debug)]
pub struct Profile {
    rows: Vec<Row>,
}

/// 1 TiB.
pub const MAX_SIZE: u64 = 1 << 40;
/// Sums are still exact enough.
const MAX_VALUE: f64 = 1e15;
/// One in 30 years.
const MIN_VALUE: f64 = 1e-9;
/// Numbers of rows have 16 bits.
const MAX_ROWS: usize = 1 << 16;

impl Profile {
    pub fn read(path: &Path) -> Result<Self, String> {
        let name = path.display();
        let bytes = std::fs::read(path).map_err(|e| format!("{name}: cannot read the profile: {e}"))?;
        let text = str::from_utf8(&bytes).map_err(|e| {
            let line = 1 + bytes[..e.valid_up_to()].iter().filter(|b| **b == b'\n').count();
            format!("{name}:{line}: a byte that is not UTF-8 text; save the profile as plain text")
        })?;
        Self::parse(text, &name.to_string())
    }

    pub fn parse(text: &str, name: &str) -> Result<Self, String> {
        let mut rows = BTreeMap::new();
        for (number, line) in (1..).zip(text.lines()) {
            let line = line.split('#').next().unwrap_or("").trim();
            if line.is_empty() {
                continue;
            }
            let row = Row::parse(line).map_err(|why| format!("{name}:{number}: {why}"))?;
            if let Some((first, _)) = rows.insert(row.size, (number, row)) {
                return Err(format!(
                    "{name}:{number}: size {}: has a row already in line {first}; give each size once",
                    row.size
                ));
            }
            if rows.len() > MAX_ROWS {
                return Err(format!("{name}:{number}: row {}: give at most {MAX_ROWS} sizes", rows.len()));
            }
        }
        let rows: Vec<Row> = rows.into_values().map(|(_, row)| row).collect();
        if rows.is_empty() {
            return Err(format!("{name}: no rows; give at least one: size in bytes, allocation rate, live objects"));
        }
        if rows.iter().all(|row| row.rate == 0.0) {
            return Err(format!("{name}: every allocation rate is 0; at least one has to be above"));
        }
        Ok(Self { rows })
    }

    pub fn built_in() -> Self {
        let small = (1..=16).map(|eighth| eighth * 8u64);
        let larger = (0..13).flat_map(|doubling| (9..=16).map(move |part| part << (4 + doubling)));
        let mut least = 0.0;
        let row = |(number, size): (i32, u64)| {
            let upper = share_up_to(size as f64);
            // Rounded: the last digits of powers differ between machines.
            let rate = ((upper - least) * BUILT_IN_RATE).round().max(1.0);
            least = upper;
            let lifetime_s = 2f64.powi(number * 7 % 9 - 4);
            Row { size, rate, live: rate * lifetime_s }
        };
        Self { rows: (0..).zip(small.chain(larger)).map(row).collect() }
    }

    pub(crate) fn of_rows(mut rows: Vec<Row>) -> Self {
        rows.sort_by_key(|row| row.size);
        Self { rows }
    }

    pub fn rows(&self) -> &[Row] {
        &self.rows
    }
}

const BUILT_IN_RATE: f64 = 200_000.0;

/// Log-logistic: like log-normal, with a heavier tail.
fn share_up_to(size: f64) -> f64 {
    const MEDIAN: f64 = 54.0;
    // Nine tenths are below 365 B, 99 of 100 below 2.9 KiB.
    const SHAPE: f64 = 1.15;
    1.0 / (1.0 + (MEDIAN / size).powf(SHAPE))
}

impl Row {
    fn parse(line: &str) -> Result<Self, String> {
        let columns: Vec<&str> = line.split(',').map(str::trim).collect();
        let &[size, rate, live] = columns.as_slice() else {
            return Err(format!(
                "{line:?}: not three columns between commas but {}; give size in bytes, allocation rate, live objects",
                columns.len()
            ));
        };
        let value = size.parse().ok().filter(|value| (1..=MAX_SIZE).contains(value));
        let size =
            value.ok_or_else(|| format!("size {size:?}: give a whole number of bytes from 1 to {MAX_SIZE} (1 TiB)"))?;
        let (rate, live) = (amount("allocation rate", rate)?, amount("live objects", live)?);
        if rate > 0.0 && live == 0.0 {
            return Err(format!(
                "live objects 0 at allocation rate {rate}: objects live for live / rate seconds, so give more than 0"
            ));
        }
        Ok(Self { size, rate, live })
    }
}

fn amount(name: &str, text: &str) -> Result<f64, String> {
    let value = text.parse().ok().filter(|value: &f64| *value == 0.0 || (MIN_VALUE..=MAX_VALUE).contains(value));
    value.ok_or_else(|| format!("{name} {text:?}: give 0, or a number from {MIN_VALUE:e} to {MAX_VALUE:e}"))
}

#[cfg(test)]
mod tests;
