//! A Rust file as tokens and comments.
//!
//! **What.** Enough of Rust's lexical grammar that a word inside a string or a comment is never taken for code, and
//! that a comment is never missed: nested block comments, raw strings, byte strings, characters beside lifetimes.
//! Strings and numbers become [`Kind::Literal`] without text; no rule asks what they say.

/// What a token is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// An identifier, a keyword or `_`.
    Word,
    /// One character of punctuation.
    Mark,
    /// A string, a character or a number.
    Literal,
    /// `'a`.
    Lifetime,
}

/// A token of code.
#[derive(Clone, Debug)]
pub struct Token {
    /// What it is.
    pub kind: Kind,
    /// Its text; empty for a literal.
    pub text: String,
    /// The line, from 1.
    pub line: usize,
}

/// A line of the file, as the rules see it.
#[derive(Clone, Debug, Default)]
pub struct Line {
    /// The text of the comments on the line, with their marks (`//`, `///`, `//!`, `/*`).
    pub comment: String,
    /// Whether there is code on the line.
    pub has_code: bool,
    /// Whether all the code of the line belongs to attributes.
    pub only_attributes: bool,
    /// Whether the line lies in a `#[cfg(test)]` module.
    pub in_test: bool,
    /// The last character of code on the line.
    pub last: Option<char>,
    /// Whether the line holds `=>`.
    pub has_arm: bool,
}

/// A Rust file.
pub struct Source {
    /// The code.
    pub tokens: Vec<Token>,
    /// The lines; index 0 is unused, so that the numbers are those of an editor.
    pub lines: Vec<Line>,
}

impl Source {
    /// Reads a file. Text that is not Rust gives some tokens, never a panic.
    pub fn new(text: &str) -> Self {
        let chars: Vec<char> = text.chars().collect();
        let mut reader = Reader {
            chars,
            at: 0,
            line: 1,
            tokens: Vec::new(),
            lines: vec![Line::default(); text.lines().count() + 2],
        };
        reader.read();
        let mut source = Self { tokens: reader.tokens, lines: reader.lines };
        source.mark_lines();
        source
    }

    /// Whether token `i` is the word or mark `text`.
    pub fn is(&self, i: usize, text: &str) -> bool {
        self.tokens.get(i).is_some_and(|t| t.kind != Kind::Literal && t.text == text)
    }

    /// The index behind the bracket that closes the one at `open`, or the end of the file.
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

    /// If an attribute starts at token `i`, the index behind it.
    pub fn behind_attribute(&self, i: usize) -> Option<usize> {
        if !self.is(i, "#") {
            return None;
        }
        let open = if self.is(i + 1, "!") { i + 2 } else { i + 1 };
        self.is(open, "[").then(|| self.behind_group(open))
    }

    fn mark_lines(&mut self) {
        for token in &self.tokens {
            let line = &mut self.lines[token.line];
            line.has_arm |= line.last == Some('=') && token.text == ">";
            line.has_code = true;
            line.only_attributes = true;
            line.last = token.text.chars().next_back().or(Some('"'));
        }
        let mut i = 0;
        while i < self.tokens.len() {
            if let Some(behind) = self.behind_attribute(i) {
                if self.is_cfg_test(i, behind) {
                    self.mark_test_module(behind);
                }
                i = behind;
            } else {
                let line = self.tokens[i].line;
                self.lines[line].only_attributes = false;
                i += 1;
            }
        }
    }

    /// `#[cfg(test)]`, or `#[cfg(all(test, …))]`.
    fn is_cfg_test(&self, i: usize, behind: usize) -> bool {
        self.is(i + 2, "cfg")
            && (self.is(i + 4, "test") || (self.is(i + 4, "all") && self.is(i + 6, "test")))
            && i + 6 <= behind
    }

    fn mark_test_module(&mut self, mut i: usize) {
        while let Some(behind) = self.behind_attribute(i) {
            i = behind;
        }
        if self.is(i, "mod") && self.is(i + 2, "{") {
            let end = self.behind_group(i + 2) - 1;
            let (first, last) = (self.tokens[i].line, self.tokens[end].line);
            self.lines[first..=last].iter_mut().for_each(|l| l.in_test = true);
        }
    }
}

struct Reader {
    chars: Vec<char>,
    at: usize,
    line: usize,
    tokens: Vec<Token>,
    lines: Vec<Line>,
}

