//! Requests of the Redis protocol, version 2, and inline commands. A command in many parts is read
//! once. After an error the connection must close: the next command's beginning is unknown.

use std::fmt;
use std::ops::Range;

/// Of inline commands, and of lines with a length.
const LONGEST_LINE: usize = 64 << 10;
const MOST_ARGS: i64 = 1 << 20;
/// As in Redis.
const LONGEST_COMMAND: usize = 1 << 30;

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ProtocolError {
    LineTooLong,
    Count,
    /// No number, negative, or beyond 512 MiB.
    Length,
    /// This byte instead of `$`.
    NoLength(u8),
    Quotes,
    CommandTooLong,
}

impl fmt::Display for ProtocolError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::LineTooLong => write!(f, "Protocol error: line longer than {LONGEST_LINE} bytes"),
            Self::Count => write!(f, "Protocol error: invalid multibulk length"),
            Self::Length => write!(f, "Protocol error: invalid bulk length"),
            Self::NoLength(byte) => write!(f, "Protocol error: expected '$', got '{}'", byte.escape_ascii()),
            Self::Quotes => write!(f, "Protocol error: unbalanced quotes in request"),
            Self::CommandTooLong => write!(f, "Protocol error: command longer than {LONGEST_COMMAND} bytes"),
        }
    }
}

#[derive(Debug, PartialEq, Eq)]
pub enum Parsed {
    Incomplete,
    /// Bytes. Without arguments it is an empty line.
    Command(usize),
}

#[derive(Default)]
pub struct Parser {
    args: Vec<Range<usize>>,
    /// Inline arguments without quotes and escapes, if not empty.
    inline: Vec<u8>,
    /// Arguments; `None` before the first line is complete.
    left: Option<usize>,
    /// Of the current argument.
    length: Option<usize>,
    at: usize,
    searched: usize,
}

impl Parser {
    /// `data` begins with an incomplete command's bytes, if any.
    pub fn parse(&mut self, data: &[u8]) -> Result<Parsed, ProtocolError> {
        if self.left.is_none() {
            self.args.clear();
            self.inline.clear();
            let Some(end) = self.line(data)? else { return Ok(Parsed::Incomplete) };
            let line = &data[..end];
            if line.first() != Some(&b'*') {
                let used = self.at;
                self.reset();
                split_inline(line, &mut self.inline, &mut self.args)?;
                return Ok(Parsed::Command(used));
            }
            let count = number(&line[1..]).filter(|n| *n <= MOST_ARGS).ok_or(ProtocolError::Count)?;
            self.left = Some(count.max(0) as usize);
        }
        while self.left.is_some_and(|left| left > 0) {
            let length = match self.length {
                Some(length) => length,
                None => {
                    let begin = self.at;
                    let Some(end) = self.line(data)? else { return Ok(Parsed::Incomplete) };
                    let line = &data[begin..end];
                    match line.first() {
                        Some(b'$') => {}
                        first => return Err(ProtocolError::NoLength(first.copied().unwrap_or(b'\n'))),
                    }
                    let length = number(&line[1..]).and_then(|n| usize::try_from(n).ok());
                    let length = length.filter(|n| *n <= crate::layout::LONGEST).ok_or(ProtocolError::Length)?;
                    self.length = Some(length);
                    length
                }
            };
            if self.at + length + 2 > LONGEST_COMMAND {
                return Err(ProtocolError::CommandTooLong);
            }
            if data.len() < self.at + length + 2 {
                return Ok(Parsed::Incomplete);
            }
            self.args.push(self.at..self.at + length);
            self.at += length + 2;
            self.searched = self.at;
            self.length = None;
            self.left = self.left.map(|left| left - 1);
        }
        let used = self.at;
        self.reset();
        Ok(Parsed::Command(used))
    }

