//! The library's options, as `-o` and `CRATON_OPTIONS` have them.
//!
//! **What.** [`check`] refuses bad options before anything runs, for `compare` and `set`. `run`
//! does so for `hardened` alone, without which the program would lack its protection; the library
//! reports others, and also finds errors that depend on the process, such as a limit above another.
//! The last setting of a key counts.

use crate::usage::nearest;
use craton_tables::amount::{decimal, size};
use craton_tables::options::{Form, LIMIT_LEAST, OPTIONS, PATH_MOST};
use std::ffi::{OsStr, OsString};
use std::fs;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::Path;

pub const VARIABLE: &str = "CRATON_OPTIONS";
const STATS_DIR: &[u8] = b"stats_dir=";
const STATS_FILE: &[u8] = b"stats_file=";
const HARDENED: &[u8] = b"hardened";
/// The library takes no longer path.
const LONGEST_TRACE: usize = 490;
const LONGEST_DEBUG: usize = 256;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Setting(OsString);

impl Setting {
    /// Checks no value but that of `hardened`.
    ///
    /// # Errors
    /// Not `KEY=VALUE`, a comma, which would end the value (except `debug`'s), or a bad value of
    /// `hardened`.
    pub fn parse(text: OsString) -> Result<Self, String> {
        let bytes = text.as_bytes();
        let is_list = bytes.strip_prefix(b"debug=").is_some_and(|checks| !checks.contains(&b'='));
        if bytes.contains(&b',') && !is_list {
            return Err("a value cannot contain a comma; give each option its own -o".to_owned());
        }
        let (key, _) = split(bytes)?;
        if key == HARDENED {
            check(&text)?;
        }
        Ok(Self(text))
    }

    /// Checks key and value.
    ///
    /// # Errors
    /// As [`Setting::parse`] and [`check`].
    pub fn checked(text: OsString) -> Result<Self, String> {
        Self::parse(text).and_then(|setting| check(&setting.0).map(|()| setting))
    }

    /// Records the trace into a file, by its absolute path.
    ///
    /// # Errors
    /// An option cannot carry the path, or no file can be created there.
    pub fn trace(path: &Path) -> Result<Self, String> {
        if path == Path::new("-") {
            return Err("a trace cannot go to standard output; a file of that name is ./-".to_owned());
        }
        let path = std::path::absolute(path).map_err(|e| e.to_string())?;
        let bytes = path.as_os_str().as_bytes();
        if bytes.contains(&b',') {
            return Err("its absolute path has a comma, at which the list of options would be cut".to_owned());
        }
        if bytes.len() > LONGEST_TRACE {
            return Err(format!("its absolute path is longer than {LONGEST_TRACE} bytes"));
        }
        let folder = path.parent().unwrap_or(&path);
        match fs::metadata(&path) {
            Ok(there) if there.is_dir() => Err("it is a folder".to_owned()),
            Ok(there) if !there.is_file() => Err("not an ordinary file".to_owned()),
            // `%p` becomes the process's number.
            Err(_) if !folder.is_dir() && !folder.to_string_lossy().contains("%p") => {
                Err(format!("there is no folder {}", folder.display()))
            }
            _ => Ok(Self(OsString::from_vec([b"trace=", bytes].concat()))),
        }
    }

    pub fn stats_dir(path: &OsStr) -> Self {
        Self(OsString::from_vec([STATS_DIR, path.as_bytes()].concat()))
    }

    pub fn stats_file(path: &OsStr) -> Self {
        Self(OsString::from_vec([STATS_FILE, path.as_bytes()].concat()))
    }
}

fn split(setting: &[u8]) -> Result<(&[u8], &[u8]), String> {
    match setting.iter().position(|b| *b == b'=') {
        Some(equals) if equals > 0 => Ok((&setting[..equals], &setting[equals + 1..])),
        _ => Err("not of the form KEY=VALUE, such as thp=always".to_owned()),
    }
}

