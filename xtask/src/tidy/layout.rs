//! The linker script's patterns, such as `13craton_malloc5front4free`, name functions that exist:
//! the linker does not complain, and an inlined function has no symbol.

use super::Complaint;
use super::files::File;

const SCRIPT: &str = "crates/preload/layout.ld";

pub fn check(files: &[File]) -> Vec<Complaint> {
    let mut found = Vec::new();
    let script = files.iter().find(|file| file.path == SCRIPT).map_or("", |file| &file.text);
    for (i, line) in script.lines().enumerate() {
        for pattern in line.split([' ', '(', ')']).filter(|word| word.starts_with(".text")) {
            let mut names = names(pattern);
            let folder = match names.first().copied() {
                Some("craton") => "crates/preload/src/".to_owned(),
                Some(name) if name.starts_with("craton_") => format!("crates/{}/src/", &name["craton_".len()..]),
                _ => "crates/".to_owned(),
            };
            names.retain(|name| !name.starts_with("craton"));
            for name in names.into_iter().filter(|name| !is_declared(files, &folder, name)) {
                let text = format!("{pattern} names {name}, which {folder} does not have: the pattern does nothing");
                found.push(Complaint::new(SCRIPT, i + 1, text));
            }
        }
    }
    found
}

fn names(pattern: &str) -> Vec<&str> {
    let mut names = Vec::new();
    let mut rest = pattern;
    while let Some(at) = rest.find(|c: char| c.is_ascii_digit()) {
        let digits = rest[at..].find(|c: char| !c.is_ascii_digit()).unwrap_or(rest.len() - at);
        let behind = &rest[at + digits..];
        let name = rest[at..at + digits].parse().ok().and_then(|len: usize| behind.get(..len));
        let name = name.filter(|name| name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_'));
        names.extend(name);
        rest = &behind[name.map_or(0, str::len)..];
    }
    names
}

fn is_declared(files: &[File], folder: &str, name: &str) -> bool {
    files.iter().filter(|file| file.path.starts_with(folder)).any(|file| {
        let tokens = file.rust.as_ref().map_or(&[][..], |source| &source.tokens);
        tokens.windows(2).any(|two| ["fn", "mod", "struct"].contains(&two[0].text.as_str()) && two[1].text == name)
    })
}

#[cfg(test)]
mod tests;
