//! Puts the commit into the program, for its documents; without git "unknown".

use std::path::Path;
use std::process::Command;

fn git(arguments: &[&str]) -> Option<String> {
    let output = Command::new("git").args(arguments).output().ok().filter(|o| o.status.success())?;
    String::from_utf8(output.stdout).ok().map(|text| text.trim().to_owned()).filter(|text| !text.is_empty())
}

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    // Each commit and checkout writes one. A missing path would rebuild each time.
    for name in ["HEAD", "logs/HEAD"] {
        if let Some(path) = git(&["rev-parse", "--git-path", name]).filter(|p| Path::new(p).exists()) {
            println!("cargo::rerun-if-changed={path}");
        }
    }
    println!("cargo::rustc-env=CRATON_COMMIT={}", git(&["rev-parse", "HEAD"]).as_deref().unwrap_or("unknown"));
}
