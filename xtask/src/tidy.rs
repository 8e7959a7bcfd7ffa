//! `cargo xtask tidy`: rules over the tree and the graph of crates.

mod arrows;
mod commands;
mod documents;
mod files;
mod generated;
mod invariants;
mod layout;
pub mod ledger;
mod lex;
mod links;
pub mod map;
pub mod modules;
mod named;
mod orderings;
mod programs;
mod records;
mod size;
mod statics;
mod walks;
mod words;

use files::File;
use std::fmt;
use std::path::Path;
use std::process::ExitCode;

#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Complaint {
    pub path: String,
    /// From 1; 0 is the whole file.
    pub line: usize,
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

pub fn run(fix: bool) -> ExitCode {
    match complaints(root(), fix) {
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

pub fn print(write: impl Fn(&[File]) -> Result<String, String>) -> ExitCode {
    match files::read_tree(root()).and_then(|files| write(&files)) {
        Ok(text) => {
            print!("{text}");
            ExitCode::SUCCESS
        }
        Err(error) => {
            eprintln!("tidy: {error}");
            ExitCode::FAILURE
        }
    }
}

pub fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("xtask/ lies in the repository's root")
}

fn complaints(root: &Path, fix: bool) -> Result<(usize, Vec<Complaint>), String> {
    let mut files = files::read_tree(root)?;
    if fix {
        if let Some(table) = records::measured(root)? {
            std::fs::write(root.join(records::TABLE), table)
                .map_err(|e| format!("cannot write {}: {e}", records::TABLE))?;
            files = files::read_tree(root)?;
        }
        for (path, page) in generated::pages(&files) {
            std::fs::write(root.join(path), page).map_err(|e| format!("cannot write {path}: {e}"))?;
        }
        files = files::read_tree(root)?;
    }
    let mut found = Vec::new();
    for manifest in map::MANIFESTS {
        found.extend(arrows::check(&arrows::metadata(&root.join(manifest))?)?);
    }
    found.extend(size::check(&files));
    found.extend(programs::check(&files));
    found.extend(ledger::check(&files));
    found.extend(modules::check(&files));
    found.extend(statics::check(&files));
    found.extend(named::check(&files));
    found.extend(generated::check(&files));
    found.extend(layout::check(&files));
    found.extend(documents::check(&files));
    found.extend(links::check(&files));
    found.extend(commands::check(&files));
    found.extend(walks::check(&files));
    found.extend(invariants::check(&files));
    for file in &files {
        found.extend(words::check(&file.path, &file.text));
        if let Some(source) = file.rust.as_ref().filter(|_| is_product(file)) {
            found.extend(orderings::check(&file.path, source));
        }
    }
    found.sort();
    Ok((files.len(), found))
}

fn is_product(file: &File) -> bool {
    ["crates/", "papers/"].iter().any(|root| file.path.starts_with(root)) && !files::is_test_path(&file.path)
}
