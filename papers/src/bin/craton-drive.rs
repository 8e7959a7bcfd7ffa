//! `craton-drive`: requests to a server, with a look at each answer.
//!
//! **What.** Connects to a server on a unix socket and leads one of the dialogues of [`craton_papers::real::drive`].
//! **Failure.** Wrong usage is one line on standard error, and exit status 2; a wrong answer, or none, is exit status 1.
//! Where `LD_PRELOAD` is set it refuses: only the server is to be measured, and the caller forgot to clear it.

use craton_lab::print::print;
use craton_papers::real::drive::{self, DIALOGUES};
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Instant;

const USAGE: &str = "\
Requests to a redis-server or memcached on a unix socket; each answer is compared with the right one.

Usage: craton-drive NAME --socket PATH [--requests N] [--seed N] [--server PID] [--end]

  NAME           redis-list, redis-set or memcached
  --socket PATH  where the server listens, or will within 10 s
  --requests N   how many (default 100000)
  --seed N       where the random numbers start (default 1)
  --server PID   the server's process: when it has ended nobody waits for it
  --end          tell the server to end when all is done

Exit status: 1 when an answer is wrong or does not come, 2 for wrong usage.

Example: craton-drive redis-set --socket /run/redis/redis.sock --requests 50000
";

struct Request {
    name: String,
    socket: PathBuf,
    requests: u64,
    seed: u64,
    server: Option<u32>,
    end: bool,
}

fn parse(arguments: impl IntoIterator<Item = String>) -> Result<Request, String> {
    let mut arguments = arguments.into_iter();
    let name = arguments.next().ok_or_else(|| format!("name a load: {}", DIALOGUES.join(", ")))?;
    if !DIALOGUES.contains(&name.as_str()) {
        return Err(format!("{name:?} is no load; there are {}", DIALOGUES.join(", ")));
    }
    let mut request = Request { name, socket: PathBuf::new(), requests: 100_000, seed: 1, server: None, end: false };
    while let Some(option) = arguments.next() {
        if option == "--end" {
            request.end = true;
            continue;
        }
        if !["--socket", "--requests", "--seed", "--server"].contains(&option.as_str()) {
            return Err(format!("{option:?} is no option; --help lists them"));
        }
        let value = arguments.next().ok_or_else(|| format!("{option} needs a value"))?;
        let number = || value.parse().map_err(|_| format!("{option} {value:?}: give a whole number"));
        match option.as_str() {
            "--socket" => request.socket = value.into(),
            "--requests" => request.requests = number()?,
            "--seed" => request.seed = number()?,
            _ => request.server = Some(u32::try_from(number()?).map_err(|_| format!("{value} is no process"))?),
        }
    }
    if request.socket.as_os_str().is_empty() {
        return Err("--socket PATH is missing: where the server listens".to_owned());
    }
    Ok(request)
}

/// Processor time of this process so far, in seconds, if the kernel tells.
fn cpu_s() -> Option<f64> {
    let text = std::fs::read_to_string("/proc/self/schedstat").ok()?;
    text.split_whitespace().next()?.parse::<f64>().ok().map(|ns| ns / 1e9)
}

fn run(request: &Request) -> Result<(), String> {
    if std::env::var_os("LD_PRELOAD").is_some() {
        return Err("LD_PRELOAD is set: the load generator would be measured; start it with env -u LD_PRELOAD".into());
    }
    let mut dialogue = drive::dialogue(&request.name, request.seed).ok_or("the name was checked")?;
    let mut stream = drive::connect(&request.socket, request.server)?;
    let start = Instant::now();
    drive::drive(&mut stream, dialogue.as_mut(), request.requests)?;
    let wall = start.elapsed().as_secs_f64();
    if request.end {
        drive::end(stream, dialogue.as_ref(), &request.socket)?;
    }
    let own = cpu_s().map_or(String::new(), |cpu| format!(", {cpu:.3} s of processor time in this program"));
    let done = format!("{}: {} requests in {wall:.3} s{own}\n", request.name, request.requests);
    if print("craton-drive", &done) { Ok(()) } else { Err("the result is lost".into()) }
}

fn main() -> ExitCode {
    let arguments: Vec<_> = std::env::args_os().skip(1).map(|a| a.to_string_lossy().into_owned()).collect();
    if arguments.iter().any(|a| a == "--help" || a == "-h") {
        return if print("craton-drive", USAGE) { ExitCode::SUCCESS } else { ExitCode::FAILURE };
    }
    let (status, why) = match parse(arguments) {
        Err(why) => (2, why),
        Ok(request) => match run(&request) {
            Err(why) => (1, format!("{}: {why}", request.name)),
            Ok(()) => return ExitCode::SUCCESS,
        },
    };
    eprintln!("craton-drive: {why}");
    ExitCode::from(status)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(line: &str) -> Result<Request, String> {
        parse(line.split_whitespace().map(str::to_owned))
    }

    #[test]
    fn arguments_are_read() {
        let request = of("redis-set --socket s --requests 7 --end --seed 3 --server 12").ok().unwrap();
        assert_eq!((request.name.as_str(), request.socket), ("redis-set", PathBuf::from("s")));
        assert_eq!((request.requests, request.seed, request.server, request.end), (7, 3, Some(12), true));
    }

    #[test]
    fn wrong_usage_names_the_value() {
        for (line, part) in [
            ("", "redis-list"),
            ("mysql --socket s", "\"mysql\""),
            ("redis-set", "--socket"),
            ("redis-set --socket", "needs a value"),
            ("redis-set --socket s --requests many", "\"many\""),
            ("redis-set --socket s --server 99999999999", "99999999999"),
            ("redis-set --port 1", "\"--port\""),
        ] {
            match of(line) {
                Err(why) => assert!(why.contains(part), "{line}: {why}"),
                Ok(_) => panic!("{line} is accepted"),
            }
        }
    }
}
