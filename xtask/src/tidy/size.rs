//! One file, one noun: past 600 lines a file says why, on a list.

use super::Complaint;
use super::files::File;

/// The most lines a Rust file has without a reason on the list.
const MOST_LINES: usize = 600;

/// The list: one `path | reason` a line; empty lines and lines from `#` on are comments.
const LIST: &str = "xtask/tidy-exceptions.txt";

/// Complains of long files that are not on the list, and of entries of the list that nothing needs.
pub fn check(files: &[File]) -> Vec<Complaint> {
    let list = files.iter().find(|f| f.path == LIST).map_or("", |f| f.text.as_str());
    let mut found = Vec::new();
    let mut listed = Vec::new();
    for (i, entry) in list.lines().enumerate() {
        let entry = entry.trim();
        if entry.is_empty() || entry.starts_with('#') {
            continue;
        }
        let (path, reason) = entry.split_once('|').unwrap_or((entry, ""));
        let (path, reason) = (path.trim(), reason.trim());
        let lines = files.iter().find(|f| f.path == path).map(|f| f.text.lines().count());
        let text = match lines {
            _ if reason.is_empty() => format!("no reason for {path}: write `{path} | why it is one file`"),
            None => format!("{path} does not exist: take the entry out"),
            Some(n) if n <= MOST_LINES => format!("{path} has {n} lines, not over {MOST_LINES}: take the entry out"),
            Some(_) => {
                listed.push(path);
                continue;
            }
        };
        found.push(Complaint::new(LIST, i + 1, text));
    }
    for file in files.iter().filter(|f| f.rust.is_some() && !listed.contains(&f.path.as_str())) {
        let lines = file.text.lines().count();
        if lines > MOST_LINES {
            let text = format!("{lines} lines, the most is {MOST_LINES}: split it, or give a reason in {LIST}");
            found.push(Complaint::new(&file.path, 0, text));
        }
    }
    found
}

#[cfg(test)]
mod tests;
