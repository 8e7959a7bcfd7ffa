//! The definitions in an ELF file's dynamic symbol table.
//!
//! **What.** [`defines`] distinguishes a definition from a reference. A position-dependent program
//! that takes a function's address has a symbol with a value for it, a stub, to which the linker
//! binds others. Only a symbol with a section is a definition.
//!
//! **Failure.** `None`: unreadable, or not a 64-bit ELF file with a table.

use object::read::elf::ElfFile64;
use object::{Endianness, Object, ObjectSymbol, ReadCache};
use std::env;
use std::ffi::OsStr;
use std::fs::{self, File};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

pub fn defines(path: &Path, name: &str) -> Option<bool> {
    // Opening a pipe would wait.
    let file = fs::metadata(path).ok().filter(fs::Metadata::is_file).and_then(|_| File::open(path).ok())?;
    // Only the tables are read.
    let cache = ReadCache::new(file);
    let elf = ElfFile64::<Endianness, _>::parse(&cache).ok()?;
    elf.dynamic_symbol_table()?;
    let mut symbols = elf.dynamic_symbols();
    Some(symbols.any(|symbol| !symbol.is_undefined() && symbol.name_bytes() == Ok(name.as_bytes())))
}

/// The file that `exec` would run.
pub fn program(command: &OsStr) -> Option<PathBuf> {
    if command.as_bytes().contains(&b'/') {
        return Some(command.into());
    }
    let runs = |path: &PathBuf| fs::metadata(path).is_ok_and(|m| m.is_file() && m.permissions().mode() & 0o111 != 0);
    env::split_paths(&env::var_os("PATH")?).map(|directory| directory.join(command)).find(runs)
}

#[cfg(test)]
mod tests;
