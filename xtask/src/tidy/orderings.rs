//! Every memory ordering but `Relaxed` names its partner in `// ORDERING: …`, under its own name.

use super::Complaint;
use super::lex::Source;

const STRONG: [&str; 4] = ["Acquire", "Release", "AcqRel", "SeqCst"];

/// Between comment and ordering.
const CODE_LINES: usize = 4;

pub fn check(path: &str, source: &Source) -> Vec<Complaint> {
    let mut found = Vec::new();
    let mut in_use = false;
    for (i, token) in source.tokens.iter().enumerate() {
        let line = token.line;
        match token.text.as_str() {
            "use" => in_use = !source.is(i + 1, "<"),
            ";" => in_use = false,
            _ => {}
        }
        if !source.is(i, "Ordering") || source.lines[line].in_test {
            continue;
        }
        let path_goes_on = source.is(i + 1, ":") && source.is(i + 2, ":");
        if in_use {
            // `cmp::Ordering`'s names may be imported.
            let names_strong = path_goes_on && (imports_strong(source, i + 3) || source.is(i + 3, "*"));
            if source.is(i + 1, "as") || names_strong {
                let text = "import `Ordering` under its own name and write `Ordering::…` where it is used, so that each is seen";
                found.push(Complaint::new(path, line, text));
            }
        } else if path_goes_on
            && let Some(name) = STRONG.iter().find(|name| source.is(i + 3, name))
            && !is_explained(source, line)
        {
            let text = format!("`Ordering::{name}` without a reason: write `// ORDERING: pairs with …` above it");
            found.push(Complaint::new(path, line, text));
        }
    }
    found
}

fn imports_strong(source: &Source, at: usize) -> bool {
    let end = if source.is(at, "{") { source.behind_group(at) } else { at + 1 };
    (at..end).any(|i| STRONG.iter().any(|name| source.is(i, name)))
}

fn is_explained(source: &Source, line: usize) -> bool {
    if says(&source.lines[line].comment, "ORDERING:") {
        return true;
    }
    let mut code_lines = 0;
    for above in source.lines[1..line].iter().rev() {
        if says(&above.comment, "ORDERING:") {
            return true;
        }
        code_lines += usize::from(above.has_code);
        if code_lines > CODE_LINES {
            break;
        }
    }
    false
}

pub fn says(comment: &str, mark: &str) -> bool {
    comment.split_once(mark).is_some_and(|(_, reason)| !reason.trim().is_empty())
}

#[cfg(test)]
mod tests;
