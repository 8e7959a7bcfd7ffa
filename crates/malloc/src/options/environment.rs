//! The variable `CRATON_OPTIONS`, and the options that it lists.
//!
//! **Unsafe.** Reads the C library's environment.

use core::ffi::{CStr, c_char};
use craton_kit::is_check;

/// # Safety
/// `environment` is null, or a null-terminated array of C strings, which no thread changes
/// meanwhile.
pub(crate) unsafe fn find(environment: *const *const c_char, key: &[u8], mut each: impl FnMut(&[u8])) {
    // SAFETY: by the contract.
    let text = unsafe { text_in(environment) }.unwrap_or_default();
    Items(text).filter_map(|option| option.strip_prefix(key)?.strip_prefix(b"=")).for_each(&mut each);
}

/// # Safety
/// As [`find`], while the text is used.
pub(crate) unsafe fn text_in<'a>(environment: *const *const c_char) -> Option<&'a [u8]> {
    // SAFETY: by the contract.
    unsafe { variable(environment, b"CRATON_OPTIONS=") }
}

/// `prefix` is the name and `=`.
///
/// # Safety
/// As [`find`], while the text is used.
pub(crate) unsafe fn variable<'a>(environment: *const *const c_char, prefix: &[u8]) -> Option<&'a [u8]> {
    let mut at = environment;
    // SAFETY: by the contract; the null ends the array.
    while !at.is_null() && unsafe { !(*at).is_null() } {
        // SAFETY: as above, a C string.
        let entry = unsafe { CStr::from_ptr(*at) }.to_bytes();
        if let Some(text) = entry.strip_prefix(prefix) {
            return Some(text);
        }
        // SAFETY: not the closing null.
        at = unsafe { at.add(1) };
    }
    None
}

/// After `debug=` an item without `=` continues the value.
pub(crate) struct Items<'a>(pub(crate) &'a [u8]);

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
            if word.contains(&b'=') && !is_check(word) {
                break;
            }
            end = next;
        }
        let item = without_commas(&self.0[..end]);
        self.0 = self.0.get(end + 1..).unwrap_or_default();
        Some(item)
    }
}

fn without_commas(mut text: &[u8]) -> &[u8] {
    while let Some(shorter) = text.strip_suffix(b",") {
        text = shorter;
    }
    text
}

#[cfg(all(test, not(loom)))]
mod tests;
