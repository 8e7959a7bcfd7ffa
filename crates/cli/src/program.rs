//! Why the dynamic linker may not preload anything into a program.
//!
//! **What.** Reads the program's file: set-uid and set-gid programs ignore the environment's
//! libraries, and a program without an interpreter (the dynamic linker) is linked statically. It is
//! a hint for a message, never a decision.

use craton_lab::symbols;
use object::elf::{FileHeader64, PT_INTERP};
use object::read::elf::{FileHeader, ProgramHeader};
use object::{FileKind, LittleEndian, ReadCache};
use std::ffi::OsStr;
use std::fs::File;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

/// Why nothing was served, by the file of `command`; else what it may be, such as `other`.
pub fn why_not_served(command: &OsStr, other: &str) -> String {
    let general = format!("it is linked statically or runs set-uid, or {other}");
    match symbols::program(command).as_deref().and_then(obstacle) {
        Some(obstacle) => format!("{} {obstacle}", command.display()),
        None => format!("likely {general}"),
    }
}

fn obstacle(path: &Path) -> Option<&'static str> {
    let file = File::open(path).ok()?;
    if file.metadata().ok()?.permissions().mode() & 0o6000 != 0 {
        return Some("runs set-uid or set-gid, and such programs take no library from the environment");
    }
    obstacle_in(&file)
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
    (!is_dynamic).then_some("is linked statically; link it with libcraton.a instead")
}

#[cfg(test)]
mod tests;
