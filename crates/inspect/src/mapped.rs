//! The files that a process has mapped, as it sees them: in a container their paths lead elsewhere
//! than here.
//!
//! **Failure.** `None` without the file. Its place may hold something else by now: a pipe is not
//! waited for, and a link leads to no file outside.

use rustix::fs::{Mode, OFlags, ResolveFlags, open, openat2};
use rustix::io::Errno;
use std::fs::{self, File};
use std::io::Read;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// Where a running process's paths begin.
pub fn root_of(pid: u32) -> PathBuf {
    PathBuf::from(format!("/proc/{pid}/root"))
}

/// Below `root` while that is there; once the process has ended, here.
pub(crate) fn read(root: Option<&Path>, path: &Path) -> Option<Vec<u8>> {
    let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let opened = match root.filter(|root| fs::metadata(root).is_ok()) {
        Some(root) => {
            let within = path.strip_prefix("/").unwrap_or(path);
            let from = open(root, OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty()).ok()?;
            match openat2(from, within, flags, Mode::empty(), ResolveFlags::IN_ROOT) {
                // Linux before 5.6, or a filter of system calls.
                Err(Errno::NOSYS | Errno::PERM) if is_ours(root) => open(path, flags, Mode::empty()),
                opened => opened,
            }
        }
        None => open(path, flags, Mode::empty()),
    };
    let mut file = File::from(opened.ok()?);
    let mut bytes = Vec::new();
    file.metadata().ok().filter(|found| found.is_file())?;
    file.read_to_end(&mut bytes).ok()?;
    Some(bytes)
}

fn is_ours(root: &Path) -> bool {
    let place = |path: &Path| fs::metadata(path).ok().map(|found| (found.dev(), found.ino()));
    place(root).is_some_and(|its| Some(its) == place(Path::new("/")))
}

#[cfg(test)]
mod tests;
