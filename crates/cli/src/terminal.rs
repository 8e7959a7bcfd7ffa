//! Text for people.

use craton_tables::plain::make_plain;
use rustix::termios::tcgetwinsize;
use std::env;
use std::io::{self, IsTerminal, Write};
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

pub const WIDTH: usize = 80;

/// Of standard output.
static READER_GONE: AtomicBool = AtomicBool::new(false);

/// Behind `| head`: a failure to write needs no line.
pub fn is_reader_gone() -> bool {
    READER_GONE.load(Relaxed)
}

pub fn say(text: &str) {
    let _ = io::stderr().lock().write_all(text.as_bytes());
}

/// Without control characters, for names from outside.
pub fn plain(text: &str) -> String {
    let mut bytes = text.as_bytes().to_vec();
    make_plain(&mut bytes);
    String::from_utf8(bytes).unwrap_or_default()
}

/// Continuations are aligned with the text: in a list, behind the name and its gap.
pub fn wrap(text: &str, width: usize) -> String {
    text.lines().map(|line| wrapped(line, width) + "\n").collect()
}

fn wrapped(line: &str, width: usize) -> String {
    if line.chars().count() <= width {
        return line.to_owned();
    }
    let start = line.len() - line.trim_start().len();
    let gap = line[start..].find("  ").map_or("", |gap| &line[start + gap..]);
    let column = if gap.is_empty() { start } else { line.len() - gap.trim_start().len() };
    let (head, rest) = line.split_at(if column > width / 2 { start } else { column });
    let indent = head.chars().count();
    let (mut text, mut at) = (head.to_owned(), indent);
    for word in rest.split(' ') {
        let length = word.chars().count();
        if at > indent && at + 1 + length > width {
            text += &format!("\n{}", " ".repeat(indent));
            at = indent;
        }
        if at > indent {
            text.push(' ');
            at += 1;
        }
        text += word;
        at += length;
    }
    text
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stream {
    Out,
    Err,
}

impl Stream {
    /// Unless `NO_COLOR` is set.
    pub fn colour(self) -> bool {
        let terminal = match self {
            Self::Out => io::stdout().is_terminal(),
            Self::Err => io::stderr().is_terminal(),
        };
        terminal && env::var_os("NO_COLOR").is_none_or(|value| value.is_empty())
    }

    pub fn width(self) -> usize {
        let size = match self {
            Self::Out => tcgetwinsize(io::stdout()),
            Self::Err => tcgetwinsize(io::stderr()),
        };
        size.ok().map(|size| usize::from(size.ws_col)).filter(|columns| *columns > 0).unwrap_or(WIDTH)
    }

    /// # Errors
    /// Such as a pipe without a reader.
    pub fn write(self, text: &str) -> io::Result<()> {
        match self {
            Self::Out => {
                let mut out = io::stdout().lock();
                let written = out.write_all(text.as_bytes()).and_then(|()| out.flush());
                let is_gone = written.as_ref().is_err_and(|e| e.kind() == io::ErrorKind::BrokenPipe);
                READER_GONE.fetch_or(is_gone, Relaxed);
                written
            }
            Self::Err => io::stderr().lock().write_all(text.as_bytes()),
        }
    }
}

/// A line of standard error that is overwritten, on a terminal only.
pub struct Progress {
    shown: bool,
}

impl Progress {
    pub fn start() -> Self {
        Self { shown: io::stderr().is_terminal() }
    }

    pub fn show(&self, text: &str) {
        if self.shown {
            // A wrapped line would stay on the screen.
            let text: String = text.chars().take(Stream::Err.width() - 1).collect();
            say(&format!("\r\x1b[K{text}"));
        }
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        self.show("");
    }
}

#[cfg(test)]
mod tests;
