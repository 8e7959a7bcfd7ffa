//! What the dynamic symbol table of an ELF file defines.
//!
//! **What.** [`defines`] tells a definition from a mere reference. A program that is not position-independent and takes a function's
//! address has a symbol for it with a value: a stub of its own, so that the address is the same everywhere. The dynamic linker then
//! binds others to the program, although the function is elsewhere. Only the section tells: what is defined lies in one.
//! [`program`] finds the file of a program as it was called.
//!
//! **Failure.** A file that cannot be read, or is no ELF file of 64 bits with a table, tells nothing: `None`.

use std::env;
use std::ffi::OsStr;
use std::fs::{self, File};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{FileExt, PermissionsExt};
use std::path::{Path, PathBuf};

/// What a 64-bit ELF file with the least significant byte first begins with.
const MAGIC: &[u8] = b"\x7fELF\x02\x01";
/// The type of the section that has the dynamic symbols.
const DYNAMIC_SYMBOLS: u32 = 11;
/// The number of the section that stands for none: the symbol is sought elsewhere.
const UNDEFINED: u16 = 0;
/// Bytes of a section's header, and of a symbol.
const SECTION: usize = 64;
const SYMBOL: usize = 24;
/// The longest table that is read: no program has one like it.
const LONGEST: u64 = 1 << 30;

/// Whether the file at `path` defines the dynamic symbol `name`, in whatever version.
pub fn defines(path: &Path, name: &str) -> Option<bool> {
    // A pipe would be waited for.
    let file = fs::metadata(path).ok().filter(fs::Metadata::is_file).and_then(|_| File::open(path).ok())?;
    let head = part(&file, 0, 64).filter(|head| head.starts_with(MAGIC))?;
    let count = usize::from(u16_at(&head, 0x3c)?);
    let sections = part(&file, u64_at(&head, 0x28)?, (count * SECTION) as u64)?;
    let section = |number: usize| sections.chunks_exact(SECTION).nth(number);
    let contents = |section: &[u8]| part(&file, u64_at(section, 0x18)?, u64_at(section, 0x20)?);
    let table = sections.chunks_exact(SECTION).find(|section| u32_at(section, 4) == Some(DYNAMIC_SYMBOLS))?;
    let names = contents(section(u32_at(table, 0x28)? as usize)?)?;
    let is_named = |symbol: &[u8]| {
        let text = u32_at(symbol, 0).and_then(|at| names.get(at as usize..)).unwrap_or_default();
        text.split(|byte| *byte == 0).next() == Some(name.as_bytes())
    };
    let symbols = contents(table)?;
    let mut all = symbols.chunks_exact(SYMBOL);
    Some(all.any(|symbol| u16_at(symbol, 6) != Some(UNDEFINED) && is_named(symbol)))
}

/// The file that `exec` would run for `command`.
pub fn program(command: &OsStr) -> Option<PathBuf> {
    if command.as_bytes().contains(&b'/') {
        return Some(command.into());
    }
    let runs = |path: &PathBuf| fs::metadata(path).is_ok_and(|m| m.is_file() && m.permissions().mode() & 0o111 != 0);
    env::split_paths(&env::var_os("PATH")?).map(|directory| directory.join(command)).find(runs)
}

/// So many bytes of a file; none if it is shorter.
fn part(file: &File, at: u64, bytes: u64) -> Option<Vec<u8>> {
    let end = at.checked_add(bytes).filter(|_| bytes <= LONGEST)?;
    if end > file.metadata().ok()?.len() {
        return None;
    }
    let mut part = vec![0; bytes as usize];
    file.read_exact_at(&mut part, at).ok().map(|()| part)
}

fn u16_at(bytes: &[u8], at: usize) -> Option<u16> {
    bytes.get(at..at + 2)?.try_into().ok().map(u16::from_le_bytes)
}

fn u32_at(bytes: &[u8], at: usize) -> Option<u32> {
    bytes.get(at..at + 4)?.try_into().ok().map(u32::from_le_bytes)
}

fn u64_at(bytes: &[u8], at: usize) -> Option<u64> {
    bytes.get(at..at + 8)?.try_into().ok().map(u64::from_le_bytes)
}

#[cfg(test)]
mod tests;
