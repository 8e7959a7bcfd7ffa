//! Proof that Craton served a command.
//!
//! **What.** Each run on Craton gets a `stats_file` of its own: a served process appends a line of JSON there when it
//! exits, with what its heap handed out. One such line is proof that the library's malloc was the process's: a command
//! may well start others that are linked statically. A program like `true`, which never allocates, was served too.
//!
//! **Failure.** Without a directory to put the file in there is no proof, and no run: the error says why.

use serde_json::Value;
use std::ffi::{OsStr, OsString};
use std::fs::{self, DirBuilder, OpenOptions};
use std::io::Write;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};

/// The option that names the file.
const OPTION: &[u8] = b"stats_file=";
/// The longest parent directory: the library takes a path of 511 bytes, and the rest of it is shorter than 100.
const LONGEST: usize = 400;

/// A private directory, removed with its files when dropped.
pub struct Directory(Result<PathBuf, String>);

impl Directory {
    /// Makes one under the directory for temporary files.
    pub fn new() -> Self {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let parent = place(&std::env::temp_dir());
        loop {
            // An earlier process of the same number may have been killed before it removed its directory.
            let number = NEXT.fetch_add(1, Relaxed);
            let path = parent.join(format!("craton-lab-{}-{number}", std::process::id()));
            match DirBuilder::new().mode(0o700).create(&path) {
                Ok(()) => return Self(Ok(path)),
                Err(e) if e.kind() == std::io::ErrorKind::AlreadyExists => {}
                Err(e) => return Self(Err(format!("cannot create {} for files: {e}", path.display()))),
            }
        }
    }

    /// Where it is.
    pub fn path(&self) -> Result<&Path, String> {
        self.0.as_deref().map_err(Clone::clone)
    }

    /// The file for the next run, which does not exist yet.
    pub fn file(&self) -> Result<PathBuf, String> {
        let file = self.path()?.join("stats");
        let _ = fs::remove_file(&file);
        Ok(file)
    }
}

impl Drop for Directory {
    fn drop(&mut self) {
        if let Ok(path) = &self.0 {
            let _ = fs::remove_dir_all(path);
        }
    }
}

/// Where the directory goes: absolute, since the command may change its own, and fit for an option's value, which a comma
/// would end.
fn place(temporary: &Path) -> PathBuf {
    let fits = |path: &PathBuf| !path.as_os_str().as_bytes().contains(&b',') && path.as_os_str().len() <= LONGEST;
    std::path::absolute(temporary).ok().filter(fits).unwrap_or_else(|| "/tmp".into())
}

/// `options` of Craton with `file` as the file for statistics; of two, the library takes the last.
pub fn options_with(options: Option<&OsStr>, file: &Path) -> OsString {
    let mut text = options.map(|o| o.as_bytes().to_vec()).filter(|o| !o.is_empty()).unwrap_or_default();
    if !text.is_empty() {
        text.push(b',');
    }
    text.extend(OPTION);
    text.extend(file.as_os_str().as_bytes());
    OsString::from_vec(text)
}

/// Whether a process ran on the library: it wrote a line of statistics to `file`.
pub fn served(file: &Path) -> bool {
    let text = fs::read_to_string(file).unwrap_or_default();
    let is_statistics = |line| serde_json::from_str::<Value>(line).is_ok_and(|v| v.get("refills").is_some());
    text.lines().any(is_statistics)
}

/// Appends the lines to the file that `options` had asked for before, if any.
pub fn pass_on(file: &Path, options: Option<&OsStr>) {
    let wanted =
        options.and_then(|o| o.as_bytes().split(|b| *b == b',').filter_map(|o| o.strip_prefix(OPTION)).next_back());
    if let (Some(wanted), Ok(lines)) = (wanted.filter(|w| !w.is_empty()), fs::read(file)) {
        let target = OpenOptions::new().append(true).create(true).open(OsStr::from_bytes(wanted));
        if let Err(e) = target.and_then(|mut target| target.write_all(&lines)) {
            eprintln!("craton: stats_file: cannot append to {}: {e}", String::from_utf8_lossy(wanted));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_directory_suits_a_command_that_changes_its_own_and_the_options_value() {
        assert_eq!(place(Path::new("/var/tmp")), Path::new("/var/tmp"));
        assert_eq!(place(Path::new("some/where")), std::env::current_dir().unwrap().join("some/where"));
        assert_eq!(place(Path::new("/a,b")), Path::new("/tmp"));
        assert_eq!(place(Path::new(&format!("/{}", "x".repeat(LONGEST)))), Path::new("/tmp"));
    }
}
