//! A private directory for the files of a run or experiment.
//!
//! **What.** In the temporary directory, for this user only, removed with its contents when
//! dropped.
//!
//! **Failure.** It cannot be created: an error with the path and the reason.

use std::fs::Permissions;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use tempfile::TempDir;

#[derive(Debug)]
pub struct Scratch(TempDir);

impl Scratch {
    /// Creates one for `purpose`.
    /// Error: it cannot be created, with the reason.
    pub fn new(purpose: &str) -> Result<Self, String> {
        // Absolute, since a command may change its own directory.
        let parent = std::path::absolute(std::env::temp_dir()).unwrap_or_else(|_| "/tmp".into());
        let private = Permissions::from_mode(0o700);
        let made = tempfile::Builder::new().prefix("craton-lab-").permissions(private).tempdir_in(&parent);
        made.map(Self).map_err(|e| format!("cannot create a directory in {} for {purpose}: {e}", parent.display()))
    }

    pub fn path(&self) -> &Path {
        self.0.path()
    }
}

#[cfg(test)]
mod tests;
