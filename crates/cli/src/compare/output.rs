//! The place for the document of `--json`.
//!
//! **What.** A file is opened before the runs and kept open, so that it surely can be written; what it holds is replaced
//! only when there is something new.

use crate::failure::Failure;
use craton_lab::document::Document;
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
    /// Opens the place that `path` names.
    ///
    /// # Errors
    /// It cannot be written.
    pub fn open(path: &Path) -> Result<Self, Failure> {
        if path == Path::new("-") {
            return Ok(Self::Standard);
        }
        let opened = OpenOptions::new().write(true).create(true).truncate(false).open(path);
        let file = opened.map_err(|e| {
            let path = path.display();
            Failure(format!("cannot write {path}: {e}; nothing was run: give --json another path"))
        })?;
        Ok(Self::File(file, path.to_owned()))
    }

    /// Whether it is standard output.
    pub fn is_standard(&self) -> bool {
        matches!(self, Self::Standard)
    }

    /// Writes the document, instead of what was there.
    ///
    /// # Errors
    /// What the system says.
    pub fn write(self, document: &Document) -> Result<(), Failure> {
        let failed = |path: &Path, e: io::Error| Failure(format!("cannot write {}: {e}", path.display()));
        let (mut file, path) = match self {
            Self::Standard => {
                return document.write(Path::new("-")).map_err(|e| failed(Path::new("standard output"), e));
            }
            Self::File(file, path) => (file, path),
        };
        let text = || -> io::Result<String> { Ok(serde_json::to_string_pretty(document)? + "\n") };
        let mut write = || {
            let text = text()?;
            // A pipe has no length.
            if file.metadata()?.is_file() {
                file.set_len(0)?;
            }
            file.write_all(text.as_bytes())
        };
        write().map_err(|e| failed(&path, e))
    }
}
