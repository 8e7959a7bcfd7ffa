//! The place for a document: a file that a command writes at its end.
//!
//! **What.** A file is opened before the runs and kept open, so that it surely can be written; what it holds is replaced
//! only when there is something new.

use crate::failure::Failure;
use crate::terminal::Stream;
use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

/// Where the document goes.
pub enum Output {
    /// Standard output.
    Standard,
    /// A file, and its path.
    File(File, PathBuf),
}

impl Output {
    /// Opens the place that `path` names, which is the value of `option`.
    ///
    /// # Errors
    /// It cannot be written.
    pub fn open(option: &str, path: &Path) -> Result<Self, Failure> {
        if path == Path::new("-") {
            return Ok(Self::Standard);
        }
        let opened = OpenOptions::new().write(true).create(true).truncate(false).open(path);
        let file = opened.map_err(|e| {
            let path = path.display();
            Failure(format!("cannot write {path}: {e}; nothing was run: give {option} another path"))
        })?;
        Ok(Self::File(file, path.to_owned()))
    }

    /// Whether it is standard output.
    pub fn is_standard(&self) -> bool {
        matches!(self, Self::Standard)
    }

    /// Where tables go beside it: to standard error, if the document has standard output.
    pub fn beside(output: Option<&Self>) -> Stream {
        if output.is_some_and(Self::is_standard) { Stream::Err } else { Stream::Out }
    }

    /// Writes the document, instead of what was there.
    ///
    /// # Errors
    /// What the system says.
    pub fn write(&mut self, text: &str) -> Result<(), Failure> {
        let (written, name) = match self {
            Self::Standard => (Stream::Out.write(text), "standard output".to_owned()),
            Self::File(file, path) => (replace(file, text), path.display().to_string()),
        };
        written.map_err(|e| Failure(format!("cannot write {name}: {e}")))
    }
}

fn replace(file: &mut File, text: &str) -> io::Result<()> {
    // A pipe has no length and no place.
    if file.metadata()?.is_file() {
        file.set_len(0)?;
        io::Seek::rewind(file)?;
    }
    file.write_all(text.as_bytes())
}
