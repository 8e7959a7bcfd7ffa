//! The space of a heap's file, or of the files in its folder.
//!
//! **Unsafe.** One system call on an open file.

use std::fs::{File, metadata, read_dir};
use std::io::{self, Read};
use std::os::fd::AsRawFd;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

/// 0 without a file.
pub fn backed(path: &Path) -> u64 {
    match read_dir(path) {
        Ok(files) => files.flatten().map(|file| backed(&file.path())).sum(),
        Err(_) => metadata(path).map_or(0, |file| file.blocks() * 512),
    }
}

const PAGE: usize = 4096;
/// Read at once.
const PART: usize = 1 << 20;

/// Releases whole pages of zeros.
pub fn punch_zeros(path: &Path) -> io::Result<()> {
    let mut file = File::options().read(true).write(true).open(path)?;
    let (mut part, mut at) = (vec![0; PART], 0);
    loop {
        let len = file.read(&mut part)?;
        if len == 0 {
            return Ok(());
        }
        let is_zero = |page: &[u8]| page.iter().all(|byte| *byte == 0);
        let pages: Vec<bool> = part[..len].chunks(PAGE).map(is_zero).collect();
        let mut first = 0;
        for run in pages.chunk_by(|a, b| a == b) {
            if run[0] {
                punch(&file, (at + first * PAGE) as i64, (run.len() * PAGE) as i64)?;
            }
            first += run.len();
        }
        at += len;
    }
}

fn punch(file: &File, at: i64, bytes: i64) -> io::Result<()> {
    let mode = libc::FALLOC_FL_PUNCH_HOLE | libc::FALLOC_FL_KEEP_SIZE;
    // SAFETY: a system call on an open file.
    match unsafe { libc::fallocate(file.as_raw_fd(), mode, at, bytes) } {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

#[cfg(test)]
mod tests;
