use super::Complaint;

/// Split, so that this file does not complain of itself.
const UNDONE: [&str; 5] = [
    concat!("to", "do!"),
    concat!("un", "implemented!"),
    concat!("#[", "ignore"),
    concat!("FIX", "ME"),
    concat!("XX", "X"),
];

const NIGHTLY: &str = concat!("#[", "ignore = \"nightly: ");

const LOCAL: [&str; 2] = [concat!("/wo", "rk/"), concat!("/tmp/", "target")];

pub fn check(path: &str, text: &str) -> Vec<Complaint> {
    let mut found = Vec::new();
    for (i, line) in text.split('\n').enumerate() {
        let mut complain = |text: String| found.push(Complaint::new(path, i + 1, text));
        for word in UNDONE.iter().filter(|word| line.contains(*word) && !line.contains(NIGHTLY)) {
            complain(format!("`{word}`: do it now, or say in an issue what is left"));
        }
        for local in LOCAL.iter().filter(|local| holds_absolute(line, local)) {
            complain(format!("`{local}…` is a path of one machine: make it relative"));
        }
        if line.ends_with([' ', '\t', '\r']) {
            complain("white space at the end of the line: take it out".to_owned());
        }
    }
    if !text.is_empty() && !text.ends_with('\n') {
        found.push(Complaint::new(path, text.lines().count(), "no end of line at the end of the file: add one"));
    }
    found
}

/// Not within `target/x`, `$dir/x`, `http://host/x`.
fn holds_absolute(line: &str, path: &str) -> bool {
    line.match_indices(path).any(|(at, _)| {
        let before = line[..at].chars().next_back();
        !before.is_some_and(|c| c.is_alphanumeric() || "_-./}~*)]>".contains(c))
    })
}

#[cfg(test)]
mod tests;
