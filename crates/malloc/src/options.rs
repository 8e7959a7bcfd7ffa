//! Options: `CRATON_OPTIONS=key=value,key=value`, or set by the program.
//!
//! **What.** Finds the options in the environment and applies them in their order. Which options there are, and which values
//! they take, says the table in `craton_tables`; what each does, [`handlers`].
//!
//! **Failure.** An unknown key or a bad value is one line on standard error; the program continues.
//!
//! **Unsafe.** Reads the environment that the C library passes to constructors.

mod handlers;

pub(crate) use crate::statics::{KIT, STATS, STATS_FILE, STATS_TO};
pub(crate) use handlers::PATH_MAX;

use crate::text::Text;
use crate::{debug, limits, trace};
use core::ffi::{CStr, c_char};
use craton_os::Line;
use craton_tables::options::{Key, NO_SUCH_KEY, OPTIONS};

/// Applies the variable `CRATON_OPTIONS` of an environment.
///
/// # Safety
/// `environment` is null, or an array of C strings ended by null.
pub(crate) unsafe fn from_environment(environment: *const *const c_char) {
    // SAFETY: by the contract.
    if let Some(text) = unsafe { text_in(environment) } {
        apply(text);
        trace::begin();
    }
}

/// Sets the option `debug` as the environment says, before the program has asked for anything.
///
/// # Safety
/// As [`find`].
pub(crate) unsafe fn debug_from_environment(environment: *const *const c_char) {
    // What is wrong with a value is said when all options are read.
    // SAFETY: by the contract.
    unsafe {
        find(environment, b"audit_log", |value| _ = KIT.set_log_entries(value));
        find(environment, b"debug", |value| _ = debug::set(value));
    }
}

/// Calls `each` with every value that an environment has for a key.
///
/// # Safety
/// As [`from_environment`], and nobody changes the environment meanwhile.
pub(crate) unsafe fn find(environment: *const *const c_char, key: &[u8], mut each: impl FnMut(&[u8])) {
    // SAFETY: by the contract.
    let text = unsafe { text_in(environment) }.unwrap_or_default();
    Items(text).filter_map(|option| option.strip_prefix(key)?.strip_prefix(b"=")).for_each(&mut each);
}

/// The variable `CRATON_OPTIONS` of an environment.
///
/// # Safety
/// As [`find`], for as long as the text is used.
unsafe fn text_in<'a>(environment: *const *const c_char) -> Option<&'a [u8]> {
    // SAFETY: by the contract.
    unsafe { variable(environment, b"CRATON_OPTIONS=") }
}

/// A variable of an environment, whose name `prefix` has with a `=`.
///
/// # Safety
/// As [`find`], for as long as the text is used.
pub(crate) unsafe fn variable<'a>(environment: *const *const c_char, prefix: &[u8]) -> Option<&'a [u8]> {
    let mut at = environment;
    // SAFETY: by the contract; the array is not read behind its null.
    while !at.is_null() && unsafe { !(*at).is_null() } {
        // SAFETY: as above, each entry is a C string.
        let entry = unsafe { CStr::from_ptr(*at) }.to_bytes();
        if let Some(text) = entry.strip_prefix(prefix) {
            return Some(text);
        }
        // SAFETY: the entry was not the closing null.
        at = unsafe { at.add(1) };
    }
    None
}

/// What is wrong with a setting.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Wrong<'a> {
    /// The part of the value that is wrong; empty if it is the whole.
    pub(crate) part: &'a [u8],
    /// Why.
    pub(crate) why: &'static str,
}

impl From<&'static str> for Wrong<'_> {
    fn from(why: &'static str) -> Self {
        Self { part: b"", why }
    }
}

/// The options of a list: what commas separate. Behind `debug=` commas stand between checks, too: what has no `=` goes on with that.
struct Items<'a>(&'a [u8]);

impl<'a> Iterator for Items<'a> {
    type Item = &'a [u8];

    fn next(&mut self) -> Option<&'a [u8]> {
        if self.0.is_empty() {
            return None;
        }
        let comma = |from: usize| self.0[from..].iter().position(|b| *b == b',').map_or(self.0.len(), |i| from + i);
        let mut end = comma(0);
        while self.0.starts_with(b"debug=") && end < self.0.len() {
            let next = comma(end + 1);
            let word = &self.0[end + 1..next];
            if word.contains(&b'=') && !debug::is_check(word) {
                break;
            }
            end = next;
        }
        let item = without_commas(&self.0[..end]);
        self.0 = self.0.get(end + 1..).unwrap_or_default();
        Some(item)
    }
}

/// A text without commas at its end, where a list may have too many.
fn without_commas(mut text: &[u8]) -> &[u8] {
    while let Some(shorter) = text.strip_suffix(b",") {
        text = shorter;
    }
    text
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
        key => limits::why_not(key.row().key.as_bytes(), value).map(Wrong::from),
    };
    Err(why.unwrap_or(key.row().refusal.into()))
}

/// Sets one option; `false` when the key or the value is not known.
pub(crate) fn set(key: &[u8], value: &[u8]) -> bool {
    Key::named(key).is_some_and(|key| handlers::set(key, value, true))
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
