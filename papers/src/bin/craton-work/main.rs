//! `craton-work`: workloads for comparing allocators.

use craton_papers::empirical::{self, options, real, sim};
use craton_papers::work::arguments::Given;
use craton_papers::work::{self, Load, WORKLOADS, Workload};
use std::fmt::Write;
use std::process::ExitCode;

const USAGE: &str = "\
Workloads for comparing allocators; they call the C library's malloc, or what is preloaded.

Usage: craton-work NAME [--percent N] [--threads N] [--seed N] [--expect CHECKSUM]
       craton-work empirical --help
       craton-work list

  --percent N    amount of work, 1 to 100000 (default 100: about a second on two processors)
  --threads N    threads that share the work, 1 to 1024
  --seed N       where the random numbers start (default 1)
  --expect C     fail unless the checksum is C, in hexadecimal digits as printed (that of a standard load is known)

Exit status: 1 when the checksum is wrong, so that memory was not what had been written; 2 for wrong usage.

Example: craton compare -- craton-work server --threads 4
";

enum Request {
    Print(String),
    /// The checksum, if known.
    Run(&'static Workload, Load, Option<u64>),
    Real(Box<real::Config>, Option<u64>),
    Simulated(Box<sim::Config>),
}

fn parse(arguments: &[String]) -> Result<Request, String> {
    let [name, arguments @ ..] = arguments else {
        return Err("name a workload; `craton-work list` shows them".to_owned());
    };
    match name.as_str() {
        "--help" | "-h" => return Ok(Request::Print(help())),
        "list" => return Ok(Request::Print(list())),
        _ => {}
    }
    let workload = work::find(name).ok_or_else(|| format!("{name:?} is no workload; `craton-work list` shows them"))?;
    if name == empirical::NAME && options::wanted(arguments) {
        return Ok(match options::parse(arguments)? {
            options::Request::Help => Request::Print(options::USAGE.to_owned()),
            options::Request::Real(config, expected) => Request::Real(Box::new(config), expected),
            options::Request::Simulated(config) => Request::Simulated(Box::new(config)),
        });
    }
    let known = ["--percent", "--threads", "--seed", "--expect"];
    let Some(given) = Given::read(arguments, &known, &[])? else { return Ok(Request::Print(help())) };
    let load = Load {
        threads: given.number("--threads", workload.threads as u64, 1, 1024)? as usize,
        percent: given.number("--percent", work::FULL, 1, 100_000)?,
        seed: given.number("--seed", work::SEED, 0, u64::MAX)?,
    };
    Ok(Request::Run(workload, load, given.checksum()?.or(workload.expected(&load))))
}

fn list() -> String {
    let width = WORKLOADS.iter().map(|w| w.name.len()).max().unwrap_or(0);
    WORKLOADS.iter().fold(String::new(), |mut text, w| {
        let _ = writeln!(text, "{:width$}  {}  [{}]", w.name, w.about, w.from);
        text
    })
}

fn help() -> String {
    format!("{USAGE}\nWorkloads:\n{}", list())
}

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args_os().skip(1).map(|a| a.to_string_lossy().into_owned()).collect();
    match parse(&arguments) {
        Err(why) => wrong(why),
        Ok(Request::Print(text)) => print(&text, 0),
        Ok(Request::Run(workload, load, expected)) => finish("", workload.name, (workload.run)(&load), expected),
        Ok(Request::Real(config, expected)) => real::run(&config)
            .map_or_else(wrong, |outcome| finish(&format!("{outcome}\n"), "empirical", outcome.checksum, expected)),
        Ok(Request::Simulated(config)) => sim::simulate(&config).map_or_else(wrong, |samples| {
            eprintln!("{}", sim::summary(&samples));
            print(&sim::csv(&samples), 0)
        }),
    }
}

fn print(text: &str, status: u8) -> ExitCode {
    if craton_lab::print::print("craton-work", text) { status.into() } else { ExitCode::FAILURE }
}

fn wrong(why: String) -> ExitCode {
    eprintln!("craton-work: {why}");
    ExitCode::from(2)
}

fn finish(text: &str, name: &str, got: u64, expected: Option<u64>) -> ExitCode {
    let text = format!("{text}{name} checksum {got:016x}\n");
    match expected.filter(|expected| *expected != got) {
        None => print(&text, 0),
        Some(expected) => {
            eprintln!(
                "craton-work: {name}: checksum {got:016x} instead of {expected:016x}: memory was not what had been \
                 written, or --expect is that of other options"
            );
            print(&text, 1)
        }
    }
}

#[cfg(test)]
mod tests;
