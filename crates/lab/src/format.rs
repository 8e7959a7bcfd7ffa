//! Numbers and tables for people.
//!
//! **Units.** Bytes in powers of 1024, seconds by size, counts in groups of three digits.

/// `bytes` in the largest unit that leaves a whole digit, such as `1.5 MiB`.
pub fn bytes(bytes: u64) -> String {
    const UNITS: [&str; 5] = ["KiB", "MiB", "GiB", "TiB", "PiB"];
    if bytes < 1024 {
        return format!("{bytes} B");
    }
    let mut value = bytes as f64 / 1024.0;
    let mut unit = 0;
    // What would be rounded to 1024.0 belongs to the next unit.
    while value >= 1023.95 && unit + 1 < UNITS.len() {
        value /= 1024.0;
        unit += 1;
    }
    format!("{value:.1} {}", UNITS[unit])
}

/// `seconds` with three or four digits, such as `12.35 ms`.
pub fn seconds(seconds: f64) -> String {
    if seconds < 0.001 {
        format!("{:.0} us", seconds * 1e6)
    } else if seconds < 1.0 {
        format!("{:.2} ms", seconds * 1e3)
    } else {
        format!("{seconds:.3} s")
    }
}

/// `count` in groups of three digits, such as `1,234,567`.
pub fn count(count: u64) -> String {
    let digits = count.to_string();
    let mut out = String::new();
    for (i, digit) in digits.chars().enumerate() {
        if i > 0 && (digits.len() - i).is_multiple_of(3) {
            out.push(',');
        }
        out.push(digit);
    }
    out
}

/// Rows of cells, padded to the width of their column; the columns that `left` names are aligned left, others right.
pub fn columns(rows: &[Vec<String>], left: &[usize]) -> Vec<Vec<String>> {
    let width = |c: usize| rows.iter().filter_map(|r| r.get(c)).map(|cell| cell.chars().count()).max().unwrap_or(0);
    let widths: Vec<usize> = (0..rows.iter().map(Vec::len).max().unwrap_or(0)).map(width).collect();
    let pad = |(c, cell): (usize, &String)| match left.contains(&c) {
        true => format!("{cell:<0$}", widths[c]),
        false => format!("{cell:>0$}", widths[c]),
    };
    rows.iter().map(|row| row.iter().enumerate().map(pad).collect()).collect()
}

/// A table of [`columns`] as text, two spaces between them.
pub fn table(rows: &[Vec<String>], left: &[usize]) -> String {
    columns(rows, left).iter().map(|row| format!("{}\n", row.join("  ").trim_end())).collect()
}

#[cfg(test)]
mod tests;
