//! The library's options, as `-o` and `CRATON_OPTIONS` have them.
//!
//! **What.** [`check`] refuses bad options before anything runs: with a misspelt limit a server
//! would run without one. The library finds errors that depend on the process, such as a limit
//! above another. The last setting of a key counts.

use crate::failure::Failure;
use crate::terminal::plain;
use crate::usage::nearest;
use craton_tables::amount::{decimal, size};
use craton_tables::options::{Choice, Form, LIMIT_LEAST, OPTIONS, PATH_MOST, When};
use std::ffi::{OsStr, OsString};
use std::fs::{self, OpenOptions};
use std::io;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::Path;

pub const VARIABLE: &str = "CRATON_OPTIONS";
const STATS_DIR: &[u8] = b"stats_dir=";
const STATS_FILE: &[u8] = b"stats_file=";
const DEBUG_FILE: &[u8] = b"debug_file=";
const DEBUG: &[u8] = b"debug=";
/// The library takes no longer path.
const LONGEST_FILE: usize = 490;
const LONGEST_DEBUG: usize = 256;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Setting(OsString);

impl Setting {
    /// Checks key and value.
    ///
    /// # Errors
    /// As [`check`], or a comma, which would end the value (except `debug`'s).
    pub fn parse(text: OsString) -> Result<Self, String> {
        let bytes = text.as_bytes();
        let is_list = bytes.strip_prefix(b"debug=").is_some_and(|checks| !checks.contains(&b'='));
        if bytes.contains(&b',') && !is_list {
            return Err("a value cannot contain a comma; give each option its own -o".to_owned());
        }
        check(&text)?;
        Ok(Self(text))
    }

    /// Checks key and value.
    ///
    /// # Errors
    /// As [`Setting::parse`] and [`check`].
    pub fn checked(text: OsString) -> Result<Self, String> {
        Self::parse(text).and_then(|setting| check(&setting.0).map(|()| setting))
    }

    /// A file that the process writes, by its absolute path.
    ///
    /// # Errors
    /// An option cannot carry the path, or no file can be created there.
    pub fn file(key: &str, path: &Path) -> Result<Self, String> {
        if path == Path::new("-") {
            return Err("it cannot go to standard output; a file of that name is ./-".to_owned());
        }
        let path = std::path::absolute(path).map_err(|e| e.to_string())?;
        let bytes = path.as_os_str().as_bytes();
        if bytes.contains(&b',') {
            return Err("its absolute path has a comma, at which the list of options would be cut".to_owned());
        }
        if bytes.len() > LONGEST_FILE {
            return Err(format!("its absolute path is longer than {LONGEST_FILE} bytes"));
        }
        let folder = path.parent().unwrap_or(&path);
        match fs::metadata(&path) {
            Ok(there) if there.is_dir() => Err("it is a folder".to_owned()),
            Ok(there) if !there.is_file() => Err("not an ordinary file".to_owned()),
            // `%p` becomes the process's number.
            Err(_) if !folder.is_dir() && !folder.to_string_lossy().contains("%p") => {
                Err(format!("there is no folder {}", folder.display()))
            }
            _ => {
                can_write(&path).map_err(|e| format!("cannot be written: {e}"))?;
                Ok(Self(OsString::from_vec([key.as_bytes(), b"=", bytes].concat())))
            }
        }
    }

    pub fn debug_file(path: &OsStr) -> Self {
        Self(OsString::from_vec([DEBUG_FILE, path.as_bytes()].concat()))
    }

    pub fn stats_dir(path: &OsStr) -> Self {
        Self(OsString::from_vec([STATS_DIR, path.as_bytes()].concat()))
    }

    pub fn stats_file(path: &OsStr) -> Self {
        Self(OsString::from_vec([STATS_FILE, path.as_bytes()].concat()))
    }
}

/// Tries, and removes a file that it made. No try where the library replaces `%p` in a folder's
/// name.
fn can_write(path: &Path) -> io::Result<()> {
    if path.parent().is_some_and(|folder| !folder.is_dir()) {
        return Ok(());
    }
    match OpenOptions::new().write(true).create_new(true).open(path) {
        Ok(_) => fs::remove_file(path),
        Err(e) if e.kind() == io::ErrorKind::AlreadyExists => OpenOptions::new().write(true).open(path).map(drop),
        Err(e) => Err(e),
    }
}

fn split(setting: &[u8]) -> Result<(&[u8], &[u8]), String> {
    match setting.iter().position(|b| *b == b'=') {
        Some(equals) if equals > 0 => Ok((&setting[..equals], &setting[equals + 1..])),
        _ => Err("not of the form KEY=VALUE, such as thp=always".to_owned()),
    }
}

