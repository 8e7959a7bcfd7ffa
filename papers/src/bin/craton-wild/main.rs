//! `craton-wild`: programs as other people write them; each measures and prints its memory and time.
//!
//! **What.** Runs a program of [`craton_papers::wild`], alone or in a control group, and prints a line of JSON.
//! **Failure.** Wrong usage is exit status 2; a control group that cannot be made, or a program
//! that fails by itself, is exit status 1. A program that the kernel kills in its group is a
//! figure: `"alive":false`.

use craton_lab::print::print;
use craton_papers::wild::group::Group;
use craton_papers::wild::{self, Given, PROGRAMS, Program};
use craton_papers::work::arguments;
use serde_json::{Value, json};
use std::os::unix::process::ExitStatusExt;
use std::process::{Command, ExitCode, Stdio};

const USAGE: &str = "\
Programs as other people write them, on the C library's malloc or what is preloaded; the result is a line of JSON.

Usage: craton-wild NAME [--percent N] [--seconds N] [--seed N] [--group MIB]

  --percent N    amount of work, 1 to 100000 (default 100)
  --seconds N    how long idle…, swing… and fork… are watched, 1 to 3600
  --seed N       where the random numbers start (default 1)
  --group MIB    in a control group with N MiB of memory, 1 to 1048576

Exit status: 1 when it fails or no control group can be made, 2 for wrong usage.

Example: LD_PRELOAD=libcraton.so craton-wild sparse-calloc --group 64
";

/// The request in the arguments.
enum Request {
    Help,
    Run(&'static Program, Given, Option<u64>),
}

fn parse(arguments: &[String]) -> Result<Request, String> {
    let [name, arguments @ ..] = arguments else { return Err("name a program; --help lists them".to_owned()) };
    if ["--help", "-h"].contains(&name.as_str()) {
        return Ok(Request::Help);
    }
    let program = wild::find(name).ok_or_else(|| format!("{name:?} is no program; --help lists them"))?;
    let known = ["--percent", "--seconds", "--seed", "--group"];
    let Some(of) = arguments::Given::read(arguments, &known, &[])? else { return Ok(Request::Help) };
    let optional = |name, most| of.find(name).map(|_| of.number(name, 1, 1, most)).transpose();
    let percent = of.number("--percent", 100, 1, 100_000)?;
    let given = Given { percent, seconds: optional("--seconds", 3600)?, seed: of.number("--seed", 1, 0, u64::MAX)? };
    Ok(Request::Run(program, given, optional("--group", 1 << 20)?))
}

/// Runs it again as a child in a group of `mib`, and adds to its line what became of it.
fn in_group(program: &Program, given: &Given, mib: u64) -> Result<String, String> {
    let group = Group::new(mib << 20)?;
    let mut command = Command::new("/proc/self/exe");
    command.args([program.name, "--percent", &given.percent.to_string(), "--seed", &given.seed.to_string()]);
    command.args(given.seconds.iter().flat_map(|s| ["--seconds".to_owned(), s.to_string()]));
    group.enter(&mut command)?;
    let output = command.stderr(Stdio::inherit()).output().map_err(|e| format!("cannot start the program: {e}"))?;
    let killed = output.status.signal() == Some(libc::SIGKILL);
    if !output.status.success() && !killed {
        return Err(format!("{} failed in its control group: {}", program.name, output.status));
    }
    let mut line: Value = serde_json::from_slice(&output.stdout).unwrap_or(json!({ "program": program.name }));
    line["group_bytes"] = json!(mib << 20);
    line["group_peak_bytes"] = json!(group.peak_bytes());
    line["alive"] = json!(!killed);
    Ok(line.to_string())
}

fn help() -> String {
    let programs: String = PROGRAMS.iter().map(|of| format!("  {:<14} {}\n", of.name, of.about)).collect();
    format!("{USAGE}\nPrograms:\n{programs}")
}

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args_os().skip(1).map(|a| a.to_string_lossy().into_owned()).collect();
    let (text, status) = match parse(&arguments) {
        Err(why) => (Err(why), 2),
        Ok(Request::Help) => (Ok(help()), 1),
        Ok(Request::Run(program, given, Some(mib))) => (in_group(program, &given, mib).map(|line| line + "\n"), 1),
        Ok(Request::Run(program, given, None)) => {
            (wild::run(program, &given).map(|figures| figures.line(program.name) + "\n"), 1)
        }
    };
    match text {
        Ok(text) if print("craton-wild", &text) => ExitCode::SUCCESS,
        Ok(_) => ExitCode::FAILURE,
        Err(why) => {
            eprintln!("craton-wild: {why}");
            ExitCode::from(status)
        }
    }
}

#[cfg(test)]
mod tests;
