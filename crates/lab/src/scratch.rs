//! A private directory for the files of one run or one experiment.
//!
//! **What.** Made under the directory for temporary files, for this user alone, and removed with all it holds when dropped.
//! **Failure.** It cannot be made: the error names it, and the reason.

use std::fs::{self, DirBuilder};
use std::io::ErrorKind;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};

/// The directory.
#[derive(Debug)]
pub struct Scratch(PathBuf);

impl Scratch {
    /// Makes one, for what is named by `purpose`.
    ///
    /// # Errors
    /// It cannot be made, with the reason.
    pub fn new(purpose: &str) -> Result<Self, String> {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        // Absolute, since a command may change its own directory.
        let parent = std::path::absolute(std::env::temp_dir()).unwrap_or_else(|_| "/tmp".into());
        loop {
            // An earlier process of the same number may have been killed before it removed its directory.
            let path = parent.join(format!("craton-lab-{}-{}", std::process::id(), NEXT.fetch_add(1, Relaxed)));
            match DirBuilder::new().mode(0o700).create(&path) {
                Ok(()) => return Ok(Self(path)),
                Err(e) if e.kind() == ErrorKind::AlreadyExists => {}
                Err(e) => return Err(format!("cannot create {} for {purpose}: {e}", path.display())),
            }
        }
    }

    /// Its path.
    pub fn path(&self) -> &Path {
        &self.0
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

#[cfg(test)]
mod tests;
