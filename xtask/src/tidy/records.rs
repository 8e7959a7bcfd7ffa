//! The README's table of figures.

use super::files::File;
use super::generated::text;
use serde_json::Value;
use std::collections::BTreeSet;
use std::fmt::Write;
use std::io::ErrorKind;
use std::path::Path;

pub const TABLE: &str = "results/speed.md";
const RUNS: &str = "results/speed.json";

pub fn short(files: &[File]) -> Result<String, String> {
    let table = text(files, TABLE).map_err(|e| format!("{e}: `make bench` writes it"))?;
    let is_row = |line: &&str| line.starts_with('|');
    let rows = table.lines().filter(is_row).filter(|row| !row.starts_with("| debian-"));
    let rows: Vec<Vec<&str>> = rows.map(|row| row.trim_matches('|').split('|').map(str::trim).collect()).collect();
    // Behind head and rule.
    let is_empty = |column: usize| rows.iter().skip(2).all(|row| row.get(column).is_none_or(|cell| *cell == "-"));
    let columns: Vec<usize> = (0..rows.first().map_or(0, Vec::len)).filter(|column| !is_empty(*column)).collect();
    let mut out = String::new();
    for row in &rows {
        let cells: Vec<&str> = columns.iter().filter_map(|column| row.get(*column).copied()).collect();
        let _ = writeln!(out, "| {} |", cells.join(" | "));
    }
    let mut source = table.lines().filter(|line| !is_row(line) && !line.is_empty()).collect::<Vec<_>>().join(" ");
    if columns.len() < rows.first().map_or(0, Vec::len) {
        source += " Intervals take five rounds.";
    }
    let _ = write!(out, "\n{}", wrapped(&source, COLUMNS));
    Ok(out)
}

const COLUMNS: usize = 100;

fn wrapped(text: &str, columns: usize) -> String {
    let mut out = String::new();
    let mut width = 0;
    for word in text.split_whitespace() {
        let len = word.chars().count();
        if width > 0 && width + 1 + len > columns {
            out.push('\n');
            width = 0;
        } else if width > 0 {
            out.push(' ');
            width += 1;
        }
        out += word;
        width += len;
    }
    out + "\n"
}

pub fn measured(root: &Path) -> Result<Option<String>, String> {
    let text = match std::fs::read_to_string(root.join(RUNS)) {
        Err(e) if e.kind() == ErrorKind::NotFound => return Ok(None),
        read => read.map_err(|e| format!("{RUNS} cannot be read: {e}"))?,
    };
    let record = serde_json::from_str(&text).map_err(|e| format!("{RUNS} cannot be read: {e}"))?;
    Ok(Some(table(&record)))
}

fn table(record: &Value) -> String {
    let rows = record["rows"].as_array().map_or(&[][..], Vec::as_slice);
    let distinct = |key: &str| rows.iter().filter_map(|row| row[key].as_str()).collect::<BTreeSet<_>>().len();
    let rounds = rows.iter().filter_map(|row| row["run"].as_u64()).max().map_or(0, |last| last + 1);
    let failed = rows.iter().filter(|row| row["status"] != "ok").count();
    let mut out =
        String::from("| Craton compared with | time | 95 % | peak memory | 95 % |\n|---|---:|---:|---:|---:|\n");
    let ratios = record["ratios"].as_object();
    let mut names: Vec<&str> =
        ratios.into_iter().flat_map(|r| r.keys()).filter_map(|key| key.strip_prefix("time_vs_")).collect();
    names.sort_by_key(|name| (["best_peer", "virtual_best"].contains(name), *name != "glibc", *name));
    for name in names {
        let shown = match name {
            "best_peer" => "*the best of them*",
            "virtual_best" => "*whichever is best on each workload*",
            name => name,
        };
        let (time, rss) = (format!("time_vs_{name}"), format!("rss_vs_{name}"));
        let _ = writeln!(
            out,
            "| {shown} | {} | {} | {} | {} |",
            ratio(record, &time),
            interval(record, &time),
            ratio(record, &rss),
            interval(record, &rss)
        );
    }
    let machine = &record["machine"];
    let word = |value: &Value| value.as_str().unwrap_or("unknown").to_owned();
    let _ = writeln!(
        out,
        "\nBelow 1, Craton needs less: geometric means over {} workloads, {rounds} rounds; {failed} runs failed. {}, {} \
         processors, Linux {}, THP {}; commit {}; `{}`.",
        distinct("workload"),
        word(&machine["cpu"]),
        machine["cpus"],
        word(&machine["kernel"]),
        word(&machine["thp"]),
        word(&record["commit"]),
        record["command"].as_array().map_or(String::new(), |words| words
            .iter()
            .map(word)
            .collect::<Vec<_>>()
            .join(" ")),
    );
    out
}

fn ratio(record: &Value, name: &str) -> String {
    record["ratios"][name].as_f64().map_or("-".to_owned(), |ratio| format!("{ratio:.2}"))
}

fn interval(record: &Value, name: &str) -> String {
    let ends = &record["intervals"][name];
    match (ends[0].as_f64(), ends[1].as_f64()) {
        (Some(low), Some(high)) => format!("{low:.2}–{high:.2}"),
        _ => "-".to_owned(),
    }
}

#[cfg(test)]
mod tests;
