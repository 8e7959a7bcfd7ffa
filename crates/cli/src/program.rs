//! Why a program does not start, or the dynamic linker does not preload anything into it.
//!
//! **What.** [`check`] finds the program's file before any run. [`why_not_served`] reads that file:
//! set-uid and set-gid programs ignore the environment's libraries, and a program without an
//! interpreter (the dynamic linker) is linked statically. It is a hint for a message, never a
//! decision.

use crate::failure::Failure;
use craton_lab::symbols;
use object::elf::{FileHeader64, PT_INTERP};
use object::read::elf::{FileHeader, ProgramHeader};
use object::{FileKind, LittleEndian, ReadCache};
use rustix::process::{getegid, geteuid};
use std::ffi::OsStr;
use std::fs::{self, File};
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::Path;

/// Why nothing was served, by the file of `command`; else what it may be, such as `other`.
pub fn why_not_served(command: &OsStr, other: &str) -> String {
    let general = format!("it is linked statically or runs set-uid, or {other}");
    match symbols::program(command).as_deref().and_then(obstacle) {
        Some(obstacle) => format!("{} {obstacle}", command.display()),
        None => format!("likely {general}"),
    }
}

/// A line that names the obstacle to preloading in the file of `command`, if there is one.
pub fn warning(command: &OsStr) -> Option<String> {
    let obstacle = symbols::program(command).as_deref().and_then(obstacle)?;
    Some(format!("craton: {} {obstacle}\n", command.display()))
}

/// Checks that there is an executable file for `command`.
///
/// # Errors
/// The one that `exec` would give.
pub fn check(command: &OsStr) -> Result<(), Failure> {
    let error = match symbols::program(command).map(fs::metadata) {
        Some(Ok(there)) if there.is_file() && there.permissions().mode() & 0o111 != 0 => return Ok(()),
        Some(Ok(_)) => io::Error::from_raw_os_error(libc::EACCES),
        Some(Err(error)) => error,
        None => io::Error::from_raw_os_error(libc::ENOENT),
    };
    Err(cannot_start(command, &error))
}

/// The failure of `exec`, with what to do.
pub fn cannot_start(command: &OsStr, error: &io::Error) -> Failure {
    let advice = match error.kind() {
        io::ErrorKind::NotFound if symbols::program(command).is_some_and(|file| file.exists()) => {
            "; the file is there, but not the interpreter that its first line or its ELF header names: install that"
        }
        io::ErrorKind::NotFound => "; check its name, and that it is on PATH",
        io::ErrorKind::PermissionDenied => "; check that it is an executable file",
        _ => "",
    };
    Failure::Failed(format!("cannot run {}: {error}{advice}", command.display()))
}

fn obstacle(path: &Path) -> Option<&'static str> {
    // A pipe would be waited for.
    let there = fs::metadata(path).ok().filter(fs::Metadata::is_file)?;
    let file = File::open(path).ok()?;
    let is_set = |bit| there.mode() & bit != 0;
    if is_set(0o4000) && there.uid() != geteuid().as_raw() || is_set(0o2000) && there.gid() != getegid().as_raw() {
        return Some("runs set-uid or set-gid, and such programs take no library from the environment");
    }
    // The dynamic linker itself has no interpreter, and preloads into the program that it is given.
    let is_linker = path.file_name().is_some_and(|name| name.as_bytes().starts_with(b"ld-"));
    obstacle_in(&file).filter(|_| !is_linker)
}

fn obstacle_in(file: &File) -> Option<&'static str> {
    let data = ReadCache::new(file);
    match FileKind::parse(&data).ok()? {
        FileKind::Elf32 => return Some("is a 32-bit program, and the library has 64 bits"),
        FileKind::Elf64 => (),
        _ => return None,
    }
    let head = FileHeader64::<LittleEndian>::parse(&data).ok()?;
    let mut segments = head.program_headers(LittleEndian, &data).ok()?.iter();
    let is_dynamic = segments.any(|segment| segment.p_type(LittleEndian) == PT_INTERP);
    (!is_dynamic).then_some("is linked statically: Craton serves it only where libcraton.a is linked into it")
}

#[cfg(test)]
mod tests;
