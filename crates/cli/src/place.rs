//! The paths of `craton` and the programs beside it.
//!
//! **What.** [`own`] is the path from which the library and the peers are found; [`tool`] finds a
//! program of the lab.
//!
//! **Failure.** The kernel does not report the path, or a program is missing: a sentence with the
//! places and a remedy.

use std::env;
use std::path::{Path, PathBuf};

/// Where the lab's programs may be, relative to `craton`: a build, and installations.
const PLACES: [&str; 2] = ["", "../lib/craton"];

/// The path of `craton`. While a program of the lab runs, `craton` is in the same folder of a
/// build, or in `bin` beside the `lib/craton` of an installation.
///
/// # Errors
/// The kernel does not report this program's path.
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

/// A program of the lab.
///
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
