//! `craton-drive`: sends requests to a server, and checks each answer. Refuses `LD_PRELOAD`: only
//! the server is to be measured.

use clap::Parser;
use craton_lab::print::print;
use craton_papers::real::drive::{self, DIALOGUES};
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Instant;

/// Requests to a redis-server or memcached on a unix socket; each answer is compared with the right
/// one.
#[derive(Parser)]
#[command(after_help = "Exit status: 1 when an answer is wrong or does not come, 2 for wrong usage.

Example: craton-drive redis-set --socket /run/redis/redis.sock --requests 50000")]
struct Request {
    /// The load
    #[arg(value_parser = DIALOGUES)]
    name: String,
    /// Where the server listens, or will within 10 s
    #[arg(long, value_name = "PATH")]
    socket: PathBuf,
    /// How many requests
    #[arg(long, value_name = "N", default_value_t = 100_000)]
    requests: u64,
    /// Where the random numbers start
    #[arg(long, value_name = "N", default_value_t = 1)]
    seed: u64,
    /// The server's process: when it has ended the wait for it ends too
    #[arg(long, value_name = "PID")]
    server: Option<u32>,
    /// Tell the server to end when all is done
    #[arg(long)]
    end: bool,
}

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
    let request = Request::parse();
    match run(&request) {
        Ok(()) => ExitCode::SUCCESS,
        Err(why) => {
            eprintln!("craton-drive: {}: {why}", request.name);
            ExitCode::FAILURE
        }
    }
}

#[cfg(test)]
mod tests;
