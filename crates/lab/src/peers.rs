//! The other allocators that Craton is compared with: which there are, where their libraries lie, what each needs.
//!
//! **What.** A [`Peer`] is a library to preload, with the variables that it needs. `make peers` builds some of them, Debian
//! packages others, and anything else can be named with its path. Peers run with their defaults; a variant, `NAME+WHAT`,
//! sets the best options that are known for it, and runs only when it is asked for.
//!
//! **Failure.** A name that is not known, or whose library is not there: an error that says what to do. Whether a library
//! really serves a program is for [`crate::measure`] to prove.

use crate::measure::Allocator;
use std::ffi::OsString;
use std::path::{Path, PathBuf};

/// The variable that names the directory of the libraries that `make peers` built, before any other place.
const VARIABLE: &str = "CRATON_PEERS";
/// Where that directory may be, relative to the program's own: a build, and installations.
const PLACES: [&str; 2] = ["peers", "../lib/craton/peers"];
/// Where the system's libraries lie.
const SYSTEM: [&str; 5] =
    ["/usr/lib/x86_64-linux-gnu", "/usr/lib/aarch64-linux-gnu", "/usr/lib64", "/usr/lib", "/usr/local/lib"];
/// The two that run in every comparison.
const ALWAYS: [&str; 2] = ["glibc", "craton"];

/// An allocator to compare with.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Peer {
    /// Its name in tables.
    pub name: String,
    /// The library to preload; none for a variant of the C library's own.
    pub library: Option<PathBuf>,
    /// Variables that its programs get.
    pub env: Vec<(OsString, OsString)>,
    /// Why they are set.
    pub note: Option<String>,
}

impl From<Peer> for Allocator {
    fn from(peer: Peer) -> Self {
        Self { name: peer.name, preload: peer.library, env: peer.env }
    }
}

/// Where a known peer's library comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Source {
    /// `make peers`; the name of the file without its ending.
    Built(&'static str),
    /// A package of Debian's, and its file.
    Package(&'static str, &'static str),
    /// The C library.
    Libc,
}

/// A peer that has a name here.
struct Known {
    name: &'static str,
    source: Source,
    /// A variable that is set for it, and why.
    sets: Option<(&'static str, &'static str, &'static str)>,
}

const fn built(name: &'static str) -> Known {
    Known { name, source: Source::Built(name), sets: None }
}

const fn package(name: &'static str, package: &'static str, file: &'static str) -> Known {
    Known { name, source: Source::Package(package, file), sets: None }
}

/// What glibc reads its own settings from.
const TUNABLES: &str = "GLIBC_TUNABLES";

const KNOWN: [Known; 14] = [
    Known {
        name: "tcmalloc",
        source: Source::Built("tcmalloc"),
        sets: Some((
            TUNABLES,
            "glibc.pthread.rseq=0",
            "its per-CPU caches need rseq, which glibc else registers first",
        )),
    },
    built("mimalloc3"),
    built("mimalloc2"),
    built("jemalloc"),
    built("snmalloc"),
    built("rpmalloc"),
    package("debian-mimalloc", "libmimalloc2.0", "libmimalloc.so.2.0"),
    package("debian-jemalloc", "libjemalloc2", "libjemalloc.so.2"),
    package("debian-tcmalloc", "libtcmalloc-minimal4", "libtcmalloc_minimal.so.4"),
    Known {
        name: "glibc+thp",
        source: Source::Libc,
        sets: Some((TUNABLES, "glibc.malloc.hugetlb=1", "asks for transparent hugepages")),
    },
    Known {
        name: "mimalloc3+thp",
        source: Source::Built("mimalloc3"),
        sets: Some(("MIMALLOC_ALLOW_THP", "2", "asks for transparent hugepages everywhere")),
    },
    Known {
        name: "mimalloc2+large",
        source: Source::Built("mimalloc2"),
        sets: Some(("MIMALLOC_ALLOW_LARGE_OS_PAGES", "1", "asks for large pages everywhere")),
    },
    Known {
        name: "jemalloc+thp",
        source: Source::Built("jemalloc"),
        sets: Some(("MALLOC_CONF", "thp:always,metadata_thp:always", "asks for transparent hugepages")),
    },
    Known {
        name: "jemalloc+background",
        source: Source::Built("jemalloc"),
        sets: Some(("MALLOC_CONF", "background_thread:true", "gives memory back by a thread of its own")),
    },
];

impl Known {
    /// Whether it runs only when asked for by name.
    fn is_variant(&self) -> bool {
        self.name.contains('+')
    }

