//! Other allocators: names, libraries, and the selection for a comparison.

mod known;

pub use known::{KNOWN, Known, Note, Setting, Source};

use crate::measure::Allocator;
use crate::shared_object;
use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};

/// The directory of `make peers`' libraries.
pub const DIRECTORY_VARIABLE: &str = "CRATON_PEERS";
const SYSTEM: [&str; 4] = ["/usr/lib/x86_64-linux-gnu", "/usr/lib64", "/usr/lib", "/usr/local/lib"];
const ALWAYS: [&str; 2] = ["glibc", "craton"];

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Peer {
    pub name: String,
    /// None: glibc with settings.
    pub library: Option<PathBuf>,
    pub env: Vec<(OsString, OsString)>,
    pub note: Option<Note>,
}

impl From<Peer> for Allocator {
    fn from(peer: Peer) -> Self {
        Self { name: peer.name, preload: peer.library, env: peer.env }
    }
}

pub fn known() -> &'static [Known] {
    &KNOWN
}

/// For a `program` at this path: CRATON_PEERS, `peers` beside it, the installation's.
pub fn directories(program: &Path) -> Vec<PathBuf> {
    directories_with(program, std::env::var_os(DIRECTORY_VARIABLE))
}

fn directories_with(program: &Path, variable: Option<OsString>) -> Vec<PathBuf> {
    let named = variable.filter(|value| !value.is_empty()).map(PathBuf::from);
    let beside = program.parent().map(|directory| directory.join("peers"));
    let installed = program.parent().and_then(Path::parent).map(|prefix| prefix.join("lib/craton/peers"));
    [named, beside, installed].into_iter().flatten().collect()
}

/// Commas separate `all` (the default: every base peer found), `none`, names of [`known()`], or
/// `NAME=LIBRARY`.
pub fn select(list: Option<&str>, directories: &[PathBuf], craton: &Path) -> Result<Vec<Peer>, String> {
    let system: Vec<PathBuf> = SYSTEM.iter().map(PathBuf::from).collect();
    Places { built: directories, system: &system, craton, variable: &|name| std::env::var_os(name) }.select(list)
}

struct Places<'a> {
    built: &'a [PathBuf],
    system: &'a [PathBuf],
    craton: &'a Path,
    /// Of this process; a peer's settings are added.
    variable: &'a dyn Fn(&str) -> Option<OsString>,
}

impl Places<'_> {
    fn select(&self, list: Option<&str>) -> Result<Vec<Peer>, String> {
        let list = list.unwrap_or("all").trim();
        if list == "none" {
            return Ok(Vec::new());
        }
        let mut peers: Vec<Peer> = Vec::new();
        for item in list.split(',').map(str::trim) {
            let found = match item.split_once('=') {
                Some((name, library)) => vec![own(name, Path::new(library))?],
                None if item == "all" => self.every_base(),
                None => vec![self.named(item)?],
            };
            for peer in found {
                if peers.iter().any(|other| other.name == peer.name) {
                    return Err(format!("the peer `{}` is in the list `{list}` twice: take one out", peer.name));
                }
                peers.push(peer);
            }
        }
        Ok(peers)
    }

    fn every_base(&self) -> Vec<Peer> {
        known().iter().filter(|known| !known.is_variant()).filter_map(|known| self.find(known).ok()).collect()
    }

    fn named(&self, name: &str) -> Result<Peer, String> {
        if let Some(known) = known().iter().find(|known| known.name == name) {
            return self.find(known);
        }
        Err(match name {
            "" => "the list of peers has an empty name in it; write `none` for no peers".to_owned(),
            "none" => "`none` stands alone: take it or the other peers out of the list".to_owned(),
            _ if ALWAYS.contains(&name) => format!("`{name}` is not a peer: it always runs, take it out of the list"),
            _ => format!("there is no peer `{name}`; peers: {}, and any NAME=LIBRARY", names()),
        })
    }

    fn find(&self, known: &Known) -> Result<Peer, String> {
        let library = match known.source {
            Source::Glibc => None,
            Source::Craton => Some(self.craton.to_owned()),
            Source::Built(file) => Some(first(self.built, file).ok_or_else(|| {
                let (name, peer) = (known.name, file.trim_end_matches(".so"));
                let places = places(self.built);
                format!("{name}: there is no {file} {places}; `make peers PEERS={peer}` builds it")
            })?),
            Source::Installed { file, package } => Some(first(self.system, file).ok_or_else(|| {
                let (name, places) = (known.name, places(self.system));
                format!("{name}: there is no {file} {places}; it is Debian's package {package}, install that")
            })?),
        };
        let env = known
            .settings
            .iter()
            .map(|s| (OsString::from(s.variable), s.merged((self.variable)(s.variable).as_deref())))
            .collect();
        Ok(Peer { name: known.name.to_owned(), library, env, note: known.note })
    }
}

fn first(directories: &[PathBuf], file: &str) -> Option<PathBuf> {
    directories.iter().map(|directory| directory.join(file)).find(|path| path.is_file())
}

fn places(directories: &[PathBuf]) -> String {
    if directories.is_empty() {
        return format!("(no directory of peers is known: set {DIRECTORY_VARIABLE})");
    }
    let paths: Vec<String> = directories.iter().map(|directory| directory.display().to_string()).collect();
    format!("in {}", paths.join(", "))
}

fn names() -> String {
    let names: Vec<&str> = known().iter().map(|known| known.name).collect();
    format!("all, none, {}", names.join(", "))
}

fn own(name: &str, library: &Path) -> Result<Peer, String> {
    let plain = |c: char| c.is_ascii_alphanumeric() || "._+-".contains(c);
    if name.is_empty() || !name.chars().all(plain) {
        return Err(format!("`{name}` is no name for {}: letters, digits and . _ + - are", library.display()));
    }
    // A name has one meaning in every table.
    if ["all", "none"].contains(&name) || ALWAYS.contains(&name) || known().iter().any(|known| known.name == name) {
        return Err(format!("`{name}` is taken; give {} another name, such as `my-{name}`", library.display()));
    }
    if library.as_os_str() == OsStr::new("") || !library.exists() {
        return Err(format!("{name}: there is no file `{}`", library.display()));
    }
    shared_object::check(library).map_err(|why| format!("{name}: `{}` {why}", library.display()))?;
    Ok(Peer { name: name.to_owned(), library: Some(library.to_owned()), env: Vec::new(), note: None })
}

#[cfg(test)]
mod tests;
