use super::lex::Source;
use std::path::Path;
use std::process::Command;

pub struct File {
    pub path: String,
    pub text: String,
    pub rust: Option<Source>,
}

impl File {
    pub fn new(path: &str, text: &str) -> Self {
        let rust = path.ends_with(".rs").then(|| Source::new(text));
        Self { path: path.to_owned(), text: text.to_owned(), rust }
    }
}

pub fn is_test_path(path: &str) -> bool {
    path.ends_with("/tests.rs") || path.starts_with("tests/") || path.contains("/tests/")
}

pub fn read_tree(root: &Path) -> Result<Vec<File>, String> {
    let out = Command::new("git")
        .args(["ls-files", "-z", "--cached", "--others", "--exclude-standard"])
        .current_dir(root)
        .output()
        .map_err(|e| format!("cannot run `git ls-files`: {e}; tidy reads the list of files from git, install it"))?;
    if !out.status.success() {
        let why = String::from_utf8_lossy(&out.stderr);
        return Err(format!("`git ls-files` failed in {}: {}", root.display(), why.trim()));
    }
    let list = String::from_utf8_lossy(&out.stdout).into_owned();
    let mut paths: Vec<&str> = list.split('\0').filter(|p| !p.is_empty()).collect();
    paths.sort_unstable();
    paths.dedup();
    let mut files = Vec::new();
    for path in paths {
        let full = root.join(path);
        if !full.symlink_metadata().is_ok_and(|m| m.is_file()) {
            continue;
        }
        let bytes = std::fs::read(&full).map_err(|e| format!("cannot read {path}: {e}"))?;
        if let Ok(text) = String::from_utf8(bytes) {
            files.push(File::new(path, &text));
        }
    }
    Ok(files)
}
