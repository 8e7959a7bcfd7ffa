//! Rules that suppress reports: `craton run --suppress FILE`.
//!
//! **What.** A line a rule: kinds, then conditions, all of which one call of one of the report's
//! stacks has to meet.
//! ```text
//! leak function=g_quark_*                # a comment
//! overflow,underflow library=libfoo.so*
//! * file=third_party/* function="ns::f(int, char)"
//! ```
//!
//! **Failure.** A wrong rule is refused with its file and line, before anything runs.

use super::kinds::{KINDS, index};
use crate::failure::Failure;
use crate::input;
use crate::usage::nearest;
use craton_inspect::Call;
use std::cell::Cell;
use std::fs;
use std::path::Path;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum What {
    Function,
    File,
    Library,
}

const CONDITIONS: [(&str, What); 3] = [("function", What::Function), ("file", What::File), ("library", What::Library)];

#[derive(Debug)]
pub struct Rule {
    /// `FILE:LINE`.
    pub place: String,
    pub text: String,
    /// Empty: all.
    kinds: Vec<String>,
    conditions: Vec<(What, String)>,
    used: Cell<bool>,
}

#[derive(Debug, Default)]
pub struct Rules(Vec<Rule>);

impl Rules {
    /// # Errors
    /// A file that cannot be read, or a wrong rule.
    pub fn read(files: &[impl AsRef<Path>]) -> Result<Self, Failure> {
        let mut all = Vec::new();
        for file in files {
            let name = file.as_ref().display().to_string();
            let refused = input::refuse_named_pipe(file.as_ref(), "a file, or a shell's `<(CMD)`");
            refused.map_err(|why| Failure::Usage(format!("--suppress {why}")))?;
            let text = fs::read(file).map_err(|e| Failure::Usage(format!("--suppress {name}: cannot be read: {e}")))?;
            all.extend(parse(&name, &text).map_err(Failure::Usage)?);
        }
        Ok(Self(all))
    }

    /// The first rule for a report, which then counts as used.
    pub fn find<'c>(&self, kind: &str, calls: impl Iterator<Item = &'c Call> + Clone) -> Option<&Rule> {
        let found = self.0.iter().find(|rule| rule.is_for(kind) && calls.clone().any(|call| rule.matches(call)));
        found.inspect(|rule| rule.used.set(true))
    }

    pub fn unused(&self) -> impl Iterator<Item = &Rule> {
        self.0.iter().filter(|rule| !rule.used.get())
    }
}

/// The rules of a file's text.
fn parse(name: &str, text: &[u8]) -> Result<Vec<Rule>, String> {
    let mut rules = Vec::new();
    for (i, line) in text.split(|byte| *byte == b'\n').enumerate() {
        let place = format!("{name}:{}", i + 1);
        let line = std::str::from_utf8(line).map_err(|_| format!("{place}: not UTF-8; write the rule as UTF-8"))?;
        let words = words(line).map_err(|why| format!("{place}: {why}"))?;
        if let Some((kinds, conditions)) = words.split_first() {
            let rule = Rule::of(kinds, conditions).map_err(|why| format!("{place}: {why}"))?;
            let text = line.split('#').next().unwrap_or_default().trim().to_owned();
            rules.push(Rule { place, text, ..rule });
        }
    }
    Ok(rules)
}

/// Up to a comment. Quotes keep spaces and `#`.
fn words(line: &str) -> Result<Vec<String>, &'static str> {
    let (mut words, mut word, mut is_quoted) = (Vec::new(), None::<String>, false);
    for c in line.chars() {
        match c {
            '"' => {
                is_quoted = !is_quoted;
                word.get_or_insert_default();
            }
            '#' if !is_quoted && word.is_none() => break,
            c if c.is_whitespace() && !is_quoted => words.extend(word.take()),
            c => word.get_or_insert_default().push(c),
        }
    }
    words.extend(word);
    if is_quoted { Err("a quotation mark is not closed") } else { Ok(words) }
}

impl Rule {
    fn of(kinds: &str, conditions: &[String]) -> Result<Self, String> {
        let names = KINDS.map(|kind| kind.name);
        let all = names.join(", ");
        let kinds: Vec<String> = if kinds == "*" { Vec::new() } else { kinds.split(',').map(str::to_owned).collect() };
        if let Some(wrong) = kinds.iter().find(|kind| index(kind).is_none()) {
            let meant = nearest(wrong, &names).map_or(String::new(), |name| format!("did you mean \"{name}\"? "));
            return Err(format!("\"{wrong}\" is no kind of report; {meant}kinds: {all}, or * for all"));
        }
        let form = "conditions: function=, file=, library=, each with a pattern";
        let condition = |text: &String| {
            let (key, pattern) = text.split_once('=').ok_or_else(|| format!("\"{text}\" is no condition; {form}"))?;
            let what = CONDITIONS.into_iter().find(|(name, _)| *name == key).map(|(_, what)| what);
            let what = what.ok_or_else(|| format!("\"{key}\" is no condition; {form}"))?;
            match pattern.is_empty() {
                true => Err(format!("{key}= has no pattern; {key}=* matches any")),
                false => Ok((what, pattern.to_owned())),
            }
        };
        let conditions = conditions.iter().map(condition).collect::<Result<Vec<_>, String>>()?;
        match conditions.is_empty() {
            true => Err(format!("the rule has no condition; {form}")),
            false => Ok(Self { place: String::new(), text: String::new(), kinds, conditions, used: Cell::new(false) }),
        }
    }

    fn is_for(&self, kind: &str) -> bool {
        self.kinds.is_empty() || self.kinds.iter().any(|own| own == kind)
    }

    fn matches(&self, call: &Call) -> bool {
        self.conditions.iter().all(|(what, pattern)| match what {
            What::Function => {
                let name = call.function.split('(').next().unwrap_or_default();
                fits(pattern, &call.function) || !name.is_empty() && fits(pattern, name)
            }
            What::File => call.file.as_deref().is_some_and(|file| fits_path(pattern, file)),
            What::Library => !call.module.is_empty() && fits_path(pattern, &call.module),
        })
    }
}

/// The whole path, or what stands behind one of its slashes.
fn fits_path(pattern: &str, path: &str) -> bool {
    fits(pattern, path) || path.match_indices('/').any(|(at, _)| fits(pattern, &path[at + 1..]))
}

/// `*` stands for any characters, `?` for one.
fn fits(pattern: &str, text: &str) -> bool {
    let (pattern, text): (Vec<char>, Vec<char>) = (pattern.chars().collect(), text.chars().collect());
    let (mut p, mut t, mut star) = (0, 0, None);
    while t < text.len() {
        match pattern.get(p) {
            Some('*') => {
                star = Some((p, t));
                p += 1;
            }
            Some(c) if *c == '?' || *c == text[t] => (p, t) = (p + 1, t + 1),
            _ => match star {
                Some((at, from)) => {
                    star = Some((at, from + 1));
                    (p, t) = (at + 1, from + 1);
                }
                None => return false,
            },
        }
    }
    pattern[p..].iter().all(|c| *c == '*')
}

#[cfg(test)]
mod tests;
