//! The load generator: sends commands to a server over a unix socket, and checks each answer.
//!
//! Two batches are outstanding, so the server finds the next one waiting. Both fit the socket's
//! buffers, so neither side blocks on the other's reads.

mod lists;
mod values;

use std::fmt::Arguments;
use std::io::{ErrorKind, Read, Write};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::{Duration, Instant};

pub const PATIENCE: Duration = Duration::from_secs(10);
const BATCH_REQUESTS: u64 = 32;
/// Requests and answers.
const BATCH_BYTES: usize = 32 << 10;
const SHOWN_BYTES: usize = 60;

pub trait Dialogue {
    fn next(&mut self, number: u64, request: &mut Vec<u8>, answer: &mut Vec<u8>);

    fn last(&mut self, _request: &mut Vec<u8>, _answer: &mut Vec<u8>) {}

    /// The server closes the connection instead of answering.
    fn farewell(&self) -> &'static [u8];
}

pub const DIALOGUES: [&str; 3] = ["redis-list", "redis-set", "memcached"];

pub fn dialogue(name: &str, seed: u64) -> Option<Box<dyn Dialogue>> {
    match name {
        "redis-list" => Some(Box::new(lists::Lists::new(seed))),
        "redis-set" => Some(Box::new(values::Values::new(values::Protocol::Redis, seed))),
        "memcached" => Some(Box::new(values::Values::new(values::Protocol::Memcached, seed))),
        _ => None,
    }
}

/// The server need not listen yet. Error: it ended, or did not listen within [`PATIENCE`].
pub fn connect(socket: &Path, server: Option<u32>) -> Result<UnixStream, String> {
    let start = Instant::now();
    loop {
        let why = match UnixStream::connect(socket) {
            Ok(stream) => {
                let limited = stream.set_read_timeout(Some(PATIENCE)).and(stream.set_write_timeout(Some(PATIENCE)));
                return limited.map(|()| stream).map_err(|e| format!("cannot limit the wait for the server: {e}"));
            }
            Err(why) => why,
        };
        if server.is_some_and(|pid| !Path::new(&format!("/proc/{pid}")).exists()) {
            return Err("the server ended before it listened".to_owned());
        }
        if start.elapsed() >= PATIENCE {
            return Err(format!("no server listens on {} after {} s: {why}", socket.display(), PATIENCE.as_secs()));
        }
        std::thread::sleep(Duration::from_millis(1));
    }
}

pub fn drive(stream: &mut UnixStream, dialogue: &mut dyn Dialogue, requests: u64) -> Result<(), String> {
    let mut batch = Batch::default();
    let mut before = Batch::default();
    let mut number = 0;
    while number < requests {
        batch.clear(number);
        let end = requests.min(number + BATCH_REQUESTS);
        while number < end && batch.request.len() + batch.answer.len() < BATCH_BYTES {
            dialogue.next(number, &mut batch.request, &mut batch.answer);
            number += 1;
        }
        batch.send(stream)?;
        before.check(stream)?;
        std::mem::swap(&mut batch, &mut before);
    }
    batch.clear(requests);
    dialogue.last(&mut batch.request, &mut batch.answer);
    batch.send(stream)?;
    before.check(stream)?;
    batch.check(stream)
}

/// Connects once more: memcached checks for its end when something happens on its socket, or after
/// a second, which would be in the figures.
pub fn end(mut stream: UnixStream, dialogue: &dyn Dialogue, socket: &Path) -> Result<(), String> {
    stream.write_all(dialogue.farewell()).map_err(|e| format!("the server takes no farewell: {e}"))?;
    let mut said = Vec::new();
    match stream.read_to_end(&mut said) {
        Err(e) if e.kind() != ErrorKind::ConnectionReset => {
            return Err(format!("the server does not close the connection: {e}"));
        }
        _ if !said.is_empty() => return Err(format!("the server does not end, but says {:?}", excerpt(&said))),
        _ => {}
    }
    // An ended server does not open.
    let _ = UnixStream::connect(socket);
    Ok(())
}

#[derive(Default)]
struct Batch {
    first: u64,
    request: Vec<u8>,
    answer: Vec<u8>,
    came: Vec<u8>,
}

impl Batch {
    fn clear(&mut self, first: u64) {
        self.first = first;
        self.request.clear();
        self.answer.clear();
    }

    fn send(&self, stream: &mut UnixStream) -> Result<(), String> {
        stream.write_all(&self.request).map_err(|e| self.broken("does not take the requests", &e))
    }

    fn check(&mut self, stream: &mut UnixStream) -> Result<(), String> {
        self.came.resize(self.came.len().max(self.answer.len()), 0);
        let mut done = 0;
        while done < self.answer.len() {
            let read = match stream.read(&mut self.came[done..self.answer.len()]) {
                Ok(0) => return Err(format!("from request {}: the server closed the connection", self.first)),
                Ok(read) => read,
                Err(e) if e.kind() == ErrorKind::Interrupted => continue,
                Err(e) => return Err(self.broken("does not answer", &e)),
            };
            let (expected, came) = (&self.answer[done..done + read], &self.came[done..done + read]);
            if let Some(at) = expected.iter().zip(came).position(|(e, c)| e != c) {
                let [expected, came] = [&self.answer[done + at..], &came[at..]].map(excerpt);
                return Err(format!("from request {}: answer {came:?} instead of {expected:?}", self.first));
            }
            done += read;
        }
        Ok(())
    }

    fn broken(&self, what: &str, why: &std::io::Error) -> String {
        if why.kind() == ErrorKind::WouldBlock {
            return format!("from request {}: the server {what} within {} s", self.first, PATIENCE.as_secs());
        }
        format!("from request {}: the server {what}: {why}", self.first)
    }
}

fn excerpt(bytes: &[u8]) -> String {
    bytes[..bytes.len().min(SHOWN_BYTES)].escape_ascii().to_string()
}

const REDIS_FAREWELL: &[u8] = b"SHUTDOWN NOSAVE\r\n";

/// Writing to a vector cannot fail.
fn put(out: &mut Vec<u8>, text: Arguments<'_>) {
    let _ = out.write_fmt(text);
}

fn redis_command(out: &mut Vec<u8>, words: &[&[u8]]) {
    redis_array(out, words.len());
    for word in words {
        redis_string(out, word);
    }
}

fn redis_array(out: &mut Vec<u8>, length: usize) {
    put(out, format_args!("*{length}\r\n"));
}

fn redis_string(out: &mut Vec<u8>, text: &[u8]) {
    put(out, format_args!("${}\r\n", text.len()));
    out.extend_from_slice(text);
    out.extend_from_slice(b"\r\n");
}

fn redis_integer(out: &mut Vec<u8>, number: usize) {
    put(out, format_args!(":{number}\r\n"));
}

#[cfg(test)]
mod tests;
