//! `craton-work-server`: a workload like a server's, for comparing allocators.
//!
//! **What.** Reads arguments, runs [`craton_lab::server`], and prints the number of requests and the checksum.
//! **Failure.** Wrong usage is one line on standard error, and exit status 2. A checksum that is not the one expected is
//! exit status 1: `craton compare` throws standard output away, and has only the status to tell a wrong result by.

use craton_lab::server::{self, Config};
use std::process::ExitCode;
use std::time::Duration;

const HELP: &str = "\
A workload like a server's, for comparing allocators; it calls the C library's malloc, or what is preloaded.

Usage: craton-work-server [--requests N | --seconds S] [--workers N] [--seed N] [--live-mb N] [--expect CHECKSUM]

  --requests N   handle N requests in total (default 550000: about two seconds on two processors)
  --seconds S    handle requests for S seconds instead; the checksum then differs from run to run
  --workers N    threads, 1 to 1024 (default 2)
  --seed N       where the random numbers start (default 1)
  --live-mb N    live data at the top of the day in MiB, over all workers, 1 to 1048576 (default 60)
  --expect C     fail unless the checksum is C, in hexadecimal digits as printed (without other options it is known)

Exit status: 1 when the checksum is wrong, so that memory was not what had been written; 2 for wrong usage.

Example: craton compare -- craton-work-server --requests 1000000 --workers 4
";

/// What the arguments ask for.
#[derive(Debug, PartialEq)]
enum Request {
    Help,
    /// The workload, and the checksum that it must have if that is known.
    Run(Config, Option<u64>),
}

fn parse(arguments: impl IntoIterator<Item = String>) -> Result<Request, String> {
    let mut config = Config::default();
    let (mut requests, mut seconds, mut expected) = (None, None, None);
    let mut arguments = arguments.into_iter();
    while let Some(argument) = arguments.next() {
        if argument == "--help" || argument == "-h" {
            return Ok(Request::Help);
        }
        let (name, inline) = match argument.split_once('=') {
            Some((name, value)) => (name, Some(value.to_owned())),
            None => (argument.as_str(), None),
        };
        if !["--requests", "--seconds", "--workers", "--seed", "--live-mb", "--expect"].contains(&name) {
            return Err(format!("{argument:?} is no option; --help lists them"));
        }
        let value = inline.or_else(|| arguments.next()).ok_or_else(|| format!("{name} needs a value"))?;
        match name {
            "--requests" => requests = Some(number(name, &value, 1, u64::MAX)?),
            "--seconds" => seconds = Some(duration(&value)?),
            "--workers" => config.workers = number(name, &value, 1, 1024)? as usize,
            "--seed" => config.seed = number(name, &value, 0, u64::MAX)?,
            "--expect" => expected = Some(checksum(&value)?),
            _ => config.live_mb = number(name, &value, 1, 1 << 20)? as usize,
        }
    }
    match (requests, seconds) {
        (Some(_), Some(_)) => return Err("--requests and --seconds exclude each other; give one".to_owned()),
        (Some(requests), None) => config.requests = requests,
        (None, Some(time)) => (config.requests, config.time) = (u64::MAX, Some(time)),
        (None, None) => {}
    }
    if config.time.is_some() && expected.is_some() {
        return Err("--seconds and --expect exclude each other: the checksum depends on the time".to_owned());
    }
    let known = (config == Config::default()).then_some(server::DEFAULT_CHECKSUM);
    Ok(Request::Run(config, expected.or(known)))
}

/// Hexadecimal digits, as this program prints a checksum: no sign, which `from_str_radix` would take.
fn checksum(value: &str) -> Result<u64, String> {
    let parsed = u64::from_str_radix(value, 16).ok().filter(|_| !value.starts_with('+'));
    parsed.ok_or_else(|| format!("--expect {value:?}: give up to 16 hexadecimal digits, as the program prints them"))
}

fn number(name: &str, value: &str, least: u64, most: u64) -> Result<u64, String> {
    let parsed = value.parse().ok().filter(|n| (least..=most).contains(n));
    parsed.ok_or_else(|| format!("{name} {value:?}: give a whole number from {least} to {most}"))
}

/// A day at most: more is a slip of the hand, and far more does not fit the clock.
fn duration(value: &str) -> Result<Duration, String> {
    let seconds = value.parse::<f64>().ok().filter(|s| *s > 0.0 && *s <= 86_400.0);
    seconds
        .map(Duration::from_secs_f64)
        .ok_or_else(|| format!("--seconds {value:?}: give a number above 0 and at most 86400"))
}

fn main() -> ExitCode {
    let arguments = std::env::args_os().skip(1).map(|a| a.to_string_lossy().into_owned());
    match parse(arguments) {
        Err(why) => {
            eprintln!("craton-work-server: {why}");
            ExitCode::from(2)
        }
        Ok(Request::Help) => {
            print!("{HELP}");
            ExitCode::SUCCESS
        }
        Ok(Request::Run(config, expected)) => {
            let outcome = server::run(&config);
            println!("requests {} checksum {:016x}", outcome.requests, outcome.checksum);
            match expected.filter(|expected| *expected != outcome.checksum) {
                None => ExitCode::SUCCESS,
                Some(expected) => {
                    let got = outcome.checksum;
                    eprintln!(
                        "craton-work-server: checksum {got:016x} instead of {expected:016x}: memory was not what had \
                         been written, or --expect is that of other options"
                    );
                    ExitCode::FAILURE
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(line: &str) -> Result<Request, String> {
        parse(line.split_whitespace().map(str::to_owned))
    }

    #[test]
    fn arguments_are_read() {
        assert_eq!(of(""), Ok(Request::Run(Config::default(), Some(server::DEFAULT_CHECKSUM))));
        let config = Config { workers: 3, requests: 10, time: None, seed: 4, live_mb: 5 };
        assert_eq!(of("--workers 3 --requests=10 --seed 4 --live-mb=5"), Ok(Request::Run(config, None)));
        assert_eq!(of("--seed 4 --expect 00ff"), Ok(Request::Run(Config { seed: 4, ..Config::default() }, Some(255))));
        let timed = Config { requests: u64::MAX, time: Some(Duration::from_millis(500)), ..Config::default() };
        assert_eq!(of("--seconds 0.5"), Ok(Request::Run(timed, None)));
        assert_eq!(of("--workers 3 -h"), Ok(Request::Help));
    }

    #[test]
    fn wrong_usage_names_the_value() {
        for (line, part) in [
            ("--workers 0", "\"0\""),
            ("--workers two", "\"two\""),
            ("--seconds nan", "\"nan\""),
            ("--seconds -1", "\"-1\""),
            ("--live-mb", "needs a value"),
            ("--requests 1 --seconds 1", "exclude"),
            ("--expect xyz", "\"xyz\""),
            ("--expect +1", "\"+1\""),
            ("--seconds 1 --expect 1", "exclude"),
            ("fast", "\"fast\""),
        ] {
            let why = of(line).unwrap_err();
            assert!(why.contains(part), "{line}: {why}");
        }
    }
}
