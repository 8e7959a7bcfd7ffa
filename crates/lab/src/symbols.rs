//! The definitions in an ELF file's symbol tables.
//!
//! A position-dependent program that takes a function's address has a symbol with a value, a stub.
//! Only a symbol with a section is a definition.

use object::read::elf::ElfFile64;
use object::{Endianness, Object, ObjectSymbol, ReadCache};
use std::env;
use std::ffi::OsStr;
use std::fs::{self, File};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

pub fn defines(path: &Path, name: &str) -> Option<bool> {
    let cache = ReadCache::new(open(path)?);
    let elf = ElfFile64::<Endianness, _>::parse(&cache).ok()?;
    elf.dynamic_symbol_table()?;
    Some(elf.dynamic_symbols().any(|symbol| is_definition(&symbol, name)))
}

/// A stripped file does not show it.
pub fn contains(path: &Path, name: &str) -> bool {
    let Some(cache) = open(path).map(ReadCache::new) else { return false };
    let elf = ElfFile64::<Endianness, _>::parse(&cache);
    elf.is_ok_and(|elf| elf.symbols().any(|symbol| is_definition(&symbol, name)))
}

fn is_definition<'a>(symbol: &impl ObjectSymbol<'a>, name: &str) -> bool {
    !symbol.is_undefined() && symbol.name_bytes() == Ok(name.as_bytes())
}

fn open(path: &Path) -> Option<File> {
    // Opening a pipe would wait.
    fs::metadata(path).ok().filter(fs::Metadata::is_file).and_then(|_| File::open(path).ok())
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
