//! Built alone: other packages would turn on features of shared dependencies.

use std::env;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

pub fn library(root: &Path) -> Result<PathBuf, String> {
    if let Some(library) = env::var_os("CRATON_LIBRARY") {
        return Ok(library.into());
    }
    let cargo = env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let args = ["build", "--release", "-q", "-p", "craton-preload", "--message-format=json-render-diagnostics"];
    let mut command = Command::new(cargo);
    command.args(args).env("CARGO_INCREMENTAL", "0").current_dir(root).stderr(Stdio::inherit());
    let output = command.output().map_err(|e| format!("cannot start cargo: {e}"))?;
    if !output.status.success() {
        return Err(format!("the library does not build ({})", output.status));
    }
    let messages = String::from_utf8_lossy(&output.stdout);
    let messages = messages.lines().filter_map(|line| serde_json::from_str::<serde_json::Value>(line).ok());
    let mut names = messages.flat_map(|message| message["filenames"].as_array().cloned().unwrap_or_default());
    let found = names.find_map(|name| name.as_str().filter(|n| n.ends_with("/libcraton.so")).map(PathBuf::from));
    found.ok_or_else(|| "cargo built no libcraton.so; is craton-preload still a cdylib?".to_owned())
}
