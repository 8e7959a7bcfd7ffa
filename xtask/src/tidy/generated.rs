//! Blocks of documents, which `cargo xtask tidy --fix` writes between their marks.

use super::Complaint;
use super::files::File;
use super::{map, records};
use craton_tables::counters::{self, CACHE_MODES, Codes, Counter, LIMIT_SOURCES, Unit};
use craton_tables::options::{Choice, Form, OPTIONS, When};
use std::fmt::Write;

struct Block {
    page: &'static str,
    name: &'static str,
    write: fn(&[File]) -> Result<String, String>,
}

const README: &str = "README.md";
const ARCHITECTURE: &str = "ARCHITECTURE.md";
const HEADER: &str = "crates/preload/include/craton.h";
const STATISTICS: &str = "docs/statistics.md";

const fn block(page: &'static str, name: &'static str, write: fn(&[File]) -> Result<String, String>) -> Block {
    Block { page, name, write }
}

const BLOCKS: [Block; 14] = [
    block(README, "results/speed.md", records::short),
    block(ARCHITECTURE, "crates", |_| map::block(super::root())),
    block("docs/options.md", "options", |_| Ok(options())),
    block(STATISTICS, "process", |_| Ok(rows("field", &[counters::PROCESS, counters::TEXTS].concat()))),
    block(STATISTICS, "cache_mode", |_| Ok(codes("cache_mode", CACHE_MODES))),
    block(STATISTICS, "memory_limit_source", |_| Ok(codes("memory_limit_source", LIMIT_SOURCES))),
    block(STATISTICS, "class", |_| Ok(rows("field of a class", counters::CLASS))),
    block(STATISTICS, "heap", |_| Ok(rows("field of a heap", counters::HEAP))),
    block(STATISTICS, "kit", |_| Ok(rows("field of `debug`", counters::KIT))),
    block(STATISTICS, "cache", |_| Ok(rows("field of an object cache", counters::CACHE))),
    block(HEADER, "options", |_| Ok(keys())),
    block(HEADER, "process", |_| Ok(members(counters::PROCESS))),
    block(HEADER, "heap", |_| Ok(members(counters::HEAP))),
    block(HEADER, "cache", |_| Ok(members(counters::CACHE))),
];

impl Block {
    fn marks(&self) -> (String, String) {
        let (open, close, quote) = if self.page.ends_with(".md") { ("<!--", "-->", "`") } else { ("/*", "*/", "") };
        let Self { name, .. } = self;
        (
            format!("{open} begin: {name}, by {quote}cargo xtask tidy --fix{quote} {close}\n"),
            format!("{open} end: {name} {close}"),
        )
    }

    fn put(&self, page: &str, files: &[File]) -> Result<String, String> {
        let (begin, end) = self.marks();
        let marks = || format!("the marks of a block are not there: {}", begin.trim());
        let (before, rest) = page.split_once(&begin).ok_or_else(marks)?;
        let (old, after) = rest.split_once(&end).ok_or_else(marks)?;
        let indent = old.len() - old.trim_end_matches(' ').len();
        Ok(format!("{before}{begin}{}{:indent$}{end}{after}", (self.write)(files)?, ""))
    }
}

pub fn check(files: &[File]) -> Vec<Complaint> {
    let stale = |b: &Block| match text(files, b.page).and_then(|page| Ok((b.put(page, files)?, page))) {
        Err(why) => Some(Complaint::new(b.page, 0, why)),
        Ok((new, page)) if new != page => {
            Some(Complaint::new(b.page, 0, format!("its block {} is stale: run `cargo xtask tidy --fix`", b.name)))
        }
        Ok(_) => None,
    };
    BLOCKS.iter().filter_map(stale).collect()
}

pub fn pages(files: &[File]) -> Vec<(&'static str, String)> {
    let mut pages: Vec<(&str, String)> = Vec::new();
    for b in &BLOCKS {
        let i = pages.iter().position(|(name, _)| *name == b.page).unwrap_or_else(|| {
            pages.push((b.page, text(files, b.page).unwrap_or_default().to_owned()));
            pages.len() - 1
        });
        if let Ok(new) = b.put(&pages[i].1, files) {
            pages[i].1 = new;
        }
    }
    pages
}

