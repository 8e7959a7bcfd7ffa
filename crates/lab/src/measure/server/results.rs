//! Requests and latency in the output of a load generator.
//!
//! **What.** The forms of redis-benchmark (with `-q` and `--csv`, too), wrk, pgbench, memtier and
//! ab are known; a [`Pattern`] reads others. Of several results in one output (redis-benchmark's
//! SET and GET) the figure is their mean.

use regex_lite::Regex;

/// None: not in the output.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Results {
    pub operations_per_s: Option<f64>,
    pub p50_s: Option<f64>,
    pub p99_s: Option<f64>,
    pub p999_s: Option<f64>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Field {
    Operations,
    P50,
    P99,
    P999,
}

/// `NAME=REGEX`: the first group is the figure, operations in a second, or latency in milliseconds.
#[derive(Clone, Debug)]
pub struct Pattern {
    field: Field,
    regex: Regex,
    text: String,
}

impl Pattern {
    /// The pattern's figure.
    pub fn figure(&self, results: &Results) -> Option<f64> {
        match self.field {
            Field::Operations => results.operations_per_s,
            Field::P50 => results.p50_s,
            Field::P99 => results.p99_s,
            Field::P999 => results.p999_s,
        }
    }

    /// As it was given.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// Error: what is wrong with `text`.
    pub fn parse(text: &str) -> Result<Self, String> {
        let (name, regex) = text.split_once('=').unwrap_or((text, ""));
        let field = match name {
            "ops" => Field::Operations,
            "p50" => Field::P50,
            "p99" => Field::P99,
            "p999" => Field::P999,
            _ => return Err(format!("`{name}` is no figure; give ops, p50, p99 or p999, as in 'ops=^RPS: ([0-9.]+)'")),
        };
        let regex = Regex::new(&format!("(?m){regex}")).map_err(|e| format!("`{regex}` is no pattern: {e}"))?;
        if regex.captures_len() < 2 {
            return Err(format!(
                "`{name}={}` has no group ( ) for the number",
                &text[name.len()..].trim_start_matches('=')
            ));
        }
        Ok(Self { field, regex, text: text.to_owned() })
    }
}

/// A pattern's figure replaces that of a known form.
pub fn of(output: &str, patterns: &[Pattern]) -> Results {
    // Progress lines end with a carriage return.
    let output = output.replace('\r', "\n");
    let mut results = known(&output);
    for pattern in patterns {
        let number = |found: regex_lite::Captures<'_>| {
            let number = found.get(1)?.as_str().replace(',', "").parse::<f64>().ok();
            number.filter(|number| number.is_finite() && *number >= 0.0)
        };
        let found = mean_of(pattern.regex.captures_iter(&output).filter_map(number));
        let milliseconds = found.map(|ms| ms / 1e3);
        match pattern.field {
            Field::Operations => results.operations_per_s = found,
            Field::P50 => results.p50_s = milliseconds,
            Field::P99 => results.p99_s = milliseconds,
            Field::P999 => results.p999_s = milliseconds,
        }
    }
    results
}

/// The mean of each figure over several outputs.
pub fn mean(all: impl Iterator<Item = Results>) -> Results {
    let all: Vec<Results> = all.collect();
    let of = |field: fn(&Results) -> Option<f64>| mean_of(all.iter().filter_map(field));
    Results {
        operations_per_s: of(|r| r.operations_per_s),
        p50_s: of(|r| r.p50_s),
        p99_s: of(|r| r.p99_s),
        p999_s: of(|r| r.p999_s),
    }
}

fn mean_of(values: impl Iterator<Item = f64>) -> Option<f64> {
    let values: Vec<f64> = values.collect();
    (!values.is_empty()).then(|| values.iter().sum::<f64>() / values.len() as f64)
}

fn known(output: &str) -> Results {
    let forms = [redis, redis_quiet, redis_csv, memtier, wrk, pgbench, ab];
    let found = forms.iter().map(|form| form(output));
    found.into_iter().find(|results| *results != Results::default()).unwrap_or_default()
}

/// `throughput summary: 1.00 requests per second`, and a table below with heads.
fn redis(output: &str) -> Results {
    let mut each = Vec::new();
    let mut lines = output.lines();
    while let Some(line) = lines.next() {
        let Some(rest) = line.trim().strip_prefix("throughput summary: ") else { continue };
        let mut one = Results { operations_per_s: first(rest), ..Results::default() };
        let heads = lines.find(|line| line.contains("p50")).unwrap_or_default();
        let values = lines.next().unwrap_or_default();
        for (head, value) in heads.split_whitespace().zip(values.split_whitespace()) {
            set(&mut one, head, value.parse().ok().map(|ms: f64| ms / 1e3));
        }
        each.push(one);
    }
    mean(each.into_iter())
}

