//! Comments that readers can follow: columns, phrases, and the length of a module's head.
//!
//! **What.** [`check`] reads the comments of one file. A line has at most [`COLUMNS`] columns,
//! except in tables, drawings and examples (fences, or frames of `─`), and with an address. The
//! [`PHRASES`] hide the actor or the verb. A head (`//!`) has at most [`HEAD`] lines besides its
//! examples, a crate's [`CRATE_HEAD`].

use super::Complaint;
use super::files::File;

const COLUMNS: usize = 100;
const HEAD: usize = 40;
const CRATE_HEAD: usize = 80;

/// Phrases, and what a comment says instead. With a capital, the phrase begins a sentence.
const PHRASES: [(&[&str], &str); 7] = [
    (&["somebody", "nobody", "anybody", "everybody", "whoever", "he", "him", "his"], "name the actor"),
    (&["Who", "Those who", "One that", "Those that"], "name the actor"),
    (&["What is", "What was", "What has", "What the", "What it", "What they", "What a"], "begin with the actor"),
    (&["so many", "of its own", "of their own", "of our own", "of one's own"], "give the number, or leave it out"),
    (&["is said", "are said", "is told", "are told", "tells of", "told of", "says so", "says of"], "name the verb"),
    (&["is none", "are none"], "write \"no …\""),
    (&["in vain", "by and by", "hitherto", "thereof", "whereof"], "use today's word"),
];

/// Ends of files that have comments, with the mark that begins one.
const MARKS: [(&[&str], &[&str]); 2] =
    [(&[".c", ".h", ".hpp", ".cpp"], &["//", "/*", "* "]), (&[".sh", ".toml", ".py"], &["#"])];

/// Crates whose comments are older than the rule; to be emptied.
const EXEMPT: [&str; 2] = ["crates/frames/", "crates/heap/"];

pub fn check(file: &File) -> Vec<Complaint> {
    if EXEMPT.iter().any(|folder| file.path.starts_with(folder)) {
        return Vec::new();
    }
    let mut found = Vec::new();
    let mut in_fence = false;
    for (i, line) in file.text.lines().enumerate() {
        let Some((text, is_alone)) = comment(file, i + 1, line) else {
            in_fence = false;
            continue;
        };
        let is_edge = text.trim_start().starts_with("```");
        in_fence ^= is_edge;
        if in_fence || is_edge {
            continue;
        }
        if is_alone && line.chars().count() > COLUMNS && !text.contains(['|', '─']) && !text.contains("://") {
            let text = format!("a comment of more than {COLUMNS} columns: wrap it");
            found.push(Complaint::new(&file.path, i + 1, text));
        }
        for (phrase, instead) in PHRASES.iter().flat_map(|(list, instead)| list.iter().map(move |p| (p, instead))) {
            if holds(&text, phrase) {
                found.push(Complaint::new(&file.path, i + 1, format!("`{phrase}` in a comment: {instead}")));
            }
        }
    }
    found.extend(head(file));
    found
}

/// The comment on a line, without its marks, and whether the line is nothing else.
fn comment(file: &File, number: usize, line: &str) -> Option<(String, bool)> {
    if let Some(source) = &file.rust {
        let of = source.lines.get(number)?;
        let text = of.comment.trim_start().trim_start_matches(['/', '!', '*']);
        return (!of.comment.is_empty()).then(|| (text.to_owned(), !of.has_code));
    }
    let (_, marks) = MARKS.iter().find(|(ends, _)| ends.iter().any(|end| file.path.ends_with(end)))?;
    let line = line.trim_start();
    let rest = marks.iter().find_map(|mark| line.strip_prefix(mark))?;
    Some((rest.trim_start_matches(['/', '!', '*', '#']).to_owned(), true))
}

/// Whether the phrase stands in the text as whole words; a capital means at a sentence's beginning.
fn holds(text: &str, phrase: &str) -> bool {
    let is_word = |c: char| c.is_alphanumeric() || c == '_' || c == '`' || c == '\'';
    text.match_indices(phrase).any(|(at, _)| {
        let (before, behind) = (&text[..at], &text[at + phrase.len()..]);
        let is_first = before.trim().is_empty() || before.ends_with(". ") || before.ends_with(": ");
        !before.ends_with(is_word)
            && !behind.starts_with(is_word)
            && (is_first || !phrase.starts_with(char::is_uppercase))
    })
}

/// Complains of a head that is too long to be read.
fn head(file: &File) -> Option<Complaint> {
    let most = if file.path.ends_with("/lib.rs") { CRATE_HEAD } else { HEAD };
    let mut in_example = false;
    let lines = file.text.lines().map_while(|line| line.strip_prefix("//!")).filter(|line| {
        let fence = line.trim().strip_prefix("```");
        let was_in = in_example;
        in_example = fence.map_or(in_example, |kind| !in_example && kind.is_empty() && !was_in);
        !was_in && !in_example
    });
    let count = if file.rust.is_some() { lines.count() } else { 0 };
    let text = format!("a head of {count} lines, at most {most}: move what one item needs to that item");
    (count > most).then(|| Complaint::new(&file.path, 1, text))
}

#[cfg(test)]
mod tests;
