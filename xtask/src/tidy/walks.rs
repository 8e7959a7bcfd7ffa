//! What documents name exists: `heap/refill.rs: refill, flush` are a file below `crates/heap/src/`
//! and its functions.

use super::Complaint;
use super::documents::is_document;
use super::files::File;

pub fn check(files: &[File]) -> Vec<Complaint> {
    let mut found = Vec::new();
    for file in files.iter().filter(|file| is_document(&file.path)) {
        for (i, line) in file.text.lines().enumerate() {
            for code in line.split('`').skip(1).step_by(2) {
                if let Some(text) = fault(files, code) {
                    found.push(Complaint::new(&file.path, i + 1, text));
                }
            }
        }
    }
    found
}

fn fault(files: &[File], code: &str) -> Option<String> {
    let (path, names) = code.split_once(": ").unwrap_or((code, ""));
    let is_path = |c: char| c.is_alphanumeric() || "_-/.".contains(c);
    if !path.ends_with(".rs") || !path.contains('/') || !path.chars().all(is_path) {
        return None;
    }
    let (first, rest) = path.split_once('/')?;
    if ["src", "tests"].contains(&first) {
        return None;
    }
    let full = [path.to_owned(), format!("crates/{first}/src/{rest}")];
    let Some(file) = files.iter().find(|file| full.contains(&file.path)) else {
        return Some(format!("there is no {path}, from the root or as crates/{first}/src/{rest}"));
    };
    let missing = names.split(", ").filter(|name| !name.is_empty()).find(|name| !declares(file, name))?;
    Some(format!("{} declares no `{missing}`", file.path))
}

fn declares(file: &File, name: &str) -> bool {
    let tokens = file.rust.as_ref().map_or(&[][..], |source| &source.tokens);
    let (of, function) = name.split_once("::").unwrap_or(("", name));
    let has_type = of.is_empty() || tokens.iter().any(|token| token.text == of);
    has_type && tokens.windows(2).any(|two| two[0].text == "fn" && two[1].text == function)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_or_function_that_is_not_there_fails() {
        let source = File::new("crates/heap/src/a.rs", "impl A { fn one() {} } fn two() {}\n");
        let check = |text: &str| {
            let document = File::new("ARCHITECTURE.md", text);
            check(&[File::new(&source.path, &source.text), document])
                .into_iter()
                .map(|c| c.to_string())
                .collect::<Vec<_>>()
        };
        assert_eq!(
            check("`heap/a.rs: one, two`, `heap/a.rs: A::one`, `heap/a.rs`, `crates/heap/src/a.rs`, `a.rs`\n"),
            [""; 0]
        );
        assert!(check("`heap/b.rs`\n")[0].contains("there is no heap/b.rs"));
        assert!(
            check("a\n`heap/a.rs: one, three`\n")[0]
                .contains("ARCHITECTURE.md:2: crates/heap/src/a.rs declares no `three`")
        );
        assert!(check("`heap/a.rs: B::one`\n")[0].contains("declares no `B::one`"));
    }
}
