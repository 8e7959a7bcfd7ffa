//! Numbers and tables for people.

use std::ops::Range;

/// `1.5 MiB`.
pub fn bytes(bytes: u64) -> String {
    const UNITS: [&str; 5] = ["KiB", "MiB", "GiB", "TiB", "PiB"];
    if bytes < 1024 {
        return format!("{bytes} B");
    }
    let mut value = bytes as f64 / 1024.0;
    let mut unit = 0;
    // 1024.0 belongs to the next unit.
    while value >= 1023.95 && unit + 1 < UNITS.len() {
        value /= 1024.0;
        unit += 1;
    }
    format!("{value:.1} {}", UNITS[unit])
}

/// `12.35 ms`.
pub fn seconds(seconds: f64) -> String {
    if seconds < 0.001 {
        format!("{:.0} µs", seconds * 1e6)
    } else if seconds < 1.0 {
        format!("{:.2} ms", seconds * 1e3)
    } else {
        format!("{seconds:.3} s")
    }
}

/// `1,234,567`.
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

/// `1 object`, `2 objects`.
pub fn plural(n: u64, noun: &str) -> String {
    let end = match noun {
        _ if n == 1 => "",
        noun if noun.ends_with('s') => "es",
        _ => "s",
    };
    format!("{} {noun}{end}", count(n))
}

/// Columns not in `left` are aligned right.
pub fn columns(rows: &[Vec<String>], left: &[usize]) -> Vec<Vec<String>> {
    let width = |c: usize| rows.iter().filter_map(|r| r.get(c)).map(|cell| cell.chars().count()).max().unwrap_or(0);
    let widths: Vec<usize> = (0..rows.iter().map(Vec::len).max().unwrap_or(0)).map(width).collect();
    let pad = |(c, cell): (usize, &String)| match left.contains(&c) {
        true => format!("{cell:<0$}", widths[c]),
        false => format!("{cell:>0$}", widths[c]),
    };
    rows.iter().map(|row| row.iter().enumerate().map(pad).collect()).collect()
}

pub fn table(rows: &[Vec<String>], left: &[usize]) -> String {
    columns(rows, left).iter().map(|row| format!("{}\n", row.join("  ").trim_end())).collect()
}

pub fn stacked(rows: &[Vec<String>], left: &[usize], keys: usize, width: usize) -> String {
    let cells = columns(rows, left);
    let block = |range: Range<usize>| {
        let line = |row: &Vec<String>| {
            let cells: Vec<&str> = row.iter().take(keys).chain(&row[range.clone()]).map(String::as_str).collect();
            format!("{}\n", cells.join("  ").trim_end())
        };
        cells.iter().map(line).collect::<String>()
    };
    blocks(&cells, keys, &[], width).into_iter().map(block).collect::<Vec<_>>().join("\n")
}

/// Splits the columns behind the first `keys`; a `joined` one stays with the one before.
pub fn blocks(rows: &[Vec<String>], keys: usize, joined: &[usize], width: usize) -> Vec<Range<usize>> {
    let widths: Vec<usize> = rows.first().into_iter().flatten().map(|cell| cell.chars().count() + 2).collect();
    let starts: Vec<usize> = (keys..widths.len()).filter(|column| !joined.contains(column)).collect();
    let ends = starts.iter().skip(1).copied().chain([widths.len()]);
    let mut blocks: Vec<Range<usize>> = Vec::new();
    for (start, end) in starts.iter().copied().zip(ends) {
        let fits =
            |block: &Range<usize>| widths[..keys].iter().chain(&widths[block.start..end]).sum::<usize>() <= width + 2;
        match blocks.last_mut().filter(|block| fits(block)) {
            Some(block) => block.end = end,
            None => blocks.push(start..end),
        }
    }
    blocks
}

#[cfg(test)]
mod tests;
