//! A private directory for the files of one run or one experiment.
//!
//! **What.** Made under the directory for temporary files, for this user alone, and removed with all it holds when dropped.
//! **Failure.** It cannot be made: the error names it, and the reason.

use std::fs::Permissions;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use tempfile::TempDir;

#[derive(Debug)]
pub struct Scratch(TempDir);

impl Scratch {
    /// Makes one, for what is named by `purpose`.
    /// Error: it cannot be made, with the reason.
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