/// `SET: 1.00 requests per second, p50=1.00 msec`.
fn redis_quiet(output: &str) -> Results {
    let lines = output.lines().filter_map(|line| {
        let (before, after) = line.split_once(" requests per second")?;
        let operations_per_s = Some(before.rsplit_once(": ")?.1.parse().ok()?);
        let p50_s = after.split_once("p50=").and_then(|(_, rest)| first(rest)).map(|ms| ms / 1e3);
        // A line of progress has no test's name at its end.
        Some(Results { operations_per_s, p50_s, ..Results::default() })
    });
    mean(lines)
}

/// `"test","rps",…,"p50_latency_ms",…` above `"SET","1.00",…`.
fn redis_csv(output: &str) -> Results {
    let mut lines = output.lines().skip_while(|line| !line.starts_with("\"test\",\"rps\""));
    let cells = |line: &str| line.split(',').map(|cell| cell.trim_matches('"').to_owned()).collect::<Vec<_>>();
    let heads = cells(lines.next().unwrap_or_default());
    let rows = lines.filter(|line| line.starts_with('"')).map(|line| {
        let mut one = Results::default();
        for (head, value) in heads.iter().zip(cells(line)) {
            let value = value.parse::<f64>().ok();
            match head.strip_suffix("_latency_ms") {
                Some(head) => set(&mut one, head, value.map(|ms| ms / 1e3)),
                None if head == "rps" => one.operations_per_s = value,
                None => {}
            }
        }
        one
    });
    mean(rows)
}

/// A table with the heads `Ops/sec` and `p50 Latency`, whose last row is `Totals`.
fn memtier(output: &str) -> Results {
    let heads = output.lines().find(|line| line.contains("Ops/sec")).unwrap_or_default();
    let totals = output.lines().find_map(|line| line.strip_prefix("Totals")).unwrap_or_default();
    let heads: Vec<&str> = heads.split("  ").map(str::trim).filter(|head| !head.is_empty()).skip(1).collect();
    let mut one = Results::default();
    for (head, value) in heads.iter().zip(totals.split_whitespace()) {
        let value = value.parse::<f64>().ok();
        match head.strip_suffix(" Latency") {
            Some(head) => set(&mut one, head, value.map(|ms| ms / 1e3)),
            None if *head == "Ops/sec" => one.operations_per_s = value,
            None => {}
        }
    }
    one
}

/// `Requests/sec: 1.00`, and with `--latency` lines such as `99%  1.20ms`.
fn wrk(output: &str) -> Results {
    with_percentiles(output, "Requests/sec:", with_unit)
}

/// `tps = 1.00 (without initial connection time)`. It prints no percentiles.
fn pgbench(output: &str) -> Results {
    Results { operations_per_s: after(output, "tps = ").and_then(first), ..Results::default() }
}

/// `Requests per second:    1.00 [#/sec] (mean)`, and lines such as `  99%  12` in milliseconds.
fn ab(output: &str) -> Results {
    with_percentiles(output, "Requests per second:", |ms| Some(ms.parse::<f64>().ok()? / 1e3))
}

/// Requests behind `head`, and latency in lines of a percentage and a time.
fn with_percentiles(output: &str, head: &str, seconds: impl Fn(&str) -> Option<f64>) -> Results {
    let operations_per_s = after(output, head).and_then(first);
    let mut one = Results { operations_per_s, ..Results::default() };
    for line in output.lines().filter(|_| operations_per_s.is_some()) {
        let mut words = line.split_whitespace();
        if let (Some(share), Some(time), None) = (words.next(), words.next(), words.next())
            && let Some(share) = share.strip_suffix('%')
            && let Ok(share) = share.parse::<f64>()
        {
            set(&mut one, &format!("p{share}"), seconds(time));
        }
    }
    one
}

fn set(results: &mut Results, head: &str, seconds: Option<f64>) {
    match head {
        "p50" => results.p50_s = seconds,
        "p99" => results.p99_s = seconds,
        "p99.9" => results.p999_s = seconds,
        _ => {}
    }
}

/// The last line with `start`, behind it.
fn after<'a>(output: &'a str, start: &str) -> Option<&'a str> {
    output.lines().filter_map(|line| line.trim().strip_prefix(start)).next_back()
}

fn first(text: &str) -> Option<f64> {
    text.split_whitespace().next()?.trim_end_matches(',').parse().ok()
}

/// `635.00us`, `1.20ms`, `2.00s`, `1.50m`.
fn with_unit(text: &str) -> Option<f64> {
    let digits = text.trim_end_matches(|c: char| c.is_ascii_alphabetic());
    let scale = match &text[digits.len()..] {
        "us" => 1e-6,
        "ms" => 1e-3,
        "s" => 1.0,
        "m" => 60.0,
        _ => return None,
    };
    digits.parse::<f64>().ok().map(|number| number * scale)
}

#[cfg(test)]
mod tests;
