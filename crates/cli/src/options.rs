//! Options of the library, as `-o` takes them and `CRATON_OPTIONS` carries them.
//!
//! **What.** Only the form is checked here: which keys and values there are, the library knows, and says on standard error
//! what it does not take. So a newer library needs no newer program. Of two settings of one key, it takes the last.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::Path;

/// The variable that carries them.
pub const VARIABLE: &str = "CRATON_OPTIONS";
/// The key whose value is a path.
const STATS_FILE: &[u8] = b"stats_file=";
/// The longest path that the library takes for a trace.
const LONGEST_TRACE: usize = 490;

/// One option, `key=value`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Setting(OsString);

impl Setting {
    /// The option in `text`.
    ///
    /// # Errors
    /// No `=`, no key before it, or a comma, which would end the value; but for the checks of `debug`, which commas separate.
    pub fn parse(text: OsString) -> Result<Self, String> {
        let bytes = text.as_bytes();
        if bytes.starts_with(b"=") || !bytes.contains(&b'=') {
            return Err("not of the form KEY=VALUE, such as thp=always".to_owned());
        }
        let is_list = bytes.strip_prefix(b"debug=").is_some_and(|checks| !checks.contains(&b'='));
        if bytes.contains(&b',') && !is_list {
            return Err("a value cannot contain a comma; give each option its own -o".to_owned());
        }
        Ok(Self(text))
    }

    /// The trace of the program's page heap, into a file, whose path does not depend on the folder that a process is in.
    ///
    /// # Errors
    /// An option cannot carry the path.
    pub fn trace(path: &Path) -> Result<Self, String> {
        if path == Path::new("-") {
            return Err("a trace cannot go to standard output; a file of that name is ./-".to_owned());
        }
        let path = std::path::absolute(path).map_err(|e| e.to_string())?;
        let bytes = path.as_os_str().as_bytes();
        if bytes.contains(&b',') {
            return Err("its absolute path has a comma, at which the list of options would be cut".to_owned());
        }
        match bytes.len() <= LONGEST_TRACE {
            true => Ok(Self(OsString::from_vec([b"trace=", bytes].concat()))),
            false => Err(format!("its absolute path is longer than {LONGEST_TRACE} bytes")),
        }
    }

    /// The statistics of each process, into a file.
    pub fn stats_file(path: &OsStr) -> Self {
        Self(OsString::from_vec([STATS_FILE, path.as_bytes()].concat()))
    }
}

/// A value of `CRATON_OPTIONS`: what is there, and `settings` behind it.
pub fn merge<'a>(there: Option<&OsStr>, settings: impl IntoIterator<Item = &'a Setting>) -> OsString {
    let mut all = there.map(OsStr::to_owned).unwrap_or_default();
    for Setting(setting) in settings {
        if !all.is_empty() {
            all.push(",");
        }
        all.push(setting);
    }
    all
}

/// The file that a value of `CRATON_OPTIONS` asks statistics to be appended to, if any.
pub fn stats_file(options: &OsStr) -> Option<&OsStr> {
    let mut paths = options.as_bytes().split(|b| *b == b',').filter_map(|option| option.strip_prefix(STATS_FILE));
    paths.next_back().filter(|path| !path.is_empty()).map(OsStr::from_bytes)
}

#[cfg(test)]
mod tests;
