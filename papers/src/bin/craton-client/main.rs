//! `craton-client`: a program that checks every object that malloc gives it.

use craton_lab::print::print;
use craton_papers::trust::client::{self, Given};
use craton_papers::work::arguments;
use std::process::ExitCode;

const USAGE: &str = "\
Allocates by every call of malloc's family, with a pattern in each object, and checks it when the object goes.

Usage: craton-client [--seconds N] [--threads N] [--live MIB] [--seed N] [--forks] [--signals] | --operations N

  --seconds N     how long, 1 to 1000000 (default 10)
  --threads N     threads that allocate, 1 to 1000 (default 4)
  --live MIB      bytes that may be out, 1 to 1048576 (default 256)
  --seed N        where the random numbers start (default 1)
  --forks         threads fork again and again; the children check what they inherit
  --signals       the process gets signals all the time
  --operations N  operations of one thread, with no watch on the resident set

Exit status: 70 when an object was overwritten or misplaced, or the process has too much memory; 2 for wrong usage.

Example: LD_PRELOAD=libcraton.so craton-client --seconds 60 --forks --signals
";

fn parse(arguments: &[String]) -> Result<Option<Given>, String> {
    let known = ["--seconds", "--threads", "--live", "--seed", "--operations"];
    let Some(of) = arguments::Given::read(arguments, &known, &["--forks", "--signals"])? else { return Ok(None) };
    let operations = of.find("--operations").map(|_| of.number("--operations", 1, 1, u64::MAX)).transpose()?;
    Ok(Some(Given {
        seconds: of.number("--seconds", 10, 1, 1_000_000)?,
        operations,
        threads: of.number("--threads", 4, 1, 1000)?,
        live_bytes: of.number("--live", 256, 1, 1 << 20)? << 20,
        seed: of.number("--seed", 1, 0, u64::MAX)?,
        forks: of.find("--forks").is_some(),
        signals: of.find("--signals").is_some(),
    }))
}

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args_os().skip(1).map(|a| a.to_string_lossy().into_owned()).collect();
    let given = match parse(&arguments) {
        Ok(given) => given,
        Err(why) => {
            eprintln!("craton-client: {why}");
            return ExitCode::from(2);
        }
    };
    let text = match given {
        None => USAGE.to_owned(),
        Some(given) => {
            let figures = client::run(&given);
            match given.operations {
                // The same in every run that loses nothing.
                Some(_) => "every object was as it was left\n".to_owned(),
                None => serde_json::to_string(&figures).expect("numbers are JSON") + "\n",
            }
        }
    };
    if print("craton-client", &text) { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

#[cfg(test)]
mod tests;