fn option(setting: &OsStr) -> Result<(&'static Choice, &[u8]), String> {
    const ALL: &[Choice] = &OPTIONS;
    let (key, value) = split(setting.as_bytes())?;
    let key = String::from_utf8_lossy(key);
    let found = ALL.iter().find(|option| option.key == key);
    found.map(|option| (option, value)).ok_or_else(|| {
        let names = OPTIONS.map(|option| option.key);
        let meant = nearest(&key, &names).map_or(String::new(), |name| format!("did you mean `{name}`? "));
        format!("there is no option \"{key}\"; {meant}options: {}", names.join(", "))
    })
}

/// Checks `key=value` for a running process.
///
/// # Errors
/// As [`check`], or the option is fixed at the start.
pub fn check_live(setting: &OsStr) -> Result<(), String> {
    check(setting)?;
    let (Choice { key, when, .. }, _) = option(setting)?;
    match when {
        When::Start => {
            let setting = setting.to_string_lossy();
            Err(format!("`{key}` can be set at the start only: craton run -o {setting} -- CMD"))
        }
        When::Live | When::Before(_) => Ok(()),
    }
}

/// Before any process sees `key=value`.
///
/// # Errors
/// No `=` behind a key, no such option, or a bad value.
pub fn check(setting: &OsStr) -> Result<(), String> {
    let (option, value) = option(setting)?;
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

/// Settings that are right alone may contradict each other.
///
/// # Errors
/// A soft limit above the hard one before it, which the library would refuse.
pub fn agree(settings: &[Setting]) -> Result<(), Failure> {
    let limit = |value: &str| match value.strip_suffix('%') {
        Some(percent) => Some((true, decimal(percent.as_bytes())?)),
        None => Some((false, size(value.as_bytes())?)),
    };
    let mut hard: Option<&str> = None;
    for setting in settings.iter().filter_map(|Setting(text)| text.to_str()) {
        match setting.split_once('=') {
            Some(("hard_limit", value)) => hard = Some(value),
            Some(("soft_limit", soft)) => {
                let (own, other) = (limit(soft), hard.and_then(limit));
                if let (Some((unit, soft)), Some((other_unit, most))) = (own, other)
                    && unit == other_unit
                    && soft > most
                {
                    let hard = hard.unwrap_or_default();
                    return Err(Failure::Usage(format!(
                        "-o {setting}: above hard_limit={hard}; lower it, or raise that"
                    )));
                }
            }
            _ => {}
        }
    }
    Ok(())
}

/// # Errors
/// `--trace` or `--profile` is given, and `-o` names the file, too.
pub fn only_by_flag(settings: &[Setting], flag: &str, is_given: bool) -> Result<(), Failure> {
    let key = if flag == "profile" { "profile_file=" } else { "trace=" };
    let second = settings.iter().find(|Setting(text)| text.as_bytes().starts_with(key.as_bytes()));
    match second.filter(|_| is_given) {
        None => Ok(()),
        Some(Setting(second)) => {
            let second = plain(&second.to_string_lossy());
            Err(Failure::Usage(format!("--{flag} and -o {second} both name the file; give one of them")))
        }
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

pub fn debug_file(options: &OsStr) -> Option<&OsStr> {
    last(options, DEBUG_FILE)
}

/// Whether `debug` turns any check on.
pub fn checks(options: &OsStr) -> bool {
    last(options, DEBUG).is_some_and(|checks| !["0", "none"].iter().any(|none| checks == *none))
}

/// Whether processes search for leaks at exit.
pub fn searches_leaks(options: &OsStr) -> bool {
    names_check(options, |check| check == b"all" || check == b"leak")
}

/// Whether a check is on that reports anything: `audit` alone does not.
pub fn reports(options: &OsStr) -> bool {
    names_check(options, |check| !matches!(check, b"" | b"0" | b"none" | b"audit"))
}

/// Commas separate checks, as they do options.
fn names_check(options: &OsStr, is_it: impl Fn(&[u8]) -> bool) -> bool {
    let options: Vec<&[u8]> = options.as_bytes().split(|b| *b == b',').collect();
    let Some(debug) = options.iter().rposition(|option| option.starts_with(DEBUG)) else { return false };
    let more = options[debug + 1..].iter().take_while(|option| !option.contains(&b'='));
    let checks = std::iter::once(&options[debug][DEBUG.len()..]).chain(more.copied());
    // Targets stand behind a colon.
    checks.filter_map(|check| check.split(|b| *b == b':').next()).any(is_it)
}

fn last<'a>(options: &'a OsStr, key: &[u8]) -> Option<&'a OsStr> {
    let mut paths = options.as_bytes().split(|b| *b == b',').filter_map(|option| option.strip_prefix(key));
    paths.next_back().filter(|path| !path.is_empty()).map(OsStr::from_bytes)
}

#[cfg(test)]
mod tests;
