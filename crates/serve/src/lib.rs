//! `craton serve`: the memory of processes on Craton as a web page, metrics and JSON.
//!
//! **What.** [`Server::bind`] opens the address and reads the processes once; [`Server::run`]
//! answers requests. One thread samples, one for each connection answers, one pushes metrics.
//!
//! **State.** Nothing is stopped, and nothing written: the processes are read as `craton top` reads
//! them.
//! ```text
//! sampler → processes (ledger, history, moments of the profile) ← requests: page, /metrics, /api
//!                                                               ← pusher: OTLP
//! ```
//!
//! **Failure.** A text with the reason and a remedy. A process that ends stays in the list.
//!
//! **Not here.** The command line, which is `craton-cli`'s; what memory holds, `craton-inspect`'s.

mod api;
mod assets;
mod flame;
mod history;
mod host;
mod http;
mod metrics;
mod moments;
mod otlp;
mod processes;
mod sentence;
#[cfg(test)]
mod testing;

pub use otlp::address as collector;

use api::Api;
use host::Hosts;
use otlp::Pusher;
use processes::{Processes, Sampler};
use std::io::ErrorKind;
use std::net::{SocketAddr, TcpListener};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::thread;
use std::time::{Duration, Instant};

#[derive(Clone, Debug)]
pub struct Options {
    pub listen: SocketAddr,
    /// Names by which requests may reach it, beside the usual ones.
    pub hosts: Vec<String>,
    pub every: Duration,
    /// A label of all metrics.
    pub experiment: Option<String>,
    /// By [`collector`].
    pub collector: Option<String>,
    /// Empty: all that are found.
    pub pids: Vec<u32>,
}

#[derive(Debug)]
pub struct Server {
    listener: TcpListener,
    address: SocketAddr,
    sampler: Sampler,
    api: Arc<Api>,
    collector: Option<String>,
    every: Duration,
}

/// Between two looks at `stop`.
const STEP: Duration = Duration::from_millis(100);

impl Server {
    /// # Errors
    /// The address cannot be had, or a process cannot be read.
    pub fn bind(options: Options) -> Result<Self, String> {
        let Options { listen, hosts, every, experiment, collector, pids } = options;
        let listener = TcpListener::bind(listen).map_err(|error| refused(listen, &error))?;
        let address = listener.local_addr().map_err(|error| refused(listen, &error))?;
        let processes = Arc::new(Processes::default());
        let sampler = Sampler::new(Arc::clone(&processes), pids, every)?;
        let api = Arc::new(Api { processes, hosts: Hosts::new(address, &hosts), experiment, every });
        Ok(Self { listener, address, sampler, api, collector, every })
    }

    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Until `stop`. `say` prints a sentence.
    pub fn run(self, stop: &AtomicBool, say: impl Fn(&str) + Sync) {
        let Self { listener, mut sampler, api, collector, every, .. } = self;
        let (processes, experiment, say) = (&api.processes, &api.experiment, &say);
        thread::scope(|scope| {
            scope.spawn(|| each(every, stop, || sampler.tick()));
            if let Some(url) = collector {
                let mut pusher = Pusher::new(url, experiment.clone());
                let push = move || {
                    let running: Vec<_> = processes.all().into_iter().filter(|p| p.ended.is_none()).collect();
                    if let Some(sentence) = pusher.push(&running) {
                        say(&sentence);
                    }
                };
                scope.spawn(move || each(otlp::EVERY, stop, push));
            }
            http::serve(&listener, &api, stop);
        });
    }
}

/// At once, and then after each time.
fn each(time: Duration, stop: &AtomicBool, mut act: impl FnMut()) {
    let mut next = Instant::now();
    while !stop.load(Relaxed) {
        let left = next.saturating_duration_since(Instant::now());
        if left.is_zero() {
            act();
            next = Instant::now() + time;
        } else {
            thread::sleep(left.min(STEP));
        }
    }
}

fn refused(listen: SocketAddr, error: &std::io::Error) -> String {
    let port = listen.port();
    match error.kind() {
        ErrorKind::AddrInUse => format!(
            "port {port} of {} is in use, perhaps by another `craton serve`; give another, such as --listen {}, or 0 \
             for any",
            listen.ip(),
            port.checked_add(1).unwrap_or(8000)
        ),
        ErrorKind::AddrNotAvailable => format!(
            "this machine has no address {}; `ip address` lists those that it has, and 127.0.0.1 always works",
            listen.ip()
        ),
        ErrorKind::PermissionDenied => {
            format!("port {port} must not be used ({error}): below 1024 only root may; give another by --listen")
        }
        _ => format!("cannot listen on {listen}: {error}; give another address by --listen"),
    }
}
