//! A document that a command writes at its end. The file is opened before, so that it surely can be
//! written, and keeps its contents until then.

use crate::failure::Failure;
use crate::terminal::Stream;
use craton_lab::document::Document;
use serde::Serialize;
use std::fs::{self, File, Metadata, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

pub enum Output {
    Standard,
    File(Opened),
}

pub struct Opened {
    file: File,
    path: PathBuf,
    /// New, and nothing is written yet.
    empty: bool,
}

impl Drop for Opened {
    fn drop(&mut self) {
        if self.empty {
            // Keep another program's writes.
            let still_empty = self.file.metadata().is_ok_and(|m| m.is_file() && m.len() == 0);
            let _ = still_empty.then(|| fs::remove_file(&self.path));
        }
    }
}

impl Output {
    /// `option` is for errors.
    ///
    /// # Errors
    /// It cannot be written.
    pub fn open(option: &str, path: &Path) -> Result<Self, Failure> {
        if path == Path::new("-") {
            return Ok(Self::Standard);
        }
        let empty = path.symlink_metadata().is_err();
        let opened = OpenOptions::new().write(true).create(true).truncate(false).open(path);
        let advice = format!("nothing was done: give {option} another path");
        let file = opened.map_err(|e| format!("cannot write {}: {e}; {advice}", path.display()))?;
        Ok(Self::File(Opened { file, path: path.to_owned(), empty }))
    }

    /// # Errors
    /// It cannot be written.
    pub fn json(path: Option<&Path>) -> Result<Option<Self>, Failure> {
        path.map(|path| Self::open("--json", path)).transpose()
    }

    pub fn is_standard(&self) -> bool {
        matches!(self, Self::Standard)
    }

    pub fn is_same(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Standard, Self::Standard) => true,
            (Self::File(a), Self::File(b)) => match (a.file.metadata(), b.file.metadata()) {
                (Ok(a), Ok(b)) => a.is_file() && is_one_file(&a, &b),
                _ => false,
            },
            _ => false,
        }
    }

    /// Standard error if the document uses standard output.
    pub fn beside(output: Option<&Self>) -> Stream {
        if output.is_some_and(Self::is_standard) { Stream::Err } else { Stream::Out }
    }

    /// # Errors
    /// JSON cannot represent a figure, or the system's error.
    pub fn document<R: Serialize>(&mut self, document: &Document<R>) -> Result<(), Failure> {
        let text = document.text().map_err(|e| format!("cannot write the figures as JSON: {e}"))?;
        self.write(&text)
    }

    /// # Errors
    /// The system's error.
    pub fn write(&mut self, text: &str) -> Result<(), Failure> {
        let (written, name) = match self {
            Self::Standard => (Stream::Out.write(text), "standard output".to_owned()),
            Self::File(opened) => {
                opened.empty = false;
                (replace(&mut opened.file, text), opened.path.display().to_string())
            }
        };
        Ok(written.map_err(|e| format!("cannot write {name}: {e}"))?)
    }
}

fn replace(file: &mut File, text: &str) -> io::Result<()> {
    // A pipe has neither length nor place.
    if file.metadata()?.is_file() {
        file.set_len(0)?;
        io::Seek::rewind(file)?;
    }
    file.write_all(text.as_bytes())
}

/// Writes a file at once; `-` is standard output.
///
/// # Errors
/// It cannot be written; `option` is for the message.
pub fn put(option: &str, to: &Path, bytes: &[u8]) -> Result<(), Failure> {
    let written = match to == Path::new("-") {
        true => io::stdout().lock().write_all(bytes),
        false => fs::write(to, bytes),
    };
    Ok(written.map_err(|e| format!("cannot write {}: {e}; give {option} another path", to.display()))?)
}

pub fn is_one_file(a: &Metadata, b: &Metadata) -> bool {
    (a.dev(), a.ino()) == (b.dev(), b.ino())
}

pub fn command() -> Vec<std::ffi::OsString> {
    std::iter::once("craton".into()).chain(std::env::args_os().skip(1)).collect()
}
