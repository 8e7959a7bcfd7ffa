//! Why `craton` fails.

use crate::terminal::plain;
use std::fmt;
use std::process::ExitCode;

/// With value and remedy. One line, printed behind `craton: `.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Failure {
    Failed(String),
    /// The parser cannot detect it: exit status 2.
    Usage(String),
}

impl Failure {
    pub fn status(&self) -> ExitCode {
        match self {
            Self::Failed(_) => ExitCode::FAILURE,
            Self::Usage(_) => ExitCode::from(2),
        }
    }
}

impl From<String> for Failure {
    fn from(text: String) -> Self {
        Self::Failed(text)
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (Self::Failed(text) | Self::Usage(text)) = self;
        f.write_str(&plain(text))
    }
}
