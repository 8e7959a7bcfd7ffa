//! `craton-real`: lists the real programs that can be loads, and prepares one.
//!
//! **What.** The door to [`craton_papers::real`] for scripts and people.
//! **Failure.** Wrong usage is one line on standard error, and exit status 2. A program that is missing, or inputs that
//! cannot be made, are exit status 1.

use craton_lab::print::print;
use craton_papers::real::{self, REAL, Real, Size};
use std::fmt::Write as _;
use std::io::Write as _;
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;
use std::process::ExitCode;

const USAGE: &str = "\
Real programs as loads for comparing allocators.

Usage: craton-real list
       craton-real prepare NAME DIR [--quick]

  list      every load, and what it lacks on this machine
  prepare   writes the inputs of load NAME into DIR, and prints the command to measure, one word a line
  --quick   a load of tenths of a second instead of 1 to 2 s

Exit status: 1 when a program is missing or the inputs cannot be made, 2 for wrong usage.

Example: mapfile -t load < <(craton-real prepare redis-list /tmp/load) && craton compare -- \"${load[@]}\"
";

enum Request {
    Print(String),
    Prepare(&'static Real, PathBuf, Size),
}

fn parse(arguments: &[String]) -> Result<Request, String> {
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let (name, dir, size) = match words.as_slice() {
        _ if words.contains(&"--help") || words.contains(&"-h") => return Ok(Request::Print(USAGE.to_owned())),
        ["list"] => return Ok(Request::Print(list())),
        ["prepare", name, dir] => (name, dir, Size::Full),
        ["prepare", name, dir, "--quick"] => (name, dir, Size::Quick),
        _ => return Err(format!("{:?}: give `list` or `prepare NAME DIR [--quick]`", words.join(" "))),
    };
    let real = real::find(name).ok_or_else(|| format!("{name:?} is no load; `craton-real list` shows them"))?;
    Ok(Request::Prepare(real, PathBuf::from(dir), size))
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

fn prepare(real: &Real, dir: &std::path::Path, size: Size) -> Result<(), String> {
    real.available()?;
    let mut out = std::io::stdout().lock();
    for word in real::prepare(dir, real, size)? {
        let written = out.write_all(word.as_bytes()).and_then(|()| out.write_all(b"\n"));
        written.map_err(|e| format!("cannot print the command: {e}"))?;
    }
    Ok(())
}

fn main() -> ExitCode {
    let arguments: Vec<_> = std::env::args_os().skip(1).map(|a| a.to_string_lossy().into_owned()).collect();
    let (status, why) = match parse(&arguments) {
        Err(why) => (2, why),
        Ok(Request::Print(text)) => {
            return if print("craton-real", &text) { ExitCode::SUCCESS } else { ExitCode::FAILURE };
        }
        Ok(Request::Prepare(real, dir, size)) => match prepare(real, &dir, size) {
            Err(why) => (1, why),
            Ok(()) => return ExitCode::SUCCESS,
        },
    };
    eprintln!("craton-real: {why}");
    ExitCode::from(status)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(line: &str) -> Result<Request, String> {
        parse(&line.split_whitespace().map(str::to_owned).collect::<Vec<_>>())
    }

    #[test]
    fn arguments_are_read() {
        assert!(matches!(of("prepare perl d"), Ok(Request::Prepare(real, _, Size::Full)) if real.name == "perl"));
        assert!(matches!(of("prepare perl d --quick"), Ok(Request::Prepare(_, _, Size::Quick))));
        assert!(matches!(of("list"), Ok(Request::Print(text)) if REAL.iter().all(|real| text.contains(real.about))));
        for (line, part) in [("", "list"), ("prepare perl", "prepare perl"), ("prepare no-such d", "\"no-such\"")] {
            assert!(of(line).err().unwrap().contains(part), "{line}");
        }
    }
}