/// Before any process sees `key=value`.
///
/// # Errors
/// No `=` behind a key, no such option, or a bad value.
pub fn check(setting: &OsStr) -> Result<(), String> {
    let (key, value) = split(setting.as_bytes())?;
    let key = String::from_utf8_lossy(key);
    let Some(option) = OPTIONS.iter().find(|option| option.key == key) else {
        let names = OPTIONS.map(|option| option.key);
        let meant = nearest(&key, &names).map_or(String::new(), |name| format!("did you mean `{name}`? "));
        return Err(format!("there is no option \"{key}\"; {meant}options: {}", names.join(", ")));
    };
    let text = String::from_utf8_lossy(value);
    match option.form {
        Form::Path if value.len() <= PATH_MOST => Ok(()),
        Form::Checks(words) => check_debug(&text, words),
        form if takes(form, &text) => Ok(()),
        Form::Amount(..) | Form::Limit(_) if size(value).is_some_and(|n| (1..LIMIT_LEAST).contains(&n)) => {
            Err("too little for any program to run (1M is the least)".to_owned())
        }
        _ => Err(option.refusal.trim_end_matches("; ignored").to_owned()),
    }
}

fn takes(form: Form, value: &str) -> bool {
    let in_bytes = |least, most| size(value.as_bytes()).is_some_and(|n| (least..=most).contains(&n));
    let is_other = match form {
        Form::Bytes(most) => in_bytes(0, most),
        Form::Count(_, least, most) => decimal(value.as_bytes()).is_some_and(|n| (least..=most).contains(&n)),
        Form::Percent => in_bytes(0, 100),
        Form::Amount(_, least) => in_bytes(least, u64::MAX),
        Form::Limit(_) => match value.strip_suffix('%') {
            Some(percent) => decimal(percent.as_bytes()).is_some_and(|n| (1..=100).contains(&n)),
            None => in_bytes(LIMIT_LEAST, u64::MAX),
        },
        Form::Words(_) | Form::Checks(_) | Form::Path => false,
    };
    is_other || form.words().contains(&value)
}

/// But for cache names among its targets.
fn check_debug(value: &str, words: &[&str]) -> Result<(), String> {
    let (checks, targets) = value.split_once(':').map_or((value, None), |(checks, targets)| (checks, Some(targets)));
    let is_none = matches!(checks, "" | "0" | "none");
    let wrong = checks.split(',').find(|check| *check == "none" || !words.contains(check)).filter(|_| !is_none);
    if let Some(wrong) = wrong {
        return Err(match wrong {
            "none" => "\"none\" turns all checks off, and so stands alone".to_owned(),
            _ => format!("\"{wrong}\" is no check; checks: {}", words.join(", ")),
        });
    }
    let is_target = |target: &str| match target.bytes().all(|b| b.is_ascii_digit()) {
        true => decimal(target.as_bytes()).is_some_and(|bytes| bytes <= isize::MAX as u64),
        false => size(target.as_bytes()).is_none(),
    };
    if let Some(wrong) = targets.and_then(|targets| targets.split('+').find(|target| !is_target(target))) {
        return Err(format!(
            "\"{wrong}\" is no target; targets stand behind a colon with + between them: sizes in bytes, large, malloc, \
             names of object caches"
        ));
    }
    match value.len() <= LONGEST_DEBUG {
        true => Ok(()),
        false => Err(format!("longer than {LONGEST_DEBUG} bytes")),
    }
}

/// Appends `settings`.
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

pub fn stats_file(options: &OsStr) -> Option<&OsStr> {
    last(options, STATS_FILE)
}

pub fn stats_dir(options: &OsStr) -> Option<&OsStr> {
    last(options, STATS_DIR)
}

fn last<'a>(options: &'a OsStr, key: &[u8]) -> Option<&'a OsStr> {
    let mut paths = options.as_bytes().split(|b| *b == b',').filter_map(|option| option.strip_prefix(key));
    paths.next_back().filter(|path| !path.is_empty()).map(OsStr::from_bytes)
}

#[cfg(test)]
mod tests;
