//! The paths of `craton` and the programs beside it.

use std::env;
use std::path::{Path, PathBuf};

const PLACES: [&str; 2] = ["", "../lib/craton"];

/// A program of the lab lies beside it, or in `lib/craton` beside its `bin`.
///
/// # Errors
/// The kernel does not report it.
pub fn own() -> Result<PathBuf, String> {
    let exe = env::current_exe().map_err(|e| format!("cannot find out where craton itself is: {e}"))?;
    Ok(beside(&exe))
}

fn beside(exe: &Path) -> PathBuf {
    let directory = exe.parent().unwrap_or(Path::new("/"));
    match directory.ancestors().nth(2).filter(|_| directory.ends_with("lib/craton")) {
        Some(prefix) => prefix.join("bin/craton"),
        None => directory.join("craton"),
    }
}

/// # Errors
/// It is not there.
pub fn tool(name: &str) -> Result<PathBuf, String> {
    let own = own()?;
    let directory = own.parent().unwrap_or(Path::new("/"));
    let places = PLACES.map(|place| directory.join(place).join(name));
    places.iter().find(|path| path.is_file()).cloned().ok_or_else(|| {
        let tried = places.map(|path| path.display().to_string()).join(", ");
        format!("cannot find {name}, tried: {tried}; from the sources, `make build` makes it")
    })
}

#[cfg(test)]
mod tests;
