//! Why the dynamic linker may not preload anything into a program.
//!
//! **What.** A look at the program's file: set-uid and set-gid programs ignore the environment's libraries, and one that
//! names no interpreter (the dynamic linker) is linked statically. It is a hint for a message, never a decision.

use craton_lab::symbols;
use std::ffi::OsStr;
use std::fs::File;
use std::io::Read;
use std::os::unix::fs::{FileExt, PermissionsExt};
use std::path::Path;

/// Why nothing was served, as far as the file of `command` tells; otherwise what it may be: that it cannot be preloaded
/// into, or `other`.
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

/// What an ELF file's headers tell.
fn obstacle_in(file: &File) -> Option<&'static str> {
    const INTERPRETER: u32 = 3;
    let mut header = [0; 64];
    let mut reader = file;
    reader.read_exact(&mut header).ok()?;
    if header[..4] != *b"\x7fELF" {
        return None;
    }
    if header[4] != 2 {
        return Some("is a 32-bit program, and the library has 64 bits");
    }
    let word = |at: usize| u16::from_le_bytes([header[at], header[at + 1]]);
    let start = u64::from_le_bytes(std::array::from_fn(|i| header[0x20 + i]));
    let (size, entries) = (u64::from(word(0x36)), u64::from(word(0x38)));
    for entry in 0..entries {
        let mut kind = [0; 4];
        file.read_exact_at(&mut kind, start.checked_add(entry * size)?).ok()?;
        if u32::from_le_bytes(kind) == INTERPRETER {
            return None;
        }
    }
    Some("is linked statically; link it with libcraton.a instead")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_dynamic_program_and_a_script_have_no_obstacle() {
        let own = std::env::current_exe().unwrap();
        assert_eq!(obstacle(&own), None);
        assert_eq!(obstacle(Path::new("/dev/null")), None);
        assert!(why_not_served(own.as_os_str(), "it is not there").starts_with("likely"));
        assert!(why_not_served(OsStr::new("no-such-program-here"), "it is not there").starts_with("likely"));
    }
}
