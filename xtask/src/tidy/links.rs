//! Relative links and anchors lead somewhere, and each page of the book is in its contents.

use super::Complaint;
use super::documents::is_document;
use super::files::File;
use std::collections::BTreeSet;

const CONTENTS: &str = "docs/SUMMARY.md";

pub fn check(files: &[File]) -> Vec<Complaint> {
    let mut found = Vec::new();
    let mut listed = BTreeSet::new();
    for file in files.iter().filter(|file| is_document(&file.path)) {
        for (line, link) in links(&file.text) {
            let (path, anchor) = link.split_once('#').unwrap_or((&link, ""));
            let path = if path.is_empty() { file.path.clone() } else { resolve(&file.path, path) };
            if file.path == CONTENTS {
                listed.insert(path.clone());
            }
            if let Some(text) = fault(files, &path, anchor) {
                found.push(Complaint::new(&file.path, line, format!("the link `{link}`: {text}")));
            }
        }
    }
    let pages = files.iter().filter(|file| file.path.starts_with("docs/") && file.path.ends_with(".md"));
    for page in pages.filter(|page| page.path != CONTENTS && !listed.contains(&page.path)) {
        found.push(Complaint::new(&page.path, 0, format!("not in the book: add it to {CONTENTS}")));
    }
    found
}

fn fault(files: &[File], path: &str, anchor: &str) -> Option<String> {
    let folder = format!("{}/", path.trim_end_matches('/'));
    let Some(file) = files.iter().find(|file| file.path == path) else {
        let is_folder = files.iter().any(|file| file.path.starts_with(&folder));
        return if is_folder && anchor.is_empty() { None } else { Some(format!("there is no {path}")) };
    };
    let is_there = anchor.is_empty() || anchors(&file.text).iter().any(|there| there == anchor);
    (!is_there).then(|| format!("{path} has no heading `#{anchor}`"))
}

fn links(text: &str) -> Vec<(usize, String)> {
    let mut found = Vec::new();
    for (i, line) in prose(text) {
        // Code has no links; a link's text may be code.
        for (at, _) in line.match_indices("](") {
            if line[..at].matches('`').count() % 2 == 1 {
                continue;
            }
            let Some(target) = line[at + 2..].split_once(')').map(|(target, _)| target) else { continue };
            let target = target.split(' ').next().unwrap_or_default();
            if !target.contains("://") && !target.starts_with("mailto:") {
                found.push((i, target.to_owned()));
            }
        }
    }
    found
}

fn prose(text: &str) -> impl Iterator<Item = (usize, &str)> {
    let mut in_code = false;
    text.lines().enumerate().filter_map(move |(i, line)| {
        let is_fence = line.trim_start().starts_with("```");
        in_code ^= is_fence;
        (!in_code && !is_fence).then_some((i + 1, line))
    })
}

fn anchors(text: &str) -> Vec<String> {
    let mut found: Vec<String> = Vec::new();
    for (_, line) in prose(text).filter(|(_, line)| line.starts_with('#')) {
        let title = line.trim_start_matches('#').trim().to_lowercase();
        let kept = title.chars().filter(|c| c.is_alphanumeric() || " -_".contains(*c));
        let name: String = kept.map(|c| if c == ' ' { '-' } else { c }).collect();
        let before = found.iter().filter(|there| **there == name).count();
        found.push(if before == 0 { name } else { format!("{name}-{before}") });
    }
    found
}

fn resolve(from: &str, path: &str) -> String {
    let mut parts: Vec<&str> = from.split('/').collect();
    parts.pop();
    for part in path.split('/') {
        match part {
            "." | "" => {}
            ".." => drop(parts.pop()),
            part => parts.push(part),
        }
    }
    parts.join("/")
}

#[cfg(test)]
mod tests;
