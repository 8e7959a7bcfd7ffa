//! Every unsafe site says why it may be.
//!
//! **What.** A block, an `impl` and an `extern` block carry `// SAFETY:` on their line or above; an `unsafe fn` and an
//! `unsafe trait` carry a `# Safety` section. A function in `impl Trait for …` has its contract in the trait, and
//! one declared in an `extern` block in the C library's manual: neither is asked for a section of its own.
//! Clippy asks the same of what it compiles; this rule also reads macros and code for other configurations.

use super::Complaint;
use super::lex::{Kind, Source};

/// What is unsafe at a site.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Site {
    /// `unsafe { … }`
    Block,
    /// `unsafe impl`
    Impl,
    /// `unsafe fn`, also `unsafe extern "C" fn`; `contract_elsewhere` where a trait or a header states the contract.
    Fn {
        /// In `impl Trait for …`, or declared in an `extern` block.
        contract_elsewhere: bool,
    },
    /// `unsafe trait`
    Trait,
    /// `unsafe extern "C" { … }`
    Extern,
    /// `#[unsafe(…)]`
    Attribute,
}

/// Every unsafe site with its line. Types (`unsafe fn()`) are none.
pub fn sites(source: &Source) -> Vec<(usize, Site)> {
    let mut found = Vec::new();
    // For each open brace: whether it is the body of `impl Trait for …` or of an `extern` block.
    let mut bodies: Vec<bool> = Vec::new();
    let mut next_body_has_contracts = false;
    let mut i = 0;
    while i < source.tokens.len() {
        let token = &source.tokens[i];
        match (token.kind, token.text.as_str()) {
            (Kind::Mark, "{") => bodies.push(std::mem::take(&mut next_body_has_contracts)),
            (Kind::Mark, "}") => {
                bodies.pop();
            }
            (Kind::Mark, ";") => next_body_has_contracts = false,
            (Kind::Word, "impl") => next_body_has_contracts = is_trait_impl(source, i),
            (Kind::Word, "unsafe") => {
                if let Some(site) = site(source, i, bodies.last().copied().unwrap_or(false)) {
                    next_body_has_contracts |= site == Site::Extern;
                    found.push((token.line, site));
                }
            }
            _ => {}
        }
        i += 1;
    }
    found
}

fn site(source: &Source, unsafe_at: usize, contract_elsewhere: bool) -> Option<Site> {
    let mut i = unsafe_at + 1;
    if source.is(i, "extern") {
        i += 1;
        if source.tokens.get(i).is_some_and(|t| t.kind == Kind::Literal) {
            i += 1;
        }
        if source.is(i, "{") {
            return Some(Site::Extern);
        }
    }
    match source.tokens.get(i).map(|t| t.text.as_str())? {
        "{" => Some(Site::Block),
        "impl" => Some(Site::Impl),
        "trait" | "auto" => Some(Site::Trait),
        "(" if source.is(unsafe_at.wrapping_sub(1), "[") => Some(Site::Attribute),
        // `unsafe fn(…)` without a name is a type.
        "fn" if !source.is(i + 1, "(") => Some(Site::Fn { contract_elsewhere }),
        _ => None,
    }
}

/// Whether the `impl` at token `i` heads `impl Trait for Type`; `for<'a>` is not that `for`.
fn is_trait_impl(source: &Source, i: usize) -> bool {
    (i + 1..source.tokens.len())
        .take_while(|&j| !source.is(j, "{") && !source.is(j, ";"))
        .any(|j| source.is(j, "for") && !source.is(j + 1, "<"))
}

/// Complains of each site without its reason.
pub fn check(path: &str, source: &Source) -> Vec<Complaint> {
    let mut found = Vec::new();
    for (line, site) in sites(source) {
        let text = match site {
            Site::Block | Site::Impl | Site::Extern if !has_safety_comment(source, line) => {
                let what = match site {
                    Site::Block => "block",
                    Site::Impl => "impl",
                    _ => "extern block",
                };
                format!("unsafe {what} without a reason: write `// SAFETY: …` above it")
            }
            Site::Fn { contract_elsewhere: false } | Site::Trait if !has_safety_section(source, line) => {
                let what = if site == Site::Trait { "trait" } else { "fn" };
                format!("unsafe {what} without a contract: add a `# Safety` section to its doc comment")
            }
            _ => continue,
        };
        found.push(Complaint::new(path, line, text));
    }
    found
}

/// How many lines of code a statement may have above its unsafe block, below the comment.
const STATEMENT_LINES: usize = 8;

/// Looks on the line, then upwards through the comments and the head of the same statement.
fn has_safety_comment(source: &Source, line: usize) -> bool {
    if says(&source.lines[line].comment, "SAFETY:") {
        return true;
    }
    let mut code_lines = 0;
    for above in source.lines[1..line].iter().rev() {
        if says(&above.comment, "SAFETY:") {
            // A comment behind code belongs to that code, not to what follows.
            return !above.has_code;
        }
        if above.has_code && !above.only_attributes {
            let ends = matches!(above.last, Some(';' | '{' | '}')) || (above.last == Some(',') && above.has_arm);
            code_lines += 1;
            if ends || code_lines > STATEMENT_LINES {
                return false;
            }
        } else if !above.has_code && above.comment.is_empty() {
            return false;
        }
    }
    false
}

/// Looks upwards through the attributes and the doc comment.
fn has_safety_section(source: &Source, line: usize) -> bool {
    for above in source.lines[1..line].iter().rev() {
        if above.has_code && !above.only_attributes {
            // `$(#[$attribute])*` in a macro: the doc comment is where the macro is used.
            return above.last == Some('*');
        }
        if !above.has_code && above.comment.is_empty() {
            return false;
        }
        if above.comment.starts_with("///") && above.comment.contains("# Safety") {
            return true;
        }
    }
    false
}

/// Whether `comment` holds `mark` with a reason behind it, on the same line.
pub fn says(comment: &str, mark: &str) -> bool {
    comment.split_once(mark).is_some_and(|(_, reason)| !reason.trim().is_empty())
}

#[cfg(test)]
mod tests;