    /// Its library, if it is there; `None` inside for a variant of the C library's.
    fn library(&self, directories: &[PathBuf]) -> Option<Option<PathBuf>> {
        let first = |mut places: Vec<PathBuf>, file: &str| {
            places.iter_mut().for_each(|place| place.push(file));
            places.into_iter().find(|path| path.is_file()).map(Some)
        };
        match self.source {
            Source::Built(name) => first(directories.to_vec(), &format!("{name}.so")),
            Source::Package(_, file) => first(SYSTEM.map(PathBuf::from).to_vec(), file),
            Source::Libc => Some(None),
        }
    }

    /// What to do to have it.
    fn advice(&self) -> String {
        match self.source {
            Source::Built(_) => format!("`make peers` builds it; {VARIABLE} names the folder where it lies"),
            Source::Package(package, _) => format!("install Debian's package {package}"),
            Source::Libc => String::new(),
        }
    }

    fn peer(&self, library: Option<PathBuf>) -> Peer {
        let set = |(key, value, _): (&str, &str, &str)| {
            // Tunables that are set already stay; of two of one name, glibc takes the last.
            let before = (key == TUNABLES).then(|| std::env::var_os(key)).flatten().filter(|before| !before.is_empty());
            let mut all = before.unwrap_or_default();
            if !all.is_empty() {
                all.push(":");
            }
            all.push(value);
            (OsString::from(key), all)
        };
        Peer {
            name: self.name.to_owned(),
            library,
            env: self.sets.map(set).into_iter().collect(),
            note: self.sets.map(|(key, value, why)| format!("{key}={value} is set for it: {why}")),
        }
    }
}

/// The directories in which what `make peers` built is sought, for the program `own`.
pub fn directories(own: &Path) -> Vec<PathBuf> {
    let named = std::env::var_os(VARIABLE).filter(|name| !name.is_empty()).map(PathBuf::from);
    let beside = own.parent().unwrap_or(Path::new("/"));
    named.into_iter().chain(PLACES.iter().map(|place| beside.join(place))).collect()
}

/// The peers of `list`, as `--peers` takes it: names and `NAME=PATH` with commas between, `all` for all that are found but
/// no variants, `none`. Without a list, all.
///
/// # Errors
/// A name that is not known or stands twice, or a library that is not there; with what to do.
pub fn select(list: Option<&str>, directories: &[PathBuf]) -> Result<Vec<Peer>, String> {
    let mut peers: Vec<Peer> = Vec::new();
    for word in list.unwrap_or("all").split(',').map(str::trim) {
        let found = match word {
            "none" => Vec::new(),
            "all" => all(directories),
            _ => vec![match word.split_once('=') {
                Some((name, path)) => other(name, path)?,
                None => named(word, directories)?,
            }],
        };
        for peer in found {
            if peers.iter().any(|other| other.name == peer.name) {
                if word == "all" {
                    continue;
                }
                return Err(format!("--peers: {} stands there twice; give each a name of its own", peer.name));
            }
            peers.push(peer);
        }
    }
    Ok(peers)
}

fn all(directories: &[PathBuf]) -> Vec<Peer> {
    let plain = KNOWN.iter().filter(|known| !known.is_variant());
    plain.filter_map(|known| Some(known.peer(known.library(directories)?))).collect()
}

fn named(name: &str, directories: &[PathBuf]) -> Result<Peer, String> {
    if ALWAYS.contains(&name) {
        return Err(format!("--peers {name}: {name} takes part in every comparison; leave it out"));
    }
    let Some(known) = KNOWN.iter().find(|known| known.name == name) else {
        let names: Vec<&str> = KNOWN.iter().map(|known| known.name).collect();
        return Err(format!(
            "--peers {name:?}: there is no such peer; there are: {}, and NAME=PATH for any other library",
            names.join(", ")
        ));
    };
    match known.library(directories) {
        Some(library) => Ok(known.peer(library)),
        None => Err(format!("--peers {name}: its library is not here: {}", known.advice())),
    }
}

/// Any other library. Its name must not be taken: two rows of one name would be mixed up.
fn other(name: &str, path: &str) -> Result<Peer, String> {
    if name.is_empty() || path.is_empty() || ALWAYS.contains(&name) || ["all", "none"].contains(&name) {
        return Err(format!("--peers {name}={path}: give NAME=PATH, with a name that is not taken: mine=./libmine.so"));
    }
    let library = std::path::absolute(path).map_err(|e| format!("--peers {name}={path}: {e}"))?;
    match std::fs::File::open(&library).and_then(|file| file.metadata()) {
        Ok(kind) if kind.is_file() => {}
        Ok(_) => return Err(format!("--peers {name}={path}: it is no file; name the library itself")),
        Err(e) => return Err(format!("--peers {name}={path}: cannot read it: {e}; check the path")),
    }
    Ok(Peer { name: name.to_owned(), library: Some(library), env: Vec::new(), note: None })
}

#[cfg(test)]
mod tests;
