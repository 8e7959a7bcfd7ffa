//! Lines of text for a screen.

use super::sample::{One, Process, Sample};
use crate::terminal::{plain, wrap};
use craton_inspect::{ClassRow, Row};
use craton_lab::format::{bytes, columns, count, plural};
use std::time::Duration;

const LEAST: (usize, usize) = (60, 15);
const HALF: usize = 38;
const KEYS: &str = ". q quit, s sort, r reverse";
const KEYS_OF_ONE: &str = ". q quit, s sort, r reverse, w who, space";

#[derive(Default)]
pub struct Order {
    column: usize,
    is_ascending: bool,
}

impl Order {
    pub fn next(&mut self) {
        self.column += 1;
    }

    pub fn reverse(&mut self) {
        self.is_ascending = !self.is_ascending;
    }

    fn sort<T>(&self, rows: &mut [T], by: &[fn(&T) -> u64]) {
        let by = by[self.column % by.len()];
        rows.sort_by_key(|row| std::cmp::Reverse(by(row)));
        if self.is_ascending {
            rows.reverse();
        }
    }
}

/// All lines as they are, for scripts; keys and rates need a terminal.
pub fn once(now: &Sample) -> Vec<String> {
    let order = Order::default();
    match now {
        Sample::One(now) => one(now, None, &order, ""),
        Sample::All { all, .. } => list(all, &[], Duration::ZERO, &order, ""),
    }
}

/// At most `height` lines of at most `width` columns; `before` is for rates.
pub fn lines(now: &Sample, before: Option<&Sample>, order: &Order, width: usize, height: usize) -> Vec<String> {
    if width < LEAST.0 || height < LEAST.1 {
        let text = format!(
            "The terminal has {width}x{height}. craton top needs {}x{}: enlarge it, or use craton get PID.",
            LEAST.0, LEAST.1
        );
        return wrap(&text, width.max(1)).lines().take(height).map(|line| cut(line, width)).collect();
    }
    let all = match (now, before) {
        (Sample::One(now), Some(Sample::One(before))) => one(now, Some(before.as_ref()), order, KEYS_OF_ONE),
        (Sample::One(now), _) => one(now, None, order, KEYS_OF_ONE),
        (Sample::All { at, all }, Some(Sample::All { at: was, all: before })) => {
            list(all, before, at.duration_since(*was), order, KEYS)
        }
        (Sample::All { all, .. }, _) => list(all, &[], Duration::ZERO, order, KEYS),
    };
    all.iter().take(height).map(|line| cut(line, width)).collect()
}

fn cut(line: &str, width: usize) -> String {
    line.chars().take(width).collect()
}

/// In a second; `-` without time between the samples.
fn rate(now: u64, before: u64, time: Duration) -> String {
    match time.is_zero() {
        true => "-".to_owned(),
        false => count((now.saturating_sub(before) as f64 / time.as_secs_f64()).round() as u64),
    }
}

fn list(all: &[Process], before: &[Process], time: Duration, order: &Order, keys: &str) -> Vec<String> {
    let mut all: Vec<&Process> = all.iter().collect();
    order.sort(&mut all, &[|p| p.rss_bytes, |p| p.page.heap_bytes(), |p| p.page.number("refills"), |p| p.pid.into()]);
    let head =
        ["pid", "program", "RSS", "heap in use", "heap backed", "batches/s", "limit"].map(str::to_owned).to_vec();
    let row = |p: &&Process| {
        let was = before.iter().find(|was| was.pid == p.pid);
        let refills = p.page.number("refills");
        let limit = p.page.number("memory_limit_bytes");
        vec![
            p.pid.to_string(),
            plain(&p.page.exe),
            bytes(p.rss_bytes),
            bytes(p.page.heap_bytes()),
            bytes(p.page.number("heap_backed_bytes") + p.page.number("huge_bytes")),
            was.map_or("-".to_owned(), |was| rate(refills, was.page.number("refills"), time)),
            if limit > 0 { bytes(limit) } else { "-".to_owned() },
        ]
    };
    let rows: Vec<Vec<String>> = std::iter::once(head).chain(all.iter().map(row)).collect();
    let mut lines = vec![format!("craton top: {} with libcraton.so{keys}", plural(all.len() as u64, "process"))];
    lines.push(String::new());
    lines.extend(columns(&rows, &[1]).iter().map(|row| row.join("  ")));
    if all.is_empty() {
        lines.push("none: start a program by `craton run -- CMD`; only its user or root may see it".to_owned());
    }
    lines
}

