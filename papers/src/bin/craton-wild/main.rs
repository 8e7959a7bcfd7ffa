//! `craton-wild`: runs a program of [`craton_papers::wild`]; prints a line of JSON. A kill by the
//! kernel in a control group is a figure: `"alive":false`.

use craton_lab::print::print;
use craton_papers::wild::fragments::{Fragments, free_hugepages};
use craton_papers::wild::group::Group;
use craton_papers::wild::{self, Given, PROGRAMS, Program};
use craton_papers::work::arguments;
use serde_json::{Value, json};
use std::os::unix::process::ExitStatusExt;
use std::process::{Command, ExitCode, Stdio};

const USAGE: &str = "\
Programs as other people write them, on the C library's malloc or what is preloaded; the result is a line of JSON.

Usage: craton-wild NAME [--percent N] [--seconds N] [--seed N] [--group MIB | --fragmented]

  --percent N    amount of work, 1 to 100000 (default 100)
  --seconds N    how long idle…, swing…, fork… and dense… are watched, 1 to 3600
  --seed N       where the random numbers start (default 1)
  --group MIB    in a control group with N MiB of memory, 1 to 1048576
  --fragmented   takes half of the machine's free memory first, page by page, so that the kernel has no free hugepage;
                 as root, and where nothing else needs that memory

Exit status: 1 when it fails, no control group can be made or memory cannot be fragmented, 2 for wrong usage.

Example: LD_PRELOAD=libcraton.so craton-wild sparse-calloc --group 64
";

#[derive(Clone, Copy, PartialEq, Debug)]
enum Place {
    Here,
    /// MiB.
    Group(u64),
    Fragmented,
}

enum Request {
    Help,
    Run(&'static Program, Given, Place),
}

fn parse(arguments: &[String]) -> Result<Request, String> {
    let [name, arguments @ ..] = arguments else { return Err("name a program; --help lists them".to_owned()) };
    if ["--help", "-h"].contains(&name.as_str()) {
        return Ok(Request::Help);
    }
    let program = wild::find(name).ok_or_else(|| format!("{name:?} is no program; --help lists them"))?;
    let known = ["--percent", "--seconds", "--seed", "--group"];
    let Some(of) = arguments::Given::read(arguments, &known, &["--fragmented"])? else { return Ok(Request::Help) };
    let optional = |name, most| of.find(name).map(|_| of.number(name, 1, 1, most)).transpose();
    let percent = of.number("--percent", 100, 1, 100_000)?;
    let given = Given { percent, seconds: optional("--seconds", 3600)?, seed: of.number("--seed", 1, 0, u64::MAX)? };
    let place = match (optional("--group", 1 << 20)?, of.find("--fragmented").is_some()) {
        (Some(_), true) => return Err("--group and --fragmented: choose one".to_owned()),
        (Some(mib), false) => Place::Group(mib),
        (None, true) => Place::Fragmented,
        (None, false) => Place::Here,
    };
    Ok(Request::Run(program, given, place))
}

fn again(program: &Program, given: &Given) -> Command {
    let mut command = Command::new("/proc/self/exe");
    command.args([program.name, "--percent", &given.percent.to_string(), "--seed", &given.seed.to_string()]);
    command.args(given.seconds.iter().flat_map(|s| ["--seconds".to_owned(), s.to_string()]));
    command.stderr(Stdio::inherit());
    command
}

fn in_group(program: &Program, given: &Given, mib: u64) -> Result<String, String> {
    let group = Group::new(mib << 20)?;
    let mut command = again(program, given);
    group.enter(&mut command)?;
    let output = command.output().map_err(|e| format!("cannot start the program: {e}"))?;
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

fn in_fragments(program: &Program, given: &Given) -> Result<String, String> {
    let fragments = Fragments::new(u64::MAX)?;
    let free = free_hugepages()?;
    let output = again(program, given).output().map_err(|e| format!("cannot start the program: {e}"))?;
    let line = serde_json::from_slice::<Value>(&output.stdout).ok().filter(|_| output.status.success());
    let mut line = line.ok_or_else(|| format!("{} failed in fragmented memory: {}", program.name, output.status))?;
    line["fragmented_bytes"] = json!(fragments.bytes());
    line["free_hugepages"] = json!(free);
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
        Ok(Request::Run(program, given, place)) => {
            let line = match place {
                Place::Here => wild::run(program, &given).map(|figures| figures.line(program.name)),
                Place::Group(mib) => in_group(program, &given, mib),
                Place::Fragmented => in_fragments(program, &given),
            };
            (line.map(|line| line + "\n"), 1)
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