    /// Of the command in `data`.
    pub fn args<'a>(&'a self, data: &'a [u8]) -> Args<'a> {
        let bytes = if self.inline.is_empty() { data } else { &self.inline };
        Args { bytes, ranges: &self.args }
    }

    fn reset(&mut self) {
        (self.left, self.length, self.at, self.searched) = (None, None, 0, 0);
    }

    /// The line's end; `at` moves behind it.
    fn line(&mut self, data: &[u8]) -> Result<Option<usize>, ProtocolError> {
        let found = data[self.searched..].iter().position(|byte| *byte == b'\n');
        let end = found.map_or(data.len(), |found| self.searched + found);
        if end - self.at > LONGEST_LINE {
            return Err(ProtocolError::LineTooLong);
        }
        self.searched = end;
        if found.is_none() {
            return Ok(None);
        }
        let begin = std::mem::replace(&mut self.at, end + 1);
        self.searched = end + 1;
        Ok(Some(if end > begin && data[end - 1] == b'\r' { end - 1 } else { end }))
    }
}

#[derive(Clone, Copy)]
pub struct Args<'a> {
    bytes: &'a [u8],
    ranges: &'a [Range<usize>],
}

impl<'a> Args<'a> {
    pub fn len(&self) -> usize {
        self.ranges.len()
    }

    pub fn get(&self, i: usize) -> &'a [u8] {
        self.ranges.get(i).map_or(&[], |range| &self.bytes[range.clone()])
    }

    pub fn from(&self, from: usize) -> impl Iterator<Item = &'a [u8]> {
        let Self { bytes, ranges } = *self;
        ranges.iter().skip(from).map(move |range| &bytes[range.clone()])
    }
}

/// Decimal, without plus, blanks or leading 0.
pub fn number(text: &[u8]) -> Option<i64> {
    let digits = text.strip_prefix(b"-").unwrap_or(text);
    let is_plain = digits.iter().all(u8::is_ascii_digit) && (digits.first() != Some(&b'0') || text == b"0");
    if is_plain { std::str::from_utf8(text).ok()?.parse().ok() } else { None }
}

/// As redis-cli quotes and escapes.
fn split_inline(line: &[u8], out: &mut Vec<u8>, args: &mut Vec<Range<usize>>) -> Result<(), ProtocolError> {
    let mut rest = line.iter().copied().peekable();
    loop {
        while rest.next_if(u8::is_ascii_whitespace).is_some() {}
        if rest.peek().is_none() {
            break;
        }
        let begin = out.len();
        let mut quote = None;
        loop {
            match (rest.next(), quote) {
                (None, None) => break,
                (None, Some(_)) => return Err(ProtocolError::Quotes),
                (Some(b), None) if b.is_ascii_whitespace() => break,
                (Some(b @ (b'"' | b'\'')), None) => quote = Some(b),
                (Some(b), Some(q)) if b == q => {
                    // A blank must follow.
                    if rest.peek().is_some_and(|b| !b.is_ascii_whitespace()) {
                        return Err(ProtocolError::Quotes);
                    }
                    quote = None;
                }
                (Some(b'\\'), Some(b'"')) => out.push(escaped(&mut rest).ok_or(ProtocolError::Quotes)?),
                (Some(b'\\'), Some(b'\'')) if rest.peek() == Some(&b'\'') => out.extend(rest.next()),
                (Some(b), _) => out.push(b),
            }
        }
        args.push(begin..out.len());
    }
    // An empty `inline` means that arguments lie in the data.
    out.push(0);
    Ok(())
}

fn escaped(rest: &mut impl Iterator<Item = u8>) -> Option<u8> {
    Some(match rest.next()? {
        b'n' => b'\n',
        b'r' => b'\r',
        b't' => b'\t',
        b'b' => 8,
        b'a' => 7,
        b'x' => {
            let mut digit = || (rest.next()? as char).to_digit(16);
            (digit()? * 16 + digit()?) as u8
        }
        other => other,
    })
}

#[cfg(test)]
mod tests;
