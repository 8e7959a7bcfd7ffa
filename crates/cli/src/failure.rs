//! Why `craton` fails.

use crate::terminal::plain;
use std::fmt;
use std::process::ExitCode;

/// One line with value and remedy, printed behind `craton: `.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Failure {
    Failed(String),
    /// Exit status 2.
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
