//! A server that is loaded from outside.
//!
//! **What.** A [`Driver`] waits until `ready` succeeds, runs the load, waits a moment, and ends the
//! server by SIGTERM; a server that is still there after [`STOP_LIMIT`] is killed. Both commands
//! run by `sh -c` without the allocator. The load's output gives requests and latency
//! ([`results`]).
//!
//! **Threads.** The driver's thread waits for processes; the caller's takes samples meanwhile.
//!
//! **Unsafe.** Calls `poll` and `kill`.

pub mod results;

use results::{Pattern, Results};
use std::ffi::OsString;
use std::io::{self, PipeReader, Read};
use std::os::fd::AsRawFd;
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

const READY_PERIOD: Duration = Duration::from_millis(50);
/// Between the load's end and SIGTERM: memory after the load is sampled then.
pub const SETTLE: Duration = Duration::from_secs(1);
/// From SIGTERM to SIGKILL.
pub const STOP_LIMIT: Duration = Duration::from_secs(10);
const TICK: Duration = Duration::from_millis(20);
/// Kept of a command's output, at its beginning and at its end.
const OUTPUT_BYTES: usize = 1 << 20;

#[derive(Clone, Debug)]
pub struct Server {
    /// Succeeds once the server answers.
    pub ready: OsString,
    /// Until its first success.
    pub ready_limit: Duration,
    pub load: OsString,
    /// The load is repeated until this time has passed; none: once.
    pub duration: Option<Duration>,
    pub patterns: Vec<Pattern>,
}

/// A load that succeeded.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Load {
    /// Since the server's start.
    pub start_s: f64,
    pub end_s: f64,
    pub results: Results,
    /// The server's memory a second after the load: the sum of its processes' PSS.
    pub after_bytes: Option<u64>,
}

impl Load {
    pub fn seconds(&self) -> f64 {
        self.end_s - self.start_s
    }
}

#[derive(Clone, Debug, PartialEq)]
pub enum Outcome {
    Loaded(Load),
    /// With the last output of `ready`.
    NotReady(Duration, String),
    LoadFailed {
        why: String,
        output: String,
    },
    /// The server ended, or was killed, before the load did.
    Gone,
}

/// One run's thread.
#[derive(Debug)]
pub struct Driver {
    thread: JoinHandle<Outcome>,
    gone: Arc<AtomicBool>,
}

impl Driver {
    /// Drives the server with this process id, which was started at `start`.
    pub fn start(server: &Server, pid: u32, start: Instant) -> Self {
        let (server, gone) = (server.clone(), Arc::new(AtomicBool::new(false)));
        let seen = Arc::clone(&gone);
        Self { thread: thread::spawn(move || drive(&server, pid, start, &seen)), gone }
    }

    /// Ends what the driver runs: the server is gone.
    pub fn server_is_gone(&self) {
        // Pairs with nothing: the flag alone is the message.
        self.gone.store(true, Relaxed);
    }

    pub fn outcome(self) -> Outcome {
        self.thread.join().unwrap_or(Outcome::Gone)
    }
}

fn drive(server: &Server, pid: u32, start: Instant, gone: &AtomicBool) -> Outcome {
    let stop = |outcome| {
        end(pid, gone);
        outcome
    };
    match wait_until_ready(server, gone) {
        None => {}
        Some(Outcome::Gone) => return Outcome::Gone,
        Some(outcome) => return stop(outcome),
    }
    let since = Instant::now();
    let start_s = (since - start).as_secs_f64();
    let mut outputs = Vec::new();
    loop {
        match client(&server.load, gone, None) {
            Ok(Finished { status, output }) if status.success() => outputs.push(output),
            Ok(Finished { status, output }) => {
                return stop(Outcome::LoadFailed { why: status.to_string(), output });
            }
            Err(Unfinished::Gone) => return Outcome::Gone,
            Err(why) => return stop(Outcome::LoadFailed { why: why.to_string(), output: String::new() }),
        }
        if server.duration.is_none_or(|duration| since.elapsed() >= duration) {
            break;
        }
    }
    let end_s = start.elapsed().as_secs_f64();
    let settled = Instant::now() + SETTLE;
    while Instant::now() < settled && !gone.load(Relaxed) {
        thread::sleep(TICK);
    }
    if gone.load(Relaxed) {
        return Outcome::Gone;
    }
    let results = results::mean(outputs.iter().map(|output| results::of(output, &server.patterns)));
    stop(Outcome::Loaded(Load { start_s, end_s, results, after_bytes: None }))
}

