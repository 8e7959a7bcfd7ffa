//! What processes send at their exit, and what their memory is for then.
//!
//! **What.** The library sends the line of its `stats_file` to a socket, and waits until the
//! connection is closed. Meanwhile the process's ledger is read.
//!
//! **Cost.** A connection for each exit, and some milliseconds for a ledger, which only a larger
//! process than all before gets, unless all are asked for.

use craton_inspect::{Ledger, ledger};
use rustix::net::sockopt::socket_peercred;
use std::fs;
use std::io::{self, Read, Write};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::thread::{self, JoinHandle};
use std::time::Duration;

/// A process that is stopped in the middle of its line.
const PATIENCE: Duration = Duration::from_secs(5);
const LONGEST_LINE: u64 = 1 << 16;
const END: &[u8] = b"end\n";

/// A process's last line.
#[derive(Debug)]
pub struct Sent {
    pub line: Vec<u8>,
    pub ledger: Option<Ledger>,
}

pub struct Listener {
    path: PathBuf,
    thread: JoinHandle<Vec<Sent>>,
}

impl Listener {
    /// With the ledger of each process if `all`, else of those that may be the largest.
    ///
    /// # Errors
    /// The system's error.
    pub fn start(path: PathBuf, all: bool) -> io::Result<Self> {
        let socket = UnixListener::bind(&path)?;
        let thread = thread::Builder::new().spawn(move || listen(&socket, all))?;
        Ok(Self { path, thread })
    }

    /// Processes that connected before are heard.
    pub fn end(self) -> Vec<Sent> {
        let asked = UnixStream::connect(&self.path).and_then(|mut stream| stream.write_all(END));
        // The thread waits for ever without it.
        if asked.is_ok() { self.thread.join().unwrap_or_default() } else { Vec::new() }
    }
}

fn listen(socket: &UnixListener, all: bool) -> Vec<Sent> {
    let (mut sent, mut largest) = (Vec::new(), 0);
    for stream in socket.incoming().flatten() {
        let _ = stream.set_read_timeout(Some(PATIENCE));
        let line = line(&stream);
        if line == END {
            break;
        }
        // The line has the number inside the process's container.
        let pid = socket_peercred(&stream).map_or(0, |peer| peer.pid.as_raw_pid().cast_unsigned());
        let rss = rss_pages(pid);
        let ledger = (all || rss > largest).then(|| ledger(pid).ok()).flatten();
        largest = largest.max(rss);
        sent.push(Sent { line, ledger });
    }
    sent
}

fn line(mut stream: &UnixStream) -> Vec<u8> {
    let (mut line, mut piece) = (Vec::new(), [0; 4096]);
    while !line.ends_with(b"\n") && (line.len() as u64) < LONGEST_LINE {
        match stream.read(&mut piece) {
            Ok(0) => break,
            Ok(n) => line.extend(&piece[..n]),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(_) => break,
        }
    }
    line
}

fn rss_pages(pid: u32) -> u64 {
    let statm = fs::read_to_string(Path::new("/proc").join(pid.to_string()).join("statm")).unwrap_or_default();
    statm.split(' ').nth(1).and_then(|pages| pages.parse().ok()).unwrap_or(0)
}

#[cfg(test)]
mod tests;
