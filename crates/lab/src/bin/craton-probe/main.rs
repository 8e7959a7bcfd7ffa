//! Which library serves malloc, and whether it serves the whole family: glibc's `pvalloc` would
//! return memory that another `free` does not know.
//!
//! **Failure.** Exit status 1; 2 for wrong usage. The allocator may end the program.

mod checks;
mod family;

use std::path::{Path, PathBuf};
use std::process::ExitCode;

const USAGE: &str = "\
Says which library serves malloc here, and whether it serves the whole family.

Usage: craton-probe [LIBRARY]

  LIBRARY   the library that it has to be

Exit status: 1 when another library serves a part of the family, or a call gives what it must not; 2 for wrong usage.

Example: LD_PRELOAD=target/release/peers/mimalloc3.so craton-probe
";

fn probe(expected: Option<&Path>) -> Result<PathBuf, String> {
    let server = family::server(family::object_of_name)?;
    if let Some(expected) = expected
        && expected.canonicalize().ok() != server.canonicalize().ok()
    {
        return Err(format!("malloc comes from {}, not from {}", server.display(), expected.display()));
    }
    checks::all(&family::Family::bound()?)?;
    Ok(server)
}

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let expected = match arguments.as_slice() {
        [] => None,
        [flag] if flag == "--help" || flag == "-h" => {
            print!("{USAGE}");
            return ExitCode::SUCCESS;
        }
        [library] if !library.starts_with('-') => Some(Path::new(library)),
        _ => {
            eprintln!("craton-probe: wants one library or none, not `{}`; --help says more", arguments.join(" "));
            return ExitCode::from(2);
        }
    };
    match probe(expected) {
        Ok(server) => {
            println!("{}", server.display());
            ExitCode::SUCCESS
        }
        Err(wrong) => {
            eprintln!("craton-probe: {wrong}");
            ExitCode::FAILURE
        }
    }
}

#[cfg(test)]
mod tests;
