//! Where `libcraton.so` is, and its place in `LD_PRELOAD`.

use crate::failure::Failure;
use crate::place;
use craton_lab::{shared_object, symbols};
use std::env;
use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};

const VARIABLE: &str = "CRATON_LIBRARY";
pub const SEGMENT: &str = "craton_segment";
const PLACES: [&str; 3] = ["libcraton.so", "../lib/libcraton.so", "../lib/craton/libcraton.so"];

/// Absolute, fit for `LD_PRELOAD`.
pub fn find() -> Result<PathBuf, Failure> {
    let named = env::var_os(VARIABLE).filter(|name| !name.is_empty());
    let own = place::own()?;
    let found = seek(named.as_deref(), &own)?;
    check(&found)?;
    Ok(found)
}

fn seek(named: Option<&OsStr>, own: &Path) -> Result<PathBuf, Failure> {
    if let Some(named) = named {
        let path = std::path::absolute(named).unwrap_or_else(|_| named.into());
        return check_file(&path).map(|()| path.clone()).map_err(|why| {
            let (path, advice) = (path.display(), "name the file libcraton.so there, or unset the variable");
            Failure::Usage(format!("{VARIABLE} names {path}, which {why}; {advice}"))
        });
    }
    let directory = own.parent().unwrap_or(Path::new("/"));
    let places: Vec<PathBuf> = PLACES.iter().map(|place| join(directory, place)).collect();
    // Meant, even if bad.
    let Some(found) = places.iter().find(|place| place.is_file()) else {
        let tried: Vec<String> = places.iter().map(|place| place.display().to_string()).collect();
        let advice = "from the sources, `cargo build --release -p craton-preload` makes it";
        let tried = tried.join(", ");
        return Err(format!("cannot find libcraton.so; tried {tried}; set {VARIABLE} to its path; {advice}").into());
    };
    let advice = format!("install it anew, or set {VARIABLE} to another one");
    check_file(found).map_err(|why| format!("{} {why}; {advice}", found.display()))?;
    Ok(found.clone())
}

fn check_file(path: &Path) -> Result<(), String> {
    shared_object::check(path)?;
    // Our library's users refer to the name without defining it.
    let is_ours = symbols::defines(path, SEGMENT) == Some(true);
    is_ours.then_some(()).ok_or_else(|| "is a shared library, but not Craton's".to_owned())
}

/// Resolves `..`.
fn join(directory: &Path, place: &str) -> PathBuf {
    match (place.strip_prefix("../"), directory.parent()) {
        (Some(rest), Some(parent)) => parent.join(rest),
        _ => directory.join(place),
    }
}

/// The dynamic linker splits at spaces and colons.
fn check(path: &Path) -> Result<(), Failure> {
    if !path.as_os_str().as_bytes().iter().any(|b| matches!(b, b' ' | b':')) {
        return Ok(());
    }
    let path = path.display();
    Err(format!(
        "the library's path \"{path}\" has a space or a colon, at which LD_PRELOAD would cut it; make a link elsewhere, \
         such as `ln -s \"{path}\" \"$HOME/libcraton.so\"`, and set {VARIABLE} to that link"
    )
    .into())
}

pub fn preload(library: &Path, others: Option<&OsStr>) -> OsString {
    let mut list = library.as_os_str().to_owned();
    if let Some(others) = others.filter(|others| !others.is_empty()) {
        list.push(":");
        list.push(others);
    }
    list
}

pub fn without(list: Option<&OsStr>) -> OsString {
    let list = list.unwrap_or_default().as_bytes();
    let others = list.split(|b| matches!(b, b' ' | b':')).filter(|entry| !entry.is_empty() && !is_ours(entry));
    OsString::from_vec(others.collect::<Vec<_>>().join(&b':'))
}

pub fn is_in(list: &OsStr) -> bool {
    list.as_bytes().split(|b| matches!(b, b' ' | b':')).any(is_ours)
}

fn is_ours(entry: &[u8]) -> bool {
    entry.rsplit(|b| *b == b'/').next() == Some(b"libcraton.so")
}

#[cfg(test)]
mod tests;
