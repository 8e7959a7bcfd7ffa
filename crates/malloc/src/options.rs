//! Options: `CRATON_OPTIONS=key=value,key=value`, in order, or set by the program.
//!
//! **Unsafe.** Reads the environment that the C library passes to constructors.

pub(crate) mod environment;
mod handlers;
pub(crate) mod remote;
pub(crate) mod wrong;

use crate::observe::recording;
use crate::observe::text::Text;
use crate::statics::SEGMENT;
use crate::{debug, govern};
use core::ffi::{CStr, c_char};
use craton_os::Line;
use craton_tables::options::{Key, NO_SUCH_KEY, OPTIONS};
use environment::{Items, text_in};
use wrong::Wrong;

/// # Safety
/// `environment` is null, or a null-terminated array of C strings.
pub(crate) unsafe fn from_environment(environment: *const *const c_char) {
    // SAFETY: by the contract.
    if let Some(text) = unsafe { text_in(environment) } {
        apply(text);
        recording::begin();
    }
}

fn apply(text: &[u8]) {
    for option in Items(text).filter(|o| !o.is_empty()) {
        if let Err(wrong) = try_setting(option, true) {
            complain(option, wrong);
        }
    }
}

pub(crate) fn complain(setting: &[u8], wrong: Wrong<'_>) {
    let line = Line::new().text("craton: option \"").bytes(setting).text("\": ");
    let line = if wrong.part.is_empty() { line } else { line.text("\"").bytes(wrong.part).text("\" ") };
    line.text(wrong.why).print();
}

pub(crate) fn try_setting(setting: &[u8], may_wait: bool) -> Result<(), Wrong<'_>> {
    match setting.iter().position(|b| *b == b'=') {
        Some(equals) => try_set(&setting[..equals], &setting[equals + 1..], may_wait),
        None => Err("not of the form key=value; ignored".into()),
    }
}

/// `may_wait`: for the end of the library's thread.
pub(crate) fn try_set<'a>(key: &[u8], value: &'a [u8], may_wait: bool) -> Result<(), Wrong<'a>> {
    let key = Key::named(key).ok_or(NO_SUCH_KEY)?;
    if handlers::set(key, value, may_wait) {
        SEGMENT.rest.record_option(key, value);
        return Ok(());
    }
    let why = match key {
        Key::Debug => debug::why_not(value),
        key => govern::why_not(key.row().key.as_bytes(), value).map(Wrong::from),
    };
    Err(why.unwrap_or(key.row().refusal.into()))
}

pub(crate) fn set(key: &[u8], value: &[u8]) -> bool {
    let set_and_record = |key| {
        let is_set = handlers::set(key, value, true);
        if is_set {
            SEGMENT.rest.record_option(key, value);
        }
        is_set
    };
    Key::named(key).is_some_and(set_and_record)
}

/// `false` for an unknown key or value.
pub fn set_by_program(key: &[u8], value: &[u8]) -> bool {
    let is_set = set(key, value);
    recording::begin();
    is_set
}

/// In the form in which it is set; `false` for an unknown key.
pub fn get(key: &[u8], into: &mut Text<'_>) -> bool {
    Key::named(key).map(|key| handlers::show(key, into)).is_some()
}

const NAME_MAX: usize = 24;

static NAMES: [[u8; NAME_MAX]; OPTIONS.len()] = {
    let mut names = [[0; NAME_MAX]; OPTIONS.len()];
    let mut i = 0;
    while i < names.len() {
        let key = OPTIONS[i].key.as_bytes();
        names[i].split_at_mut(key.len()).0.copy_from_slice(key);
        assert!(key.len() < NAME_MAX);
        i += 1;
    }
    names
};

/// In alphabetical order; `None` past the last.
pub fn name(i: usize) -> Option<&'static CStr> {
    NAMES.get(i).and_then(|name| CStr::from_bytes_until_nul(name).ok())
}

#[cfg(all(test, not(loom)))]
mod tests;