/// None: it is ready.
fn wait_until_ready(server: &Server, gone: &AtomicBool) -> Option<Outcome> {
    // None: a time that does not come.
    let limit = Instant::now().checked_add(server.ready_limit);
    let mut said = String::new();
    while limit.is_none_or(|limit| Instant::now() < limit) {
        match client(&server.ready, gone, limit) {
            Ok(Finished { status, .. }) if status.success() => return None,
            Ok(Finished { output, .. }) => said = output,
            Err(Unfinished::Gone) => return Some(Outcome::Gone),
            Err(Unfinished::Late) => break,
            Err(why) => return Some(Outcome::NotReady(server.ready_limit, why.to_string())),
        }
        thread::sleep(READY_PERIOD);
    }
    Some(Outcome::NotReady(server.ready_limit, said))
}

/// SIGTERM, and SIGKILL when that does not help. The launcher reaps the server, and `gone` follows
/// within a tick; until then the number means no other process but for that tick.
fn end(pid: u32, gone: &AtomicBool) {
    let limit = Instant::now() + STOP_LIMIT;
    let pid = pid as libc::pid_t;
    send(pid, libc::SIGTERM);
    while !gone.load(Relaxed) {
        if Instant::now() >= limit {
            send(pid, libc::SIGKILL);
            return;
        }
        thread::sleep(TICK);
    }
}

fn send(pid: libc::pid_t, signal: i32) {
    // SAFETY: touches no memory.
    unsafe { libc::kill(pid, signal) };
}

struct Finished {
    status: ExitStatus,
    /// Standard output and error, without the middle if it is long.
    output: String,
}

enum Unfinished {
    Gone,
    Late,
    CannotStart(io::Error),
}

impl std::fmt::Display for Unfinished {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Gone => f.write_str("the server ended"),
            Self::Late => f.write_str("it took too long"),
            Self::CannotStart(error) => write!(f, "cannot start sh: {error}"),
        }
    }
}

/// Runs a command of the shell on the C library's allocator.
fn client(command: &OsString, gone: &AtomicBool, limit: Option<Instant>) -> Result<Finished, Unfinished> {
    let (mut child, mut pipe) = spawn(command).map_err(Unfinished::CannotStart)?;
    let mut output = Vec::new();
    loop {
        let open = read(&mut pipe, &mut output);
        if let Ok(Some(status)) = child.try_wait() {
            // Processes that it left behind may hold the pipe: what is there is taken.
            while pipe.as_ref().is_some_and(|pipe| is_readable(pipe, Duration::ZERO)) && read(&mut pipe, &mut output) {}
            kill(&child);
            return Ok(Finished { status, output: String::from_utf8_lossy(&output).into_owned() });
        }
        if !open {
            thread::sleep(Duration::from_millis(1));
        }
        let why = match limit {
            _ if gone.load(Relaxed) => Unfinished::Gone,
            Some(limit) if Instant::now() >= limit => Unfinished::Late,
            _ => continue,
        };
        kill(&child);
        let _ = child.wait();
        return Err(why);
    }
}

fn spawn(command: &OsString) -> io::Result<(Child, Option<PipeReader>)> {
    let (reader, writer) = io::pipe()?;
    let mut shell = Command::new("sh");
    shell.arg("-c").arg(command).env_remove("LD_PRELOAD").process_group(0);
    shell.stdin(Stdio::null()).stderr(writer.try_clone()?).stdout(writer);
    let child = shell.spawn()?;
    Ok((child, Some(reader)))
}

fn is_readable(pipe: &PipeReader, wait: Duration) -> bool {
    let mut entry = libc::pollfd { fd: pipe.as_raw_fd(), events: libc::POLLIN, revents: 0 };
    // SAFETY: one live entry.
    unsafe { libc::poll(&mut entry, 1, wait.as_millis() as i32) > 0 }
}

/// Waits a tick for output at most; false once the pipe is closed.
fn read(pipe: &mut Option<PipeReader>, into: &mut Vec<u8>) -> bool {
    let Some(open) = pipe.as_mut() else { return false };
    if !is_readable(open, TICK) {
        return true;
    }
    let mut bytes = [0; 4096];
    match open.read(&mut bytes) {
        Ok(0) | Err(_) => *pipe = None,
        Ok(n) => {
            into.extend(&bytes[..n]);
            if into.len() > 3 * OUTPUT_BYTES {
                into.drain(OUTPUT_BYTES..into.len() - OUTPUT_BYTES);
            }
        }
    }
    pipe.is_some()
}

/// The command's group: what it left behind, too.
fn kill(child: &Child) {
    send(-(child.id() as libc::pid_t), libc::SIGKILL);
}

#[cfg(test)]
mod tests;
