//! Text for people: plain to files and pipes, with colour and a progress line on a terminal.
//!
//! **Failure.** A line that cannot be written is dropped, and never the reason to end.

use craton_tables::plain::make_plain;
use std::env;
use std::io::{self, IsTerminal, Write};

/// Writes `text` on standard error.
pub fn say(text: &str) {
    let _ = io::stderr().lock().write_all(text.as_bytes());
}

/// Text with names or values from outside, for a part of a line: without control characters.
pub fn plain(text: &str) -> String {
    let mut bytes = text.as_bytes().to_vec();
    make_plain(&mut bytes);
    String::from_utf8(bytes).unwrap_or_default()
}

/// Where a table goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stream {
    Out,
    /// Standard error, when something else has standard output.
    Err,
}

impl Stream {
    /// Whether colour is welcome: on a terminal, and not where `NO_COLOR` is set to anything.
    pub fn colour(self) -> bool {
        let terminal = match self {
            Self::Out => io::stdout().is_terminal(),
            Self::Err => io::stderr().is_terminal(),
        };
        terminal && env::var_os("NO_COLOR").is_none_or(|value| value.is_empty())
    }

    /// Writes `text`, whole.
    ///
    /// # Errors
    /// What the system says, such as a pipe that nobody reads.
    pub fn write(self, text: &str) -> io::Result<()> {
        match self {
            Self::Out => {
                let mut out = io::stdout().lock();
                out.write_all(text.as_bytes())?;
                out.flush()
            }
            Self::Err => io::stderr().lock().write_all(text.as_bytes()),
        }
    }
}

/// One line of standard error that is written over, on a terminal only.
pub struct Progress {
    shown: bool,
}

impl Progress {
    pub fn start() -> Self {
        Self { shown: io::stderr().is_terminal() }
    }

    /// Shows `text` instead of what the line had.
    pub fn show(&self, text: &str) {
        if self.shown {
            say(&format!("\r\x1b[K{text}"));
        }
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        self.show("");
    }
}
