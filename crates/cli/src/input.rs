//! Files that a command reads whole.
//!
//! **Failure.** Opening a pipe that has a path waits for a program that writes to it, perhaps for
//! ever. Commands refuse such pipes. Those of a shell's `|` and `<(CMD)` have their writer.

use rustix::fs::statfs;
use std::fs;
use std::os::unix::fs::FileTypeExt;
use std::path::Path;

/// `PIPEFS_MAGIC`: the file system of pipes without a path.
const PIPES: i64 = 0x5049_5045;

/// # Errors
/// It is a pipe with a path.
pub fn refuse_named_pipe(path: &Path, wanted: &str) -> Result<(), String> {
    let is_pipe = fs::metadata(path).is_ok_and(|there| there.file_type().is_fifo());
    if is_pipe && !statfs(path).is_ok_and(|system| system.f_type == PIPES) {
        let name = path.display();
        return Err(format!("{name}: not a file but a named pipe, which may have no writer; give {wanted}"));
    }
    Ok(())
}

/// # Errors
/// It is there, and cannot be read several times.
pub fn check_file(path: &Path, wanted: &str) -> Result<(), String> {
    match fs::metadata(path) {
        Ok(there) if !there.is_file() => Err(format!("{}: not a file; give {wanted}", path.display())),
        _ => Ok(()),
    }
}
