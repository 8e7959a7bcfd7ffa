//! Statics and thread words that change lie in [`PLACE`]: a heap is a value.

use super::Complaint;
use super::files::File;
use super::lex::Source;
use super::modules;

const PLACE: &str = "crates/malloc/src/statics.rs";

const CRATES: [&str; 8] = ["base", "frames", "pages", "slab", "heap", "objects", "kit", "malloc"];

/// Besides atomics.
const CHANGING: [&str; 10] =
    ["Cell", "UnsafeCell", "SyncUnsafeCell", "RefCell", "OnceCell", "OnceLock", "LazyLock", "Mutex", "RwLock", "Once"];

pub fn check(files: &[File]) -> Vec<Complaint> {
    let mut found = Vec::new();
    for (name, file) in modules::product(files) {
        let Some(source) = file.rust.as_ref().filter(|_| CRATES.contains(&name.as_str()) && file.path != PLACE) else {
            continue;
        };
        for (i, token) in source.tokens.iter().enumerate().filter(|(_, token)| !source.lines[token.line].in_test) {
            let is_static = token.text == "static" && !(i > 0 && source.is(i - 1, "'")) && changes(source, i);
            if is_static || token.text == "thread_local" && source.is(i + 1, "!") {
                let text = format!("a static that changes: make it part of a value, or of the process in {PLACE}");
                found.push(Complaint::new(&file.path, token.line, text));
            }
        }
    }
    found
}

/// The C library's have no value.
fn changes(source: &Source, i: usize) -> bool {
    let mut end = i;
    while end < source.tokens.len() && !source.is(end, "=") && !source.is(end, ";") {
        let is_group = source.is(end, "[") || source.is(end, "(");
        end = if is_group { source.behind_group(end) } else { end + 1 };
    }
    let named = |word: &str| word == "mut" || word.starts_with("Atomic") || CHANGING.contains(&word);
    source.is(end, "=") && source.tokens[i..end].iter().any(|t| named(&t.text))
}

#[cfg(test)]
mod tests;