fn one(now: &One, before: Option<&One>, order: &Order, keys: &str) -> Vec<String> {
    let (page, ledger) = (&now.page, &now.ledger);
    let number = |name: &str| page.number(name);
    let limit = |name: &str| if number(name) > 0 { bytes(number(name)) } else { "none".to_owned() };
    let heap = ledger.heap_bytes;
    let mut lines = vec![
        format!("process {} ({}), {}{keys}", now.pid, plain(&page.exe), plural(now.threads, "thread")),
        format!(
            "RSS {}  heap {}  not heap {}",
            bytes(ledger.rss_bytes),
            bytes(heap),
            bytes(ledger.rss_bytes.saturating_sub(heap))
        ),
        format!("soft limit {}, hard limit {}", limit("soft_limit_bytes"), limit("hard_limit_bytes")),
    ];
    let time = before.map_or(Duration::ZERO, |before| now.at.duration_since(before.at));
    let per_second = |name: &str| {
        let was = before.map_or(0, |before| before.page.number(name));
        rate(number(name), was, time)
    };
    lines.push(format!(
        "per second: {} batches, {} large objects, {} huge; hugepages: {} whole, {} broken",
        per_second("refills"),
        per_second("large_allocs"),
        per_second("huge_allocs"),
        count(number("whole_hugepages")),
        count(number("broken_hugepages"))
    ));
    lines.push(String::new());
    lines.extend(ledger_lines(&ledger.heap, &ledger.rest));
    lines.push(String::new());
    match &now.holders {
        Some(holders) => lines.extend(holders.iter().map(|line| plain(line))),
        None => lines.extend(class_lines(&ledger.classes, order)),
    }
    lines
}

/// Rows that have bytes, the larger first.
fn ledger_lines(heap: &[Row], rest: &[Row]) -> Vec<String> {
    let column = |title: &str, rows: &[Row]| {
        let mut rows: Vec<&Row> = rows.iter().filter(|row| row.bytes > 0).collect();
        rows.sort_by_key(|row| std::cmp::Reverse(row.bytes));
        let name = |row: &Row| row.name.trim_end_matches("_bytes").replace('_', " ");
        let line = |row: &&Row| format!("  {:<20}{:>12}", name(row), bytes(row.bytes));
        std::iter::once(title.to_owned()).chain(rows.iter().map(line)).collect::<Vec<_>>()
    };
    let (left, right) = (column("heap", heap), column("not the heap", rest));
    let cell = |column: &[String], i: usize| column.get(i).cloned().unwrap_or_default();
    (0..left.len().max(right.len())).map(|i| format!("{:<HALF$}{}", cell(&left, i), cell(&right, i))).collect()
}

fn class_lines(classes: &[ClassRow], order: &Order) -> Vec<String> {
    let mut classes = classes.to_vec();
    let by: [fn(&ClassRow) -> u64; 4] = [|c| c.memory_bytes, |c| c.live, |c| c.free, |c| c.object_bytes];
    order.sort(&mut classes, &by);
    let head = ["size class", "slabs", "live", "in caches", "free", "memory"].map(str::to_owned).to_vec();
    let row = |c: &ClassRow| {
        let numbers = [c.object_bytes, c.slabs, c.live, c.in_caches, c.free].map(count);
        numbers.into_iter().chain([bytes(c.memory_bytes)]).collect()
    };
    let rows: Vec<Vec<String>> = std::iter::once(head).chain(classes.iter().map(row)).collect();
    columns(&rows, &[]).iter().map(|row| row.join("  ")).collect()
}

#[cfg(test)]
mod tests;
