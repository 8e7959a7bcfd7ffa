//! A private directory, removed with its contents when dropped.

use std::fs::Permissions;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use tempfile::TempDir;

#[derive(Debug)]
pub struct Scratch(TempDir);

impl Scratch {
    pub fn new(purpose: &str) -> Result<Self, String> {
        Self::within(std::env::temp_dir(), purpose)
    }

    /// In `/dev/shm`, whose files are in memory, else in the temporary directory.
    pub fn in_memory(purpose: &str) -> Result<Self, String> {
        let memory = Path::new("/dev/shm");
        Self::within(if memory.is_dir() { memory.to_owned() } else { std::env::temp_dir() }, purpose)
    }

    fn within(parent: PathBuf, purpose: &str) -> Result<Self, String> {
        // A command may change its directory.
        let parent = std::path::absolute(parent).unwrap_or_else(|_| "/tmp".into());
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
