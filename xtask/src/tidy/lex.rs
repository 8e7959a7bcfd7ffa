//! A Rust file as tokens, and its comments by line. Strings and characters become `""`.

/// A word, a number, `""`, or one mark.
#[derive(Clone, Debug)]
pub struct Token {
    pub text: String,
    pub line: usize,
}

#[derive(Clone, Debug, Default)]
pub struct Line {
    /// With their marks (`//`, `///`, `//!`, `/*`).
    pub comment: String,
    pub has_code: bool,
    /// In a `#[cfg(test)]` module.
    pub in_test: bool,
}

pub struct Source {
    pub tokens: Vec<Token>,
    /// From 1.
    pub lines: Vec<Line>,
}

impl Source {
    pub fn new(text: &str) -> Self {
        let mut this = Self { tokens: Vec::new(), lines: vec![Line::default(); text.lines().count() + 2] };
        let (mut rest, mut line) = (text, 1);
        while let Some(first) = rest.chars().next() {
            let len = if let Some(len) = comment(rest) {
                for (i, part) in rest[..len].split('\n').enumerate() {
                    this.lines[line + i].comment.push_str(part);
                }
                len
            } else if let Some(len) = literal(rest) {
                this.push("\"\"", line);
                len
            } else {
                let word = rest.find(|c: char| !c.is_alphanumeric() && c != '_').unwrap_or(rest.len());
                let len = word.max(first.len_utf8());
                if !first.is_whitespace() {
                    this.push(&rest[..len], line);
                }
                len
            };
            line += rest[..len].matches('\n').count();
            rest = &rest[len..];
        }
        this.mark_tests();
        this
    }

    fn push(&mut self, text: &str, line: usize) {
        self.tokens.push(Token { text: text.to_owned(), line });
        self.lines[line].has_code = true;
    }

    pub fn is(&self, i: usize, text: &str) -> bool {
        self.tokens.get(i).is_some_and(|t| t.text == text)
    }

    /// Of the bracket at `open`, or the file's end.
    pub fn behind_group(&self, open: usize) -> usize {
        let mut depth = 0usize;
        for (i, token) in self.tokens.iter().enumerate().skip(open) {
            match token.text.as_str() {
                "(" | "[" | "{" => depth += 1,
                ")" | "]" | "}" => depth = depth.saturating_sub(1),
                _ => {}
            }
            if depth == 0 {
                return i + 1;
            }
        }
        self.tokens.len()
    }

    /// As the index of `mod`: behind a `cfg` that names one of `words`.
    pub fn modules_under(&self, words: &[&str]) -> Vec<usize> {
        let mut found = Vec::new();
        let mut is_under = false;
        let mut i = 0;
        while i < self.tokens.len() {
            if self.is(i, "#") && self.is(i + 1, "[") {
                let end = self.behind_group(i + 1);
                let has = |word: &&str| (i + 4..end).any(|j| self.is(j, word) && !self.is(j - 2, "not"));
                is_under |= self.is(i + 2, "cfg") && words.iter().any(has);
                i = end;
                continue;
            }
            if self.is(i, "mod") && is_under {
                found.push(i);
            }
            is_under &= ["pub", "(", "crate", "super", ")"].iter().any(|word| self.is(i, word));
            i += 1;
        }
        found
    }

    fn mark_tests(&mut self) {
        for i in self.modules_under(&["test"]) {
            if self.is(i + 2, "{") {
                let end = self.behind_group(i + 2) - 1;
                let (first, last) = (self.tokens[i].line, self.tokens[end].line);
                self.lines[first..=last].iter_mut().for_each(|l| l.in_test = true);
            }
        }
    }
}

fn comment(text: &str) -> Option<usize> {
    if text.starts_with("//") {
        return Some(text.find('\n').unwrap_or(text.len()));
    }
    let (mut depth, mut at) = (0, 0);
    while text.starts_with("/*") && at < text.len() {
        let rest = &text[at..];
        depth += i32::from(rest.starts_with("/*")) - i32::from(rest.starts_with("*/"));
        let is_mark = rest.starts_with("/*") || rest.starts_with("*/");
        at += if is_mark { 2 } else { rest.chars().next().map_or(1, char::len_utf8) };
        if depth == 0 {
            break;
        }
    }
    (at > 0).then_some(at)
}

/// `'a` is a lifetime.
fn literal(text: &str) -> Option<usize> {
    let prefix = ["br", "cr", "r", "b", "c", ""].into_iter().find(|prefix| {
        text.strip_prefix(*prefix).is_some_and(|rest| {
            rest.starts_with('"')
                || prefix.ends_with('r') && rest.trim_start_matches('#').starts_with('"')
                || matches!(*prefix, "b" | "") && rest.starts_with('\'')
        })
    })?;
    let body = &text[prefix.len()..];
    if prefix.ends_with('r') {
        let hashes = body.len() - body.trim_start_matches('#').len();
        let end = format!("\"{}", &body[..hashes]);
        let inner = &body[hashes + 1..];
        return Some(prefix.len() + hashes + 1 + inner.find(&end).map_or(inner.len(), |at| at + end.len()));
    }
    let quote = body.chars().next()?;
    let mut chars = body.char_indices().skip(1);
    while let Some((at, c)) = chars.next() {
        match c {
            '\\' => _ = chars.next(),
            c if c == quote => return Some(prefix.len() + at + 1),
            _ if quote == '\'' && !body[at + c.len_utf8()..].starts_with('\'') && !body.starts_with("'\\") => {
                return None;
            }
            _ => {}
        }
    }
    Some(text.len())
}

#[cfg(test)]
mod tests;
