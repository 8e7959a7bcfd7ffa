//! Tests that documents name as `file.rs::test` are there.

use super::Complaint;
use super::files::File;

pub fn check(files: &[File]) -> Vec<Complaint> {
    let mut found = Vec::new();
    for file in files.iter().filter(|file| file.path.ends_with(".md")) {
        for (i, line) in file.text.lines().enumerate() {
            for (path, test) in line.split('`').filter_map(|quoted| quoted.split_once(".rs::")) {
                let is_name = |text: &str| text.chars().all(|c| c.is_alphanumeric() || "_-/".contains(c));
                if is_name(path) && is_name(test) && !is_there(files, &format!("{path}.rs"), test) {
                    let text = format!("no test `{path}.rs::{test}`: name the file where it is");
                    found.push(Complaint::new(&file.path, i + 1, text));
                }
            }
        }
    }
    found
}

fn is_there(files: &[File], path: &str, test: &str) -> bool {
    let behind = format!("/{path}");
    let named = files.iter().filter(|file| file.path == path || file.path.ends_with(&behind));
    let mut sources = named.filter_map(|file| file.rust.as_ref());
    sources.any(|source| source.tokens.windows(2).any(|two| two[0].text == "fn" && two[1].text == test))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_test_that_is_not_there_fails() {
        let complaints = |text: &str| {
            let test = File::new("crates/a/tests/b.rs", "#[test]\nfn c() {}\n// fn d() {}\n");
            check(&[test, File::new("docs/x.md", text)]).into_iter().map(|c| c.to_string()).collect::<Vec<_>>()
        };
        for right in ["`b.rs::c`\n", "`crates/a/tests/b.rs::c`, `a.rs` and `x::y`\n", "`b.rs::c_…`\n"] {
            assert_eq!(complaints(right), [""; 0], "{right}");
        }
        let text = "docs/x.md:2: no test `b.rs::d`: name the file where it is";
        assert_eq!(complaints("\n| `b.rs::d` |\n"), [text]);
        assert_eq!(complaints("`a/b.rs::c` `tests/b.rs::c`").len(), 1);
    }
}
