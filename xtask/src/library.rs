//! Each built alone: other packages would turn on features of shared dependencies.

use std::env;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// Variables that name them to tests.
pub const LIBRARY: &str = "CRATON_LIBRARY";
pub const HEAPS_LIBRARY: &str = "CRATON_PHEAP_LIBRARY";

pub fn library(root: &Path) -> Result<PathBuf, String> {
    if let Some(library) = env::var_os(LIBRARY) {
        return Ok(library.into());
    }
    let mut command = build(root, "craton-preload");
    command.arg("--release").env("CARGO_INCREMENTAL", "0");
    built(command, "libcraton.so")
}

/// With the tests' profile, for which most of it is built already.
pub fn heaps_library(root: &Path, unwinding: [&str; 2]) -> Result<PathBuf, String> {
    let mut command = build(root, "craton-pheap-c");
    command.env(unwinding[0], unwinding[1]);
    built(command, "libcraton_pheap.so")
}

fn build(root: &Path, package: &str) -> Command {
    let mut command = Command::new(env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    command.args(["build", "-q", "-p", package, "--message-format=json-render-diagnostics"]);
    command.current_dir(root).stderr(Stdio::inherit());
    command
}

fn built(mut command: Command, library: &str) -> Result<PathBuf, String> {
    let output = command.output().map_err(|e| format!("cannot start cargo: {e}"))?;
    if !output.status.success() {
        return Err(format!("{library} does not build ({})", output.status));
    }
    let messages = String::from_utf8_lossy(&output.stdout);
    let messages = messages.lines().filter_map(|line| serde_json::from_str::<serde_json::Value>(line).ok());
    let mut names = messages.flat_map(|message| message["filenames"].as_array().cloned().unwrap_or_default());
    let is_it = |path: &PathBuf| path.file_name().is_some_and(|name| name == library);
    let found = names.find_map(|name| name.as_str().map(PathBuf::from).filter(is_it));
    found.ok_or_else(|| format!("cargo built no {library}; is its package still a cdylib?"))
}
