//! A product file with unsafe code says why in its head: `//! **Unsafe.** …`.

use super::files::File;
use super::lex::Source;
use super::{Complaint, is_product};
use std::fmt::Write;

const MARK: &str = "**Unsafe.**";

pub fn check(files: &[File]) -> Vec<Complaint> {
    let silent = product(files).into_iter().filter(|(_, source, _)| reason(source).is_empty());
    let text = format!("unsafe code and no reason: write in the module comment a paragraph `//! {MARK} …`");
    silent.map(|(file, ..)| Complaint::new(&file.path, 0, text.clone())).collect()
}

pub fn write(files: &[File]) -> String {
    let rows = product(files);
    let mut out = String::new();
    for (file, source, sites) in &rows {
        let _ = writeln!(out, "{sites:4}  {}  {}", file.path, reason(source));
    }
    let all: usize = rows.iter().map(|(_, _, sites)| sites).sum();
    let _ = writeln!(out, "{all:4}  in {} files", rows.len());
    out
}

fn product(files: &[File]) -> Vec<(&File, &Source, usize)> {
    let rows = files.iter().filter(|f| is_product(f)).filter_map(|f| Some((f, f.rust.as_ref()?)));
    rows.map(|(file, source)| (file, source, sites(source))).filter(|(_, _, sites)| *sites > 0).collect()
}

/// Outside of tests; a type (`unsafe fn()`) does not count.
fn sites(source: &Source) -> usize {
    let is_type = |i: usize| {
        let at = if source.is(i + 1, "extern") { i + 3 } else { i + 1 };
        source.is(at, "fn") && source.is(at + 1, "(")
    };
    let sites = source.tokens.iter().enumerate().filter(|(_, t)| t.text == "unsafe" && !source.lines[t.line].in_test);
    sites.filter(|(i, _)| !is_type(*i)).count()
}

fn reason(source: &Source) -> String {
    let comments = source.lines.iter().map_while(|line| {
        let is_head = !line.has_code || line.comment.starts_with("//!");
        is_head.then(|| line.comment.strip_prefix("//!").unwrap_or_default().trim())
    });
    let mut paragraph = comments.skip_while(|text| !text.starts_with(MARK)).map(|text| text.trim_start_matches(MARK));
    let first = paragraph.next().unwrap_or_default();
    let rest = paragraph.take_while(|text| !text.is_empty() && !text.starts_with("**"));
    [first].into_iter().chain(rest).collect::<Vec<_>>().join(" ").trim().to_owned()
}

#[cfg(test)]
mod tests;
