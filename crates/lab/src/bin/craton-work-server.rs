//! `craton-work-server`: a workload like a server's, for comparing allocators.
//!
//! **What.** Reads arguments, runs [`craton_lab::server`], and prints the number of requests and the checksum.
//! **Failure.** Wrong usage is one line on standard error, and exit status 2.

use craton_lab::server::{self, Config};
use std::process::ExitCode;
use std::time::Duration;

const HELP: &str = "\
A workload like a server's, for comparing allocators; it calls the C library's malloc, or what is preloaded.

Usage: craton-work-server [--requests N | --seconds S] [--workers N] [--seed N] [--live-mb N]

  --requests N   handle N requests in total (default 550000: about two seconds on two processors)
  --seconds S    handle requests for S seconds instead; the checksum then differs from run to run
  --workers N    threads, 1 to 1024 (default 2)
  --seed N       where the random numbers start (default 1)
  --live-mb N    live data at the top of the day in MiB, over all workers, 1 to 1048576 (default 60)

Example: craton compare -- craton-work-server --requests 1000000 --workers 4
";

/// What the arguments ask for.
#[derive(Debug, PartialEq)]
enum Request {
    Help,
    Run(Config),
}

fn parse(arguments: impl IntoIterator<Item = String>) -> Result<Request, String> {
    let mut config = Config::default();
    let (mut requests, mut seconds) = (None, None);
    let mut arguments = arguments.into_iter();
    while let Some(argument) = arguments.next() {
        if argument == "--help" || argument == "-h" {
            return Ok(Request::Help);
        }
        let (name, inline) = match argument.split_once('=') {
            Some((name, value)) => (name, Some(value.to_owned())),
            None => (argument.as_str(), None),
        };
        if !["--requests", "--seconds", "--workers", "--seed", "--live-mb"].contains(&name) {
            return Err(format!("{argument:?} is no option; --help lists them"));
        }
        let value = inline.or_else(|| arguments.next()).ok_or_else(|| format!("{name} needs a value"))?;
        match name {
            "--requests" => requests = Some(number(name, &value, 1, u64::MAX)?),
            "--seconds" => seconds = Some(duration(&value)?),
            "--workers" => config.workers = number(name, &value, 1, 1024)? as usize,
            "--seed" => config.seed = number(name, &value, 0, u64::MAX)?,
            _ => config.live_mb = number(name, &value, 1, 1 << 20)? as usize,
        }
    }
    match (requests, seconds) {
        (Some(_), Some(_)) => return Err("--requests and --seconds exclude each other; give one".to_owned()),
        (Some(requests), None) => config.requests = requests,
        (None, Some(time)) => (config.requests, config.time) = (u64::MAX, Some(time)),
        (None, None) => {}
    }
    Ok(Request::Run(config))
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
        Ok(Request::Run(config)) => {
            let outcome = server::run(&config);
            println!("requests {} checksum {:016x}", outcome.requests, outcome.checksum);
            ExitCode::SUCCESS
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
        assert_eq!(of(""), Ok(Request::Run(Config::default())));
        let config = Config { workers: 3, requests: 10, time: None, seed: 4, live_mb: 5 };
        assert_eq!(of("--workers 3 --requests=10 --seed 4 --live-mb=5"), Ok(Request::Run(config)));
        let timed = Config { requests: u64::MAX, time: Some(Duration::from_millis(500)), ..Config::default() };
        assert_eq!(of("--seconds 0.5"), Ok(Request::Run(timed)));
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
            ("fast", "\"fast\""),
        ] {
            let why = of(line).unwrap_err();
            assert!(why.contains(part), "{line}: {why}");
        }
    }
}
