//! Documents and comments: lengths, columns, phrases.

use super::Complaint;
use super::files::File;
use super::lex::Source;

const README: &str = "README.md";
const README_LINES: usize = 150;
const README_WORDS: usize = 1300;
const COLUMNS: usize = 100;
const HEAD_LINES: usize = 40;

const LATER: [&str; 0] = [];

const PHRASES: [(&str, &str); 30] = [
    (concat!("some", "body"), "name the actor"),
    (concat!("no", "body"), "name the actor"),
    (concat!("any", "body"), "name the actor"),
    (concat!("every", "body"), "name the actor"),
    (concat!("who", "ever"), "name the actor"),
    (concat!("so ", "many"), "give the number or a name"),
    (concat!("so ", "much"), "give the amount or a name"),
    (concat!("of its ", "own"), "say `its`, or `separate`"),
    (concat!("of their ", "own"), "say `their`, or `separate`"),
    (concat!("of one's ", "own"), "say whose"),
    (concat!("of our ", "own"), "say `our`"),
    (concat!("of his ", "own"), "say `their`"),
    (concat!("is ", "said"), "name who reports it"),
    (concat!("are ", "said"), "name who reports it"),
    (concat!("be ", "said"), "name who reports it"),
    (concat!("is ", "told"), "name who reports it"),
    (concat!("are ", "told"), "name who reports it"),
    (concat!("be ", "told"), "name who reports it"),
    (concat!("was ", "told"), "name who reports it"),
    (concat!("tells ", "of"), "say `describes` or `lists`"),
    (concat!("told ", "of"), "say `reports`"),
    (concat!("says ", "so"), "say what it reports"),
    (concat!("says ", "of"), "say what it reports"),
    (concat!("is ", "none"), "say `no …`"),
    (concat!("are ", "none"), "say `no …`"),
    (concat!("in ", "vain"), "say `without effect`"),
    (concat!("by and ", "by"), "say when"),
    (concat!("hither", "to"), "say `until now`"),
    (concat!("there", "of"), "name it"),
    (concat!("where", "of"), "name it"),
];

const VERBS: [&str; 21] = [
    "is", "was", "were", "has", "have", "had", "can", "could", "may", "must", "does", "do", "did", "lies", "comes",
    "goes", "the", "a", "an", "it", "they",
];

pub fn check(files: &[File]) -> Vec<Complaint> {
    let mut found = Vec::new();
    for file in files {
        if file.path == README {
            readme(file, &mut found);
        }
        if is_document(&file.path) {
            document(file, &mut found);
        }
        if let Some(source) = &file.rust {
            head(file, &mut found);
            if !LATER.iter().any(|folder| file.path.starts_with(folder)) {
                comments(file, source, &mut found);
            }
        }
    }
    found
}

pub fn is_document(path: &str) -> bool {
    path.ends_with(".md") && (!path.contains('/') || path.starts_with("docs/") || path == "results/README.md")
}

fn readme(file: &File, found: &mut Vec<Complaint>) {
    let (lines, words) = (file.text.lines().count(), file.text.split_whitespace().count());
    let mut limit = |what: &str, n: usize, most: usize| {
        if n > most {
            let text = format!("{n} {what}, the most is {most}: move a part to docs/");
            found.push(Complaint::new(&file.path, 0, text));
        }
    };
    limit("lines", lines, README_LINES);
    limit("words", words, README_WORDS);
}

fn document(file: &File, found: &mut Vec<Complaint>) {
    if LATER.contains(&file.path.as_str()) {
        return;
    }
    let mut in_code = false;
    for (i, line) in file.text.lines().enumerate() {
        let is_fence = line.trim_start().starts_with("```");
        in_code ^= is_fence;
        let is_table = !in_code && line.starts_with('|');
        // A link cannot be broken.
        let is_link = line.split_whitespace().any(|word| word.contains("](") && word.chars().count() > 60);
        if !is_table && !is_link {
            columns(file, i + 1, line.chars().count(), found);
        }
        if !in_code && !is_fence {
            phrases(file, i + 1, line, found);
        }
    }
}

fn comments(file: &File, source: &Source, found: &mut Vec<Complaint>) {
    let mut in_code = false;
    for (i, (text, line)) in file.text.lines().zip(&source.lines[1..]).enumerate() {
        let is_fence = line.comment.trim_start_matches(['/', '!', ' ']).starts_with("```");
        in_code = !line.comment.is_empty() && in_code != is_fence;
        if line.comment.is_empty() || in_code || is_fence {
            continue;
        }
        if !line.has_code && !line.comment.contains(['|', '─']) && !line.comment.contains("://") {
            columns(file, i + 1, text.chars().count(), found);
        }
        phrases(file, i + 1, &line.comment, found);
    }
}

fn columns(file: &File, line: usize, width: usize, found: &mut Vec<Complaint>) {
    if width > COLUMNS {
        found.push(Complaint::new(&file.path, line, format!("{width} columns, the most is {COLUMNS}: break the line")));
    }
}

fn head(file: &File, found: &mut Vec<Complaint>) {
    let lines = head_lines(&file.text);
    if lines > HEAD_LINES {
        let text =
            format!("a head of {lines} lines, the most is {HEAD_LINES}: say less, or move a part to ARCHITECTURE.md");
        found.push(Complaint::new(&file.path, 0, text));
    }
}

/// Examples are programs that tests run.
fn head_lines(text: &str) -> usize {
    let mut lines = 0;
    // Whether it has an example, not a drawing.
    let mut fence = None;
    for line in text.lines().map_while(|line| line.strip_prefix("//!")) {
        let was_example = fence == Some(true);
        if let Some(kind) = line.trim().strip_prefix("```") {
            fence = if fence.is_none() { Some(kind != "text") } else { None };
        }
        lines += usize::from(!was_example && fence != Some(true));
    }
    lines
}

fn phrases(file: &File, line: usize, text: &str, found: &mut Vec<Complaint>) {
    let plain: String = outside_code(text);
    let words: Vec<&str> = plain.split(|c: char| !c.is_alphanumeric() && c != '\'').filter(|w| !w.is_empty()).collect();
    for (phrase, instead) in PHRASES {
        let parts: Vec<&str> = phrase.split(' ').collect();
        let is_it = |at: &[&str]| at.iter().zip(&parts).all(|(word, part)| word.eq_ignore_ascii_case(part));
        if words.windows(parts.len()).any(is_it) {
            found.push(Complaint::new(&file.path, line, format!("`{phrase}`: {instead}")));
        }
    }
    let begins = |two: &[&str]| two[0] == "What" && VERBS.contains(&two[1]);
    if !plain.contains('?') && !text.starts_with('#') && words.windows(2).any(begins) {
        found.push(Complaint::new(&file.path, line, "a what-clause as subject: name the thing"));
    }
}

fn outside_code(line: &str) -> String {
    line.split('`').step_by(2).collect::<Vec<_>>().join(" x ")
}

#[cfg(test)]
mod tests;
