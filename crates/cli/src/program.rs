//! Why a program does not start, or cannot have a library preloaded.

use crate::failure::Failure;
use crate::terminal::plain;
use craton_lab::symbols;
use object::elf::FileHeader64;
use object::read::elf::{FileHeader, ProgramHeader};
use object::{FileKind, LittleEndian, ReadCache};
use rustix::process::{getegid, geteuid};
use std::ffi::OsStr;
use std::fs::{self, File};
use std::io::{self, Read};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};

/// `BINPRM_BUF_SIZE` of the kernel.
const LONGEST_LINE: u64 = 256;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Obstacle {
    Privileged,
    Bits32,
    Static,
    /// Also of a script's interpreter.
    Musl,
}

impl Obstacle {
    /// Follows the program's name.
    const fn text(self) -> &'static str {
        match self {
            Self::Privileged => "runs set-uid or set-gid, and such programs take no library from the environment",
            Self::Bits32 => "is a 32-bit program, and the library has 64 bits",
            Self::Static => "is linked statically: Craton serves it only where libcraton.a is linked into it",
            Self::Musl => {
                "is linked with musl's C library, and libcraton.so with glibc's: it runs without Craton; build it for glibc to have it served"
            }
        }
    }
}

/// `other` completes a guess.
pub fn why_not_served(command: &OsStr, other: &str) -> String {
    let general = format!("it is linked statically or runs set-uid, or {other}");
    match sentence(command) {
        Some((_, sentence)) => sentence,
        None => format!("likely {general}"),
    }
}

pub fn warning(command: &OsStr) -> Option<(Obstacle, String)> {
    sentence(command).map(|(obstacle, sentence)| (obstacle, format!("craton: {sentence}\n")))
}

fn sentence(command: &OsStr) -> Option<(Obstacle, String)> {
    let file = symbols::program(command)?;
    let (path, obstacle) = named_obstacle(file.clone())?;
    let name = if path == file { command } else { path.as_os_str() };
    Some((obstacle, format!("{} {}", plain(&name.to_string_lossy()), obstacle.text())))
}

/// # Errors
/// The error of `exec`.
pub fn check(command: &OsStr) -> Result<(), Failure> {
    let error = match symbols::program(command).map(fs::metadata) {
        Some(Ok(there)) if there.is_file() && there.permissions().mode() & 0o111 != 0 => return Ok(()),
        Some(Ok(_)) => io::Error::from_raw_os_error(libc::EACCES),
        Some(Err(error)) => error,
        None => io::Error::from_raw_os_error(libc::ENOENT),
    };
    Err(cannot_start(command, &error))
}

pub fn cannot_start(command: &OsStr, error: &io::Error) -> Failure {
    let advice = match error.kind() {
        io::ErrorKind::NotFound if symbols::program(command).is_some_and(|file| file.exists()) => {
            "; the file is there, but not the interpreter that its first line or its ELF header names: install that"
        }
        io::ErrorKind::NotFound if command.as_bytes().contains(&b'/') => "; check its path",
        io::ErrorKind::NotFound => "; check its name, and that it is on PATH",
        io::ErrorKind::PermissionDenied if Path::new(command).is_dir() => "; it is a folder: name a program in it",
        io::ErrorKind::PermissionDenied => "; check that it is an executable file",
        _ => "",
    };
    Failure::Failed(format!("cannot run {}: {error}{advice}", command.display()))
}

fn named_obstacle(path: PathBuf) -> Option<(PathBuf, Obstacle)> {
    if let Some(found) = obstacle(&path) {
        return Some((path, found));
    }
    // Other obstacles do not concern the programs that the script runs.
    let mut interpreters = interpreters(&path).into_iter();
    interpreters.find(|file| obstacle(file) == Some(Obstacle::Musl)).map(|file| (file, Obstacle::Musl))
}

/// The first line's, and the one that `env` finds there.
fn interpreters(path: &Path) -> Vec<PathBuf> {
    let mut line = Vec::new();
    let is_file = fs::metadata(path).is_ok_and(|there| there.is_file());
    if !is_file || File::open(path).and_then(|file| file.take(LONGEST_LINE).read_to_end(&mut line)).is_err() {
        return Vec::new();
    }
    let Some(line) = line.strip_prefix(b"#!").and_then(|rest| rest.split(|b| *b == b'\n').next()) else {
        return Vec::new();
    };
    let mut words =
        line.split(|b| matches!(b, b' ' | b'\t' | b'\r')).filter(|word| !word.is_empty()).map(OsStr::from_bytes);
    let first = words.next().map(PathBuf::from);
    let is_env = first.as_ref().and_then(|first| first.file_name()).is_some_and(|name| name == "env");
    let found = words.next().filter(|_| is_env).and_then(symbols::program);
    first.into_iter().chain(found).collect()
}

fn obstacle(path: &Path) -> Option<Obstacle> {
    // Opening a pipe would wait.
    let there = fs::metadata(path).ok().filter(fs::Metadata::is_file)?;
    let file = File::open(path).ok()?;
    let is_set = |bit| there.mode() & bit != 0;
    if is_set(0o4000) && there.uid() != geteuid().as_raw() || is_set(0o2000) && there.gid() != getegid().as_raw() {
        return Some(Obstacle::Privileged);
    }
    // The dynamic linker has no interpreter, and preloads into its argument.
    match linker(path.as_os_str().as_bytes()) {
        Some(linker) => linker,
        None => obstacle_in(&file),
    }
}

fn linker(path: &[u8]) -> Option<Option<Obstacle>> {
    let name = path.rsplit(|b| *b == b'/').next()?;
    name.starts_with(b"ld-").then(|| name.starts_with(b"ld-musl").then_some(Obstacle::Musl))
}

fn obstacle_in(file: &File) -> Option<Obstacle> {
    let data = ReadCache::new(file);
    match FileKind::parse(&data).ok()? {
        FileKind::Elf32 => return Some(Obstacle::Bits32),
        FileKind::Elf64 => (),
        _ => return None,
    }
    let head = FileHeader64::<LittleEndian>::parse(&data).ok()?;
    for segment in head.program_headers(LittleEndian, &data).ok()? {
        if let Some(path) = segment.interpreter(LittleEndian, &data).ok()? {
            return linker(path).flatten();
        }
    }
    Some(Obstacle::Static)
}

#[cfg(test)]
mod tests;
