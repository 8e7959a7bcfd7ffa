//! `UNSAFE.md`: how much is unsafe, where, and why there.
//!
//! **What.** The ledger is written from the sources: a row a product file with unsafe code, with the reason that the
//! file gives for itself in a module comment, `//! **Unsafe.** …` (the paragraph). Test code is counted only.

use super::Complaint;
use super::files::{self, File};
use super::lex::Source;
use super::unsafety::{self, Site};
use std::collections::BTreeMap;
use std::fmt::Write;

/// Where the ledger lies.
pub const PATH: &str = "UNSAFE.md";

const MARK: &str = "**Unsafe.**";

/// What the ledger counts in a file.
#[derive(Clone, Copy, Default)]
struct Count {
    blocks: usize,
    impls: usize,
    fns: usize,
    others: usize,
}

impl Count {
    fn add(&mut self, site: Site) {
        match site {
            Site::Block => self.blocks += 1,
            Site::Impl => self.impls += 1,
            Site::Fn { .. } => self.fns += 1,
            Site::Trait | Site::Extern | Site::Attribute => self.others += 1,
        }
    }

    fn total(self) -> usize {
        self.blocks + self.impls + self.fns + self.others
    }
}

/// Complains of files that give no reason, and of a ledger that is not what [`write`] would make.
pub fn check(files: &[File]) -> Vec<Complaint> {
    let mut found = Vec::new();
    for (file, source, count) in product(files) {
        if reason(source).is_none() {
            let text = format!(
                "{} unsafe sites and no reason: say in the module comment, in a paragraph `//! {MARK} …`, why this file needs them",
                count.total()
            );
            found.push(Complaint::new(&file.path, 0, text));
        }
    }
    let ledger = files.iter().find(|f| f.path == PATH).map(|f| f.text.as_str());
    if ledger != Some(write(files).as_str()) {
        found.push(Complaint::new(PATH, 0, "not what the sources say: run `cargo xtask tidy --fix`"));
    }
    found
}

/// The ledger that belongs to these sources.
pub fn write(files: &[File]) -> String {
    let mut out = String::from(
        "# Unsafe code\n\nWritten by `cargo xtask tidy --fix` from the sources, checked by `cargo xtask tidy`.\n\
         *Other* are unsafe traits, `extern` blocks and attributes. Every site carries its own reason in place;\n\
         the line here says why the file needs any.\n\n",
    );
    let rows = product(files);
    if rows.is_empty() {
        out.push_str("There is none outside of tests.\n");
    } else {
        out.push_str("| crate | file | blocks | impls | fns | other | why |\n|---|---|---:|---:|---:|---:|---|\n");
        let mut sum = Count::default();
        for (file, source, count) in rows {
            let (owner, name) = split(&file.path);
            let why = reason(source).unwrap_or_default().replace('|', "\\|");
            let Count { blocks, impls, fns, others } = count;
            let _ = writeln!(out, "| {owner} | `{name}` | {blocks} | {impls} | {fns} | {others} | {why} |");
            sum.blocks += blocks;
            sum.impls += impls;
            sum.fns += fns;
            sum.others += others;
        }
        let Count { blocks, impls, fns, others } = sum;
        let _ = writeln!(out, "| **all** | | {blocks} | {impls} | {fns} | {others} | |");
    }
    out.push_str(&test_line(files));
    out
}

/// The product files with unsafe sites, in order.
fn product(files: &[File]) -> Vec<(&File, &Source, Count)> {
    count(files, false)
}

/// Files with unsafe sites in test code (`in_tests`) or outside of it.
fn count(files: &[File], in_tests: bool) -> Vec<(&File, &Source, Count)> {
    let mut rows = Vec::new();
    for file in files {
        let Some(source) = &file.rust else { continue };
        let all_test = files::is_test_path(&file.path);
        let mut count = Count::default();
        unsafety::sites(source)
            .into_iter()
            .filter(|(line, _)| (all_test || source.lines[*line].in_test) == in_tests)
            .for_each(|(_, site)| count.add(site));
        if count.total() > 0 {
            rows.push((file, source, count));
        }
    }
    rows
}

fn test_line(files: &[File]) -> String {
    let mut by_crate: BTreeMap<&str, usize> = BTreeMap::new();
    for (file, _, count) in count(files, true) {
        *by_crate.entry(split(&file.path).0).or_default() += count.total();
    }
    let list: Vec<String> = by_crate.iter().map(|(owner, n)| format!("{owner} {n}")).collect();
    match list.is_empty() {
        true => String::from("\nIn test code there is none.\n"),
        false => format!("\nSites in test code: {}.\n", list.join(", ")),
    }
}

/// `crates/base/src/table.rs` → (`base`, `src/table.rs`).
fn split(path: &str) -> (&str, &str) {
    let inner = path.strip_prefix("crates/").or(path.strip_prefix("tests/")).unwrap_or(path);
    inner.split_once('/').unwrap_or(("", inner))
}

/// The paragraph of the module comment behind the mark, as one line.
fn reason(source: &Source) -> Option<String> {
    let mut words: Vec<&str> = Vec::new();
    let mut inside = false;
    for line in &source.lines {
        let Some(text) = line.comment.strip_prefix("//!").map(str::trim) else { if inside { break } else { continue } };
        if let Some(start) = text.strip_prefix(MARK) {
            inside = true;
            words.extend(start.split_whitespace());
        } else if inside {
            // An empty line or the next heading ends the paragraph.
            if text.is_empty() || text.starts_with("**") {
                break;
            }
            words.extend(text.split_whitespace());
        }
    }
    (!words.is_empty()).then(|| words.join(" "))
}

#[cfg(test)]
mod tests;
