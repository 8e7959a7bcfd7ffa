//! Each invariant's id is defined once, as `*F…*` in a module's head, and ARCHITECTURE.md lists it,
//! as `frames F1–F3, F7` under "Invariants".

use super::Complaint;
use super::files::File;
use std::collections::BTreeMap;

const LIST: &str = "ARCHITECTURE.md";

pub fn check(files: &[File]) -> Vec<Complaint> {
    let mut found = Vec::new();
    let mut defined = BTreeMap::new();
    for file in files.iter().filter(|file| file.rust.is_some()) {
        for (i, line) in file.text.lines().enumerate().filter(|(_, line)| line.starts_with("//!")) {
            for id in line.split('*').skip(1).filter(|word| is_id(word)) {
                match defined.get(id) {
                    None => _ = defined.insert(id, (&file.path, i + 1)),
                    Some((path, first)) => {
                        let text = format!("invariant {id} is defined at {path}:{first} too: choose another id");
                        found.push(Complaint::new(&file.path, i + 1, text));
                    }
                }
            }
        }
    }
    let listed = files.iter().find(|file| file.path == LIST).map(|file| listed(&file.text)).unwrap_or_default();
    for (id, (path, line)) in &defined {
        if !listed.contains_key(*id) {
            found.push(Complaint::new(path, *line, format!("invariant {id} is not in {LIST}: list it")));
        }
    }
    for (id, line) in listed.iter().filter(|(id, _)| !defined.contains_key(id.as_str())) {
        found.push(Complaint::new(LIST, *line, format!("no module's head defines *{id}*")));
    }
    found
}

fn is_id(word: &str) -> bool {
    let (letters, number) = split(word);
    (1..=2).contains(&letters.len()) && letters.bytes().all(|b| b.is_ascii_uppercase()) && number.is_some()
}

fn split(word: &str) -> (&str, Option<u32>) {
    let (letters, digits) = word.split_at(word.find(|c: char| c.is_ascii_digit()).unwrap_or(word.len()));
    (letters, digits.parse().ok())
}

fn listed(text: &str) -> BTreeMap<String, usize> {
    let mut found = BTreeMap::new();
    let lines = text.lines().enumerate().skip_while(|(_, line)| *line != "## Invariants").skip(1);
    for (i, line) in lines.take_while(|(_, line)| !line.starts_with("## ")) {
        let column = line.strip_prefix('|').and_then(|rest| rest.split('|').next()).unwrap_or_default();
        for part in column.split([' ', ',']) {
            let (first, last) = part.split_once('–').unwrap_or((part, part));
            if let ((letters, Some(from)), (_, Some(to)), true) = (split(first), split(last), is_id(first)) {
                found.extend((from..=to).map(|n| (format!("{letters}{n}"), i + 1)));
            }
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    const DOCUMENT: &str = "\n## Invariants\n| id | holds |\n|---|---|\n| a F1–F3, NS7 | x |\n\n## Next\n| b G1 | |\n";

    fn complaints(files: &[(&str, &str)]) -> Vec<String> {
        let files: Vec<_> = files.iter().map(|(path, text)| File::new(path, text)).collect();
        check(&files).into_iter().map(|complaint| complaint.to_string()).collect()
    }

    #[test]
    fn ids_are_defined_once() {
        let a = ("a.rs", "//! *F1* x; *F2* y. *F3* z\n//! *NS7* F1 *emphasis*\n// *F1*\n/// `*F2*`\n");
        assert_eq!(complaints(&[(LIST, DOCUMENT), a, ("b.rs", "//! F1 of `a`.\n")]), [""; 0]);
        let again = ("b.rs", "//! b\n//! **Invariants.** *F3* w\n");
        let text = "b.rs:2: invariant F3 is defined at a.rs:1 too: choose another id";
        assert_eq!(complaints(&[(LIST, DOCUMENT), a, again]), [text]);
    }

    #[test]
    fn the_list_and_the_definitions_agree() {
        let a = ("a.rs", "//! *F1* *F3* *G1*\n");
        let missing = [
            "a.rs:1: invariant G1 is not in ARCHITECTURE.md: list it",
            "ARCHITECTURE.md:5: no module's head defines *F2*",
            "ARCHITECTURE.md:5: no module's head defines *NS7*",
        ];
        assert_eq!(complaints(&[(LIST, DOCUMENT), a]), missing);
    }
}
