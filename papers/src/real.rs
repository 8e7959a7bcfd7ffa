//! Real programs as loads: each is a bash script in `real/`, for any preloaded allocator.
//!
//! Of a server's load only the server runs on the measured allocator, not `craton-drive`
//! ([`drive`]). A result is compared with numbers counted when the input was made, or with that of
//! no preloaded allocator.

pub mod drive;

use std::ffi::{OsStr, OsString};
use std::fs;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Size {
    /// 0.1 to 0.4 s on glibc: for tests.
    Quick,
    /// 1 to 2 s on glibc; `sort` half a second, to keep its files small.
    Full,
}

impl Size {
    pub fn name(self) -> &'static str {
        match self {
            Self::Quick => "quick",
            Self::Full => "full",
        }
    }
}

pub struct Real {
    /// Lower case, digits and hyphens; its files begin with it.
    pub name: &'static str,
    pub about: &'static str,
    pub from: &'static str,
    pub programs: &'static [&'static str],
    pub package: &'static str,
    pub script: &'static str,
}

const COMMON: &str = include_str!("real/common.sh");
const TOOLS: [&str; 4] = ["bash", "awk", "sed", "cmp"];
/// Inputs are made without these.
const ALLOCATORS: [&str; 3] = ["LD_PRELOAD", "GLIBC_TUNABLES", "CRATON_OPTIONS"];
const OURS: &str = "this project";

macro_rules! real {
    ($($name:literal by $from:expr, $program:literal in $package:literal: $about:literal;)*) => {
        pub const REAL: &[Real] = &[$(Real {
            name: $name,
            about: $about,
            from: $from,
            programs: &[$program],
            package: $package,
            script: include_str!(concat!("real/", $name, ".sh")),
        }),*];
    };
}

// Name; source; program, and its Debian package; description.
real! {
    "redis-list" by "TEMERAIRE §5.1", "redis-server" in "redis-server":
        "redis-server: push five elements to a list and read those five";
    "redis-set" by OURS, "redis-server" in "redis-server":
        "redis-server: values of many sizes, overwritten, read and deleted";
    "memcached" by OURS, "memcached" in "memcached":
        "memcached (its own slabs): values of many sizes, overwritten, read and deleted";
    "sqlite3" by OURS, "sqlite3" in "sqlite3":
        "sqlite3 in memory: inserts, indexes, order by, group by, delete";
    "python3" by OURS, "python3" in "python3":
        "python3: dictionaries, lists and strings (PYTHONMALLOC=malloc)";
    "gcc" by OURS, "gcc" in "gcc":
        "gcc -O1 -c of a C file with many functions";
    "cxx" by OURS, "g++" in "g++":
        "g++ -O1 -c of a C++ file with templates over many types";
    "z3" by "the program: mimalloc-bench; the load: this project", "z3" in "z3":
        "z3: pigeons and holes, and the factors of a number";
    "ghostscript" by "the program: mimalloc-bench; the load: this project", "gs" in "ghostscript":
        "gs: pages of curves, clips and text drawn to a picture";
    "rocksdb" by "the program: mimalloc-bench; the load: this project", "db_bench" in "rocksdb-tools":
        "db_bench of RocksDB: fillrandom, readrandom";
    "perl" by OURS, "perl" in "perl":
        "perl: strings, arrays and nested hashes";
    "sort" by OURS, "sort" in "coreutils":
        "sort of the coreutils: a large file, two threads";
}

pub fn find(name: &str) -> Option<&'static Real> {
    REAL.iter().find(|real| real.name == name)
}

impl Real {
    pub fn available(&self) -> Result<(), String> {
        let path = std::env::var_os("PATH").unwrap_or_default();
        let missing = |programs: &[&'static str]| -> Vec<&str> {
            programs.iter().copied().filter(|program| !on_path(program, &path)).collect()
        };
        let programs = missing(self.programs);
        if !programs.is_empty() {
            return Err(format!(
                "{}: {} is not on PATH; install Debian's {}, or what your system calls it",
                self.name,
                programs.join(", "),
                self.package
            ));
        }
        match missing(&TOOLS).as_slice() {
            [] => Ok(()),
            tools => Err(format!("{}: the script needs {}, which is not on PATH", self.name, tools.join(", "))),
        }
    }
}

fn on_path(program: &str, path: &OsStr) -> bool {
    std::env::split_paths(path).any(|dir| {
        fs::metadata(dir.join(program)).is_ok_and(|found| found.is_file() && found.permissions().mode() & 0o111 != 0)
    })
}

fn driver() -> Result<PathBuf, String> {
    let exe = std::env::current_exe().map_err(|e| format!("cannot tell where this program lies: {e}"))?;
    let places = exe.ancestors().skip(1).take(2).flat_map(|dir| [dir.to_owned(), dir.join("lib/craton")]);
    let found = places.map(|dir| dir.join("craton-drive")).find(|path| path.is_file());
    found
        .ok_or_else(|| format!("craton-drive is not beside {}; from the sources, `make build` makes it", exe.display()))
}

/// Several loads may share `dir`.
pub fn prepare(dir: &Path, real: &Real, size: Size) -> Result<Vec<OsString>, String> {
    let failed = |what: &Path, why: std::io::Error| format!("{}: cannot write {}: {why}", real.name, what.display());
    fs::create_dir_all(dir).map_err(|e| failed(dir, e))?;
    let dir = dir.canonicalize().map_err(|e| failed(dir, e))?;
    let script = dir.join(format!("{}.sh", real.name));
    for (path, text) in [(&script, real.script), (&dir.join("common.sh"), COMMON)] {
        fs::write(path, text).map_err(|e| failed(path, e))?;
    }
    let mut command = Command::new("bash");
    command.arg(&script).arg("prepare").arg(&dir).arg(size.name()).arg(driver()?).stdin(Stdio::null());
    ALLOCATORS.iter().for_each(|variable| {
        command.env_remove(variable);
    });
    let output = command.output().map_err(|e| format!("{}: cannot start bash: {e}", real.name))?;
    if !output.status.success() {
        let said = String::from_utf8_lossy(&output.stderr);
        return Err(format!("{}: the inputs were not made ({}): {}", real.name, output.status, said.trim_end()));
    }
    let words: Vec<OsString> = output
        .stdout
        .split(|byte| *byte == b'\n')
        .filter(|word| !word.is_empty())
        .map(|word| OsString::from_vec(word.to_vec()))
        .collect();
    if words.is_empty() || words.iter().any(|word| word.as_bytes().contains(&0)) {
        return Err(format!("{}: the script named no command; is {} changed?", real.name, script.display()));
    }
    Ok(words)
}

#[cfg(test)]
mod tests;
