//! A private directory, removed with its contents when dropped.

use std::fs::Permissions;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use tempfile::TempDir;

#[derive(Debug)]
pub struct Scratch(TempDir);

impl Scratch {
    pub fn new(purpose: &str) -> Result<Self, String> {
        // A command may change its directory.
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