impl Reader {
    fn peek(&self, ahead: usize) -> char {
        self.chars.get(self.at + ahead).copied().unwrap_or('\0')
    }

    fn step(&mut self) -> char {
        let c = self.peek(0);
        self.at += 1;
        self.line += usize::from(c == '\n');
        c
    }

    fn done(&self) -> bool {
        self.at >= self.chars.len()
    }

    fn push(&mut self, kind: Kind, text: String, line: usize) {
        self.tokens.push(Token { kind, text, line });
    }

    fn read(&mut self) {
        while !self.done() {
            let (c, line) = (self.peek(0), self.line);
            match c {
                '/' if self.peek(1) == '/' => self.line_comment(),
                '/' if self.peek(1) == '*' => self.block_comment(),
                '"' => self.string(),
                '\'' => self.quote(),
                c if c.is_alphabetic() || c == '_' => self.word(),
                c if c.is_ascii_digit() => {
                    while self.peek(0).is_alphanumeric() || self.peek(0) == '_' {
                        self.step();
                    }
                    self.push(Kind::Literal, String::new(), line);
                }
                c if c.is_whitespace() => {
                    self.step();
                }
                c => {
                    self.step();
                    self.push(Kind::Mark, c.to_string(), line);
                }
            }
        }
    }

    fn line_comment(&mut self) {
        let mut text = String::new();
        while !self.done() && self.peek(0) != '\n' {
            text.push(self.step());
        }
        self.lines[self.line].comment.push_str(&text);
    }

    fn block_comment(&mut self) {
        let mut depth = 0;
        while !self.done() {
            let (here, line) = (self.peek(0), self.line);
            match (here, self.peek(1)) {
                ('/', '*') => depth += 1,
                ('*', '/') => depth -= 1,
                _ => {
                    self.step();
                    if here != '\n' {
                        self.lines[line].comment.push(here);
                    }
                    continue;
                }
            }
            let second = self.peek(1);
            self.step();
            self.step();
            self.lines[line].comment.extend([here, second]);
            if depth == 0 {
                return;
            }
        }
    }

    fn string(&mut self) {
        let line = self.line;
        self.step();
        while !self.done() {
            match self.step() {
                '\\' => {
                    self.step();
                }
                '"' => break,
                _ => {}
            }
        }
        self.push(Kind::Literal, String::new(), line);
    }

    /// At the `"` or the first `#` of a raw string.
    fn raw_string(&mut self) {
        let line = self.line;
        let mut hashes = 0;
        while self.peek(0) == '#' {
            hashes += 1;
            self.step();
        }
        self.step();
        while !self.done() {
            if self.step() == '"' && (0..hashes).all(|i| self.peek(i) == '#') {
                (0..hashes).for_each(|_| {
                    self.step();
                });
                break;
            }
        }
        self.push(Kind::Literal, String::new(), line);
    }

    /// A character, or a lifetime: `'a'` and `'\n'` close behind one character, `'a` does not.
    fn quote(&mut self) {
        let line = self.line;
        self.step();
        if self.peek(0) == '\\' {
            self.step();
            self.step();
            while !self.done() && self.step() != '\'' {}
            self.push(Kind::Literal, String::new(), line);
        } else if self.peek(1) == '\'' {
            (0..2).for_each(|_| {
                self.step();
            });
            self.push(Kind::Literal, String::new(), line);
        } else {
            let mut text = String::from("'");
            while self.peek(0).is_alphanumeric() || self.peek(0) == '_' {
                text.push(self.step());
            }
            self.push(Kind::Lifetime, text, line);
        }
    }

    /// A word, or a string with a prefix (`b"…"`, `r#"…"#`, `c"…"`, `b'…'`).
    fn word(&mut self) {
        let line = self.line;
        let mut text = String::new();
        while self.peek(0).is_alphanumeric() || self.peek(0) == '_' {
            text.push(self.step());
        }
        let hashes = (0..).take_while(|&i| self.peek(i) == '#').count();
        match text.as_str() {
            "r" | "br" | "cr" if self.peek(hashes) == '"' => self.raw_string(),
            "b" | "c" if self.peek(0) == '"' => self.string(),
            "b" if self.peek(0) == '\'' => self.quote(),
            _ => self.push(Kind::Word, text, line),
        }
    }
}

#[cfg(test)]
mod tests;
