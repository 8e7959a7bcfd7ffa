//! The command line of `craton serve`.

use super::values::{process, seconds};
use clap::Args as Group;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::time::Duration;

const PORT: u16 = 4327;

/// `craton serve`.
#[derive(Debug, Group)]
#[command(after_help = "Examples:
  craton serve
  craton serve 1234 --listen 8080
  craton serve --listen 0.0.0.0:4327 --public --experiment new-limits
  craton serve --otlp http://127.0.0.1:4318

The page shows what each process's memory is for, now and over time; its heap
by hugepage; size classes; and who holds the memory, as a flame graph, also as a
difference between two moments. /metrics is for Prometheus, /api for scripts.
share/craton/grafana.json is a dashboard. No process is stopped; only its user
or root may read it. docs/serve.md explains more.

Every user of this machine can open the page. From another machine, use a
tunnel: ssh -L 4327:localhost:4327 MACHINE. With --public, everybody who reaches
the address can read the heap's figures, its addresses, the program's command
line and the names of its functions.

Exit status: 0 when ended by Ctrl-C or SIGTERM, 1 when it cannot start, 2 for
wrong usage.")]
pub struct Serve {
    /// The processes to watch; all that have libcraton.so mapped unless some are named
    #[arg(value_name = "PID", value_parser = process, allow_negative_numbers = true)]
    pub pids: Vec<u32>,
    /// Where to answer: a port, or an address and a port; port 0 for any that is free
    #[arg(long, value_name = "ADDR", default_value = "127.0.0.1:4327", value_parser = address)]
    pub listen: SocketAddr,
    /// Allow an address that other machines reach
    #[arg(long)]
    pub public: bool,
    /// Answer requests for this name too, such as that of a proxy
    #[arg(long = "host", value_name = "NAME", value_parser = host)]
    pub hosts: Vec<String>,
    /// How often to read the processes
    #[arg(long, value_name = "SECONDS", default_value = "1", value_parser = seconds, allow_negative_numbers = true)]
    pub every: Duration,
    /// Give all metrics the label experiment=NAME, to compare machines or settings
    #[arg(long, value_name = "NAME", value_parser = experiment)]
    pub experiment: Option<String>,
    /// Push the metrics to a collector of OpenTelemetry, each ten seconds
    #[arg(long, value_name = "URL", value_parser = craton_serve::collector)]
    pub otlp: Option<String>,
}

fn address(text: &str) -> Result<SocketAddr, String> {
    let why = || {
        "give a port, or an address and a port, such as 127.0.0.1:4327 or [::1]:4327; no name is looked up".to_owned()
    };
    let local = IpAddr::V4(Ipv4Addr::LOCALHOST);
    let ip = |text: &str| match text {
        "localhost" => Some(local),
        text => text.trim_start_matches('[').trim_end_matches(']').parse().ok(),
    };
    if let Ok(port) = text.parse() {
        return Ok(SocketAddr::new(local, port));
    }
    if let Some(ip) = ip(text) {
        return Ok(SocketAddr::new(ip, PORT));
    }
    let (address, port) = text.rsplit_once(':').ok_or_else(why)?;
    Ok(SocketAddr::new(ip(address).ok_or_else(why)?, port.parse().map_err(|_| why())?))
}

fn host(text: &str) -> Result<String, String> {
    let is_name = !text.is_empty() && text.bytes().all(|b| b.is_ascii_alphanumeric() || b"-._".contains(&b));
    is_name.then(|| text.to_owned()).ok_or_else(|| "give a name without a port, such as heap.example".to_owned())
}

fn experiment(text: &str) -> Result<String, String> {
    let is_name = (1..=64).contains(&text.len()) && text.bytes().all(|b| b.is_ascii_graphic());
    is_name.then(|| text.to_owned()).ok_or_else(|| "give a name of 1 to 64 letters, digits and signs".to_owned())
}

#[cfg(test)]
mod tests;
