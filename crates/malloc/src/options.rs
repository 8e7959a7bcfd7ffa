//! Options: `CRATON_OPTIONS=key=value,key=value`, or set by the program.
//!
//! **What.** Finds the options in the environment and applies them in their order. Which options there are, and which values
//! they take, says the table in `craton_tables`; what each does, [`handlers`].
//!
//! **Failure.** An unknown key or a bad value is one line on standard error; the program continues.
//!
//! **Unsafe.** Reads the environment that the C library passes to constructors.

pub(crate) mod environment;
mod handlers;
pub(crate) mod remote;
pub(crate) mod wrong;

use crate::observe::recording;
use crate::observe::text::Text;
use crate::{debug, govern};
use core::ffi::{CStr, c_char};
use craton_os::Line;
use craton_tables::options::{Key, NO_SUCH_KEY, OPTIONS};
use environment::{Items, text_in};
use wrong::Wrong;

/// Applies the variable `CRATON_OPTIONS` of an environment.
///
/// # Safety
/// `environment` is null, or an array of C strings ended by null.
pub(crate) unsafe fn from_environment(environment: *const *const c_char) {
    // SAFETY: by the contract.
    if let Some(text) = unsafe { text_in(environment) } {
        apply(text);
        recording::begin();
    }
}

/// Applies a list of options, saying on standard error what it does not understand.
fn apply(text: &[u8]) {
    for option in Items(text).filter(|o| !o.is_empty()) {
        if let Err(wrong) = try_setting(option, true) {
            complain(option, wrong);
        }
    }
}

/// Says on standard error what is wrong with a setting.
pub(crate) fn complain(setting: &[u8], wrong: Wrong<'_>) {
    let line = Line::new().text("craton: option \"").bytes(setting).text("\": ");
    let line = if wrong.part.is_empty() { line } else { line.text("\"").bytes(wrong.part).text("\" ") };
    line.text(wrong.why).print();
}

/// Sets what `key=value` says, or tells what is wrong with it; as [`try_set`].
pub(crate) fn try_setting(setting: &[u8], may_wait: bool) -> Result<(), Wrong<'_>> {
    match setting.iter().position(|b| *b == b'=') {
        Some(equals) => try_set(&setting[..equals], &setting[equals + 1..], may_wait),
        None => Err("not of the form key=value; ignored".into()),
    }
}

/// Sets one option, or says what is wrong with it. A caller that may not wait for the end of the heap's thread leaves that
/// to the thread.
pub(crate) fn try_set<'a>(key: &[u8], value: &'a [u8], may_wait: bool) -> Result<(), Wrong<'a>> {
    let key = Key::named(key).ok_or(NO_SUCH_KEY)?;
    if handlers::set(key, value, may_wait) {
        return Ok(());
    }
    let why = match key {
        Key::Debug => debug::why_not(value),
        key => govern::why_not(key.row().key.as_bytes(), value).map(Wrong::from),
    };
    Err(why.unwrap_or(key.row().refusal.into()))
}

/// Sets one option; `false` when the key or the value is not known.
pub(crate) fn set(key: &[u8], value: &[u8]) -> bool {
    Key::named(key).is_some_and(|key| handlers::set(key, value, true))
}

/// Sets an option while the program runs; `false` when there is no such key or value.
pub fn set_by_program(key: &[u8], value: &[u8]) -> bool {
    let is_set = set(key, value);
    recording::begin();
    is_set
}

/// Writes what an option is set to, in the form in which it is set; `false` when there is no such key.
pub fn get(key: &[u8], into: &mut Text<'_>) -> bool {
    Key::named(key).map(|key| handlers::show(key, into)).is_some()
}

/// Bytes of a key, its closing 0 included, at most.
const NAME_MAX: usize = 24;

/// The keys as C strings.
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

/// Key of the `i`-th option, by the alphabet; `None` behind the last.
pub fn name(i: usize) -> Option<&'static CStr> {
    NAMES.get(i).and_then(|name| CStr::from_bytes_until_nul(name).ok())
}

#[cfg(all(test, not(loom)))]
mod tests;
