//! `craton-real`: lists the real programs of [`craton_papers::real`], and prepares one.

use clap::Parser;
use craton_lab::print::print;
use craton_papers::real::{self, REAL, Real, Size};
use std::fmt::Write as _;
use std::io::Write as _;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// Real programs as loads for comparing allocators.
#[derive(Parser)]
#[command(after_help = "Exit status: 1 when a program is missing or the inputs cannot be made, 2 for wrong usage.

Example: mapfile -t load < <(craton-real prepare redis-list /tmp/load) && craton compare -- \"${load[@]}\"")]
enum Request {
    /// Every load, and what it lacks on this machine
    List,
    /// Writes the inputs of load NAME into DIR, and prints the command to measure, one word a line
    Prepare {
        #[arg(value_parser = find)]
        name: &'static Real,
        dir: PathBuf,
        /// A load of tenths of a second instead of 1 to 2 s
        #[arg(long)]
        quick: bool,
    },
}

fn find(name: &str) -> Result<&'static Real, String> {
    real::find(name).ok_or_else(|| "no load; `craton-real list` shows them".to_owned())
}

fn list() -> String {
    let width = REAL.iter().map(|real| real.name.len()).max().unwrap_or(0);
    REAL.iter().fold(String::new(), |mut text, real| {
        let _ = writeln!(text, "{:width$}  {}  [{}]", real.name, real.about, real.from);
        if let Err(why) = real.available() {
            let _ = writeln!(text, "{:width$}  not here: {why}", "");
        }
        text
    })
}

/// The words need not be text.
fn prepare(real: &Real, dir: &Path, size: Size) -> Result<String, String> {
    real.available()?;
    let words = real::prepare(dir, real, size)?;
    let lines: Vec<u8> = words.iter().flat_map(|word| [word.as_bytes(), b"\n"].concat()).collect();
    let written = std::io::stdout().write_all(&lines);
    written.map(|()| String::new()).map_err(|e| format!("cannot print the command: {e}"))
}

fn main() -> ExitCode {
    let text = match Request::parse() {
        Request::List => Ok(list()),
        Request::Prepare { name, dir, quick } => prepare(name, &dir, if quick { Size::Quick } else { Size::Full }),
    };
    match text {
        Ok(text) if print("craton-real", &text) => ExitCode::SUCCESS,
        Ok(_) => ExitCode::FAILURE,
        Err(why) => {
            eprintln!("craton-real: {why}");
            ExitCode::FAILURE
        }
    }
}

#[cfg(test)]
mod tests;
