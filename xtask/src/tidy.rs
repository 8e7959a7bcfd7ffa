//! `cargo xtask tidy`: rules over the text of the tree, and over the graph of crates.
//!
//! **What.** Each rule is a function from text to complaints, so that a test can show it a bad sample; this file
//! collects the files, calls every rule and prints. The rules read text and tokens ([`lex`]), not types: they also see
//! code that is compiled for another platform, or inside a macro, where clippy does not look.

mod arrows;
mod files;
mod ledger;
mod lex;
mod orderings;
mod programs;
mod records;
mod size;
mod unsafety;
mod words;

use files::File;
use std::fmt;
use std::path::Path;
use std::process::ExitCode;

/// One thing that is wrong, and where.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Complaint {
    /// The file, relative to the repository's root.
    pub path: String,
    /// The line, from 1; 0 where the whole file is meant.
    pub line: usize,
    /// What is wrong and what to do.
    pub text: String,
}

impl Complaint {
    fn new(path: &str, line: usize, text: impl Into<String>) -> Self {
        Self { path: path.to_owned(), line, text: text.into() }
    }
}

impl fmt::Display for Complaint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.line {
            0 => write!(f, "{}: {}", self.path, self.text),
            line => write!(f, "{}:{line}: {}", self.path, self.text),
        }
    }
}

/// Runs every rule on the repository that holds this package; `fix` rewrites what is generated first.
pub fn run(fix: bool) -> ExitCode {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("xtask/ lies in the repository's root");
    match complaints(root, fix) {
        Err(error) => {
            eprintln!("tidy: {error}");
            ExitCode::FAILURE
        }
        Ok((files, found)) if found.is_empty() => {
            println!("tidy: {files} files, nothing to complain about");
            ExitCode::SUCCESS
        }
        Ok((files, found)) => {
            for complaint in &found {
                eprintln!("{complaint}");
            }
            eprintln!("tidy: {files} files, {} to mend", found.len());
            ExitCode::FAILURE
        }
    }
}

fn complaints(root: &Path, fix: bool) -> Result<(usize, Vec<Complaint>), String> {
    let mut files = files::read_tree(root)?;
    if fix {
        let text = ledger::write(&files);
        std::fs::write(root.join(ledger::PATH), text).map_err(|e| format!("cannot write {}: {e}", ledger::PATH))?;
        if let Some(table) = records::measured(root)? {
            std::fs::write(root.join(records::TABLE), table)
                .map_err(|e| format!("cannot write {}: {e}", records::TABLE))?;
            files = files::read_tree(root)?;
        }
        // Without a table the page stays as it is, and the check below says what is missing.
        if let Ok(page) = records::write(&files) {
            std::fs::write(root.join(records::PAGE), page)
                .map_err(|e| format!("cannot write {}: {e}", records::PAGE))?;
        }
        files = files::read_tree(root)?;
    }
    let mut found = Vec::new();
    for manifest in ["Cargo.toml", "papers/Cargo.toml"] {
        found.extend(arrows::check(&arrows::metadata(&root.join(manifest))?)?);
    }
    found.extend(size::check(&files));
    found.extend(programs::check(&files));
    found.extend(ledger::check(&files));
    found.extend(records::check(&files));
    for file in &files {
        found.extend(words::check(&file.path, &file.text));
        if let Some(source) = &file.rust {
            found.extend(unsafety::check(&file.path, source));
            if is_product(file) {
                found.extend(orderings::check(&file.path, source));
            }
        }
    }
    found.sort();
    Ok((files.len(), found))
}

/// Whether the file is part of a crate under `crates/` or of `papers/`, and not test code.
fn is_product(file: &File) -> bool {
    ["crates/", "papers/"].iter().any(|root| file.path.starts_with(root)) && !files::is_test_path(&file.path)
}