pub fn text<'a>(files: &'a [File], path: &str) -> Result<&'a str, String> {
    let file = files.iter().find(|file| file.path == path);
    file.map(|file| file.text.as_str()).ok_or_else(|| format!("{path} is missing"))
}

fn values(option: &Choice) -> String {
    let words = option.form.words().iter().map(|word| format!("`{word}`"));
    let range = match option.form {
        Form::Count(_, least, u64::MAX) => format!(" from {least}"),
        Form::Count(_, least, most) => format!(" from {least} to {most}"),
        Form::Percent => " from 0 to 100".to_owned(),
        Form::Bytes(most) if most < u64::MAX => format!(" up to {most}"),
        _ => String::new(),
    };
    let others = option.form.others().iter().map(|other| format!("{other}{range}"));
    words.chain(others).collect::<Vec<_>>().join(", ")
}

fn options() -> String {
    let mut out = String::from("| option | values | default | set | what it does |\n|---|---|---|---|---|\n");
    for option in &OPTIONS {
        let default = if option.default.is_empty() { "none".to_owned() } else { format!("`{}`", option.default) };
        let when = match option.when {
            When::Live => "at any time".to_owned(),
            When::Start => "before the first request of the process".to_owned(),
            When::Before(event) => format!("before {event}"),
        };
        let more = if option.more.is_empty() { String::new() } else { format!(". {}", option.more) };
        let _ = writeln!(out, "| `{}` | {} | {default} | {when} | {}{more} |", option.key, values(option), option.text);
    }
    out
}

fn rows(head: &str, counters: &[Counter]) -> String {
    let mut out = format!("| {head} | unit | what it means |\n|---|---|---|\n");
    for Counter { name, unit, text } in counters {
        let _ = writeln!(out, "| `{name}` | {} | {text} |", unit.name());
    }
    out
}

fn codes(of: &str, codes: &Codes) -> String {
    let mut out = format!("| `{of}` | `{of}_name` | what it means |\n|---|---|---|\n");
    for (code, (word, text)) in codes.iter().enumerate() {
        let _ = writeln!(out, "| {code} | `{word}` | {text} |");
    }
    out
}

const COLUMNS: usize = 100;

fn keys() -> String {
    let keys: Vec<String> = OPTIONS.iter().map(|option| format!("{}={}", option.key, option.form)).collect();
    comment("", &format!("Options, which docs/options.md explains: {}.", keys.join(", ")))
}

fn members(counters: &[Counter]) -> String {
    let member = |c: &Counter| {
        let since = if c.unit == Unit::Since { ", since the start" } else { "" };
        let codes = [("cache_mode", CACHE_MODES), ("memory_limit_source", LIMIT_SOURCES)];
        let codes = codes.iter().find(|(name, _)| *name == c.name).map_or(&[][..], |(_, codes)| codes);
        let words: String = codes.iter().enumerate().map(|(i, (word, _))| format!("; {i} {word}")).collect();
        let text = format!("{}{since}{words}", c.text.replace('`', ""));
        let line = format!("    uint64_t {}; /* {text} */\n", c.name);
        match line.len() <= COLUMNS {
            true => line,
            false => format!("{}    uint64_t {};\n", comment("    ", &text), c.name),
        }
    };
    counters.iter().map(member).collect()
}

fn comment(indent: &str, text: &str) -> String {
    let mut out = format!("{indent}/*");
    let mut line = out.len();
    for word in text.split_whitespace() {
        // Room for the end mark.
        if line + 1 + word.len() + 3 > COLUMNS {
            let _ = write!(out, "\n{indent}  ");
            line = indent.len() + 2;
        }
        let _ = write!(out, " {word}");
        line += 1 + word.len();
    }
    out + " */\n"
}

#[cfg(test)]
mod tests;
