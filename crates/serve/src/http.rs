//! HTTP/1.1, GET and HEAD alone: what a page, a scraper and a script ask.
//!
//! **From.** RFC 9110 and 9112, which name the status of each refusal.
//!
//! **State.** A thread for each connection, at most [`MOST`]. A head has at most [`HEAD`] bytes and
//! comes within [`PATIENCE`]; a request with a body is refused.
//!
//! **Failure.** A wrong request gets an answer with a sentence. A connection that fails ends.

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::retry_on_intr;
use std::borrow::Cow;
use std::io::{self, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::Relaxed};
use std::thread;
use std::time::{Duration, Instant};

const MOST: usize = 64;
const HEAD: usize = 16 << 10;
const HEADERS: usize = 64;
const PATIENCE: Duration = Duration::from_secs(10);
/// For the rest of a refused request.
const REST: Duration = Duration::from_millis(500);
/// Between two requests on one connection.
const IDLE: Duration = Duration::from_secs(60);
const LOOK: Timespec = Timespec { tv_sec: 0, tv_nsec: 500_000_000 };

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Request {
    pub path: String,
    pub query: Vec<(String, String)>,
    pub host: Option<String>,
}

impl Request {
    pub fn value(&self, key: &str) -> Option<&str> {
        self.query.iter().find(|(name, _)| name == key).map(|(_, value)| value.as_str())
    }
}

#[derive(Clone, Debug)]
pub struct Answer {
    pub status: u16,
    pub kind: &'static str,
    pub body: Cow<'static, [u8]>,
}

impl Answer {
    pub fn new(status: u16, kind: &'static str, body: impl Into<Cow<'static, [u8]>>) -> Self {
        Self { status, kind, body: body.into() }
    }

    pub fn json(text: String) -> Self {
        Self::new(200, "application/json", text.into_bytes())
    }

    /// As JSON, for programs and people.
    pub fn wrong(status: u16, why: &str) -> Self {
        let text = serde_json::json!({ "error": why }).to_string() + "\n";
        Self::new(status, "application/json", text.into_bytes())
    }
}

pub trait Handle: Send + Sync + 'static {
    fn answer(&self, request: &Request) -> Answer;
}

/// Until `stop`, or a signal's handler sets it.
pub fn serve(listener: &TcpListener, handler: &Arc<impl Handle>, stop: &AtomicBool) {
    let open = Arc::new(AtomicUsize::new(0));
    while !stop.load(Relaxed) {
        let mut wanted = [PollFd::new(listener, PollFlags::IN)];
        if !poll(&mut wanted, Some(&LOOK)).is_ok_and(|ready| ready > 0) {
            continue;
        }
        // Out of descriptors: those of others may come free.
        let Ok((stream, _)) = listener.accept() else {
            thread::sleep(Duration::from_millis(50));
            continue;
        };
        let (mine, handler) = (Open::new(&open), Arc::clone(handler));
        let is_full = mine.number > MOST;
        let one = move || {
            let _mine = mine;
            let _ = connection(stream, &*handler, is_full);
        };
        // Refused for want of threads: the stream closes.
        let _ = thread::Builder::new().name("serve".to_owned()).spawn(one);
    }
}

/// Counts a connection.
struct Open {
    all: Arc<AtomicUsize>,
    number: usize,
}

impl Open {
    fn new(all: &Arc<AtomicUsize>) -> Self {
        Self { all: Arc::clone(all), number: all.fetch_add(1, Relaxed) + 1 }
    }
}

impl Drop for Open {
    fn drop(&mut self) {
        self.all.fetch_sub(1, Relaxed);
    }
}

enum Head {
    /// With its length, and whether the connection goes on.
    Whole {
        request: Request,
        method: Method,
        length: usize,
        goes_on: bool,
    },
    Part,
    Wrong(u16, &'static str),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Method {
    Get,
    /// Answered as [`Method::Get`], without the body.
    Head,
}

fn connection(mut stream: TcpStream, handler: &impl Handle, is_full: bool) -> io::Result<()> {
    stream.set_nodelay(true)?;
    stream.set_write_timeout(Some(PATIENCE))?;
    if is_full {
        return refuse(stream, 503, "too many connections; try again later");
    }
    let (mut bytes, mut since) = (Vec::new(), Instant::now());
    loop {
        match parse(&bytes) {
            Head::Whole { request, method, length, goes_on } => {
                bytes.drain(..length);
                write(&mut stream, &handler.answer(&request), method, goes_on)?;
                if !goes_on {
                    return Ok(());
                }
                since = Instant::now();
                continue;
            }
            Head::Wrong(status, why) => return refuse(stream, status, why),
            Head::Part if bytes.len() >= HEAD => return refuse(stream, 431, "the head of the request is too long"),
            Head::Part => (),
        }
        let patience = if bytes.is_empty() { IDLE } else { PATIENCE };
        let left = patience.saturating_sub(since.elapsed());
        if left.is_zero() {
            return Ok(());
        }
        stream.set_read_timeout(Some(left))?;
        let mut part = [0; 4096];
        match read(&stream, &mut part)? {
            0 => return Ok(()),
            n => {
                if bytes.is_empty() {
                    since = Instant::now();
                }
                bytes.extend_from_slice(&part[..n]);
            }
        }
    }
}

/// What still comes is read for a moment: closed with unread bytes, the connection would lose the
/// answer.
fn refuse(mut stream: TcpStream, status: u16, why: &str) -> io::Result<()> {
    write(&mut stream, &Answer::wrong(status, why), Method::Get, false)?;
    stream.shutdown(Shutdown::Write)?;
    stream.set_read_timeout(Some(REST))?;
    let mut part = [0; 4096];
    for _ in 0..HEAD / part.len() * 4 {
        if read(&stream, &mut part)? == 0 {
            break;
        }
    }
    Ok(())
}

/// A process that was stopped and goes on finds a read with a time limit interrupted (signal(7)).
fn read(stream: &TcpStream, part: &mut [u8]) -> io::Result<usize> {
    Ok(retry_on_intr(|| rustix::io::read(stream, &mut *part))?)
}

fn parse(bytes: &[u8]) -> Head {
    let mut headers = [httparse::EMPTY_HEADER; HEADERS];
    let mut head = httparse::Request::new(&mut headers);
    let length = match head.parse(bytes) {
        Ok(httparse::Status::Complete(length)) => length,
        Ok(httparse::Status::Partial) => return Head::Part,
        Err(httparse::Error::TooManyHeaders) => return Head::Wrong(431, "the request has too many headers"),
        Err(httparse::Error::Version) => return Head::Wrong(505, "this program answers HTTP/1.1 alone"),
        Err(_) => return Head::Wrong(400, "this is no request of HTTP/1.1"),
    };
    let method = match head.method {
        Some("GET") => Method::Get,
        Some("HEAD") => Method::Head,
        _ => return Head::Wrong(405, "only GET and HEAD are answered: this program shows, and changes nothing"),
    };
    let values = |name: &'static str| {
        let is_it = move |header: &&httparse::Header<'_>| header.name.eq_ignore_ascii_case(name);
        head.headers.iter().filter(is_it).map(|header| header.value.trim_ascii())
    };
    let value = |name| values(name).next().and_then(|value| std::str::from_utf8(value).ok());
    // A proxy before this program may have looked at the other one.
    if values("host").count() > 1 {
        return Head::Wrong(400, "the request names two hosts");
    }
    let is_length = |value: &[u8]| !value.is_empty() && value.iter().all(u8::is_ascii_digit);
    if !values("content-length").all(is_length) {
        return Head::Wrong(400, "the length of the request's body is no number");
    }
    let is_empty = |value: &[u8]| value.iter().all(|digit| *digit == b'0');
    if values("transfer-encoding").next().is_some() || !values("content-length").all(is_empty) {
        return Head::Wrong(413, "the request has a body; nothing here takes one");
    }
    let wants = |word: &str| value("connection").is_some_and(|text| text.to_ascii_lowercase().contains(word));
    let is_old = head.version == Some(0);
    let goes_on = !wants("close") && (!is_old || wants("keep-alive"));
    let target = head.path.unwrap_or_default();
    let (path, query) = target.split_once('?').unwrap_or((target, ""));
    let pair = |pair: &str| {
        let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
        (name.to_owned(), value.to_owned())
    };
    let query = query.split('&').filter(|part| !part.is_empty()).map(pair).collect();
    Head::Whole {
        request: Request { path: path.to_owned(), query, host: value("host").map(str::to_owned) },
        method,
        length,
        goes_on,
    }
}

fn reason(status: u16) -> &'static str {
    match status {
        200 => "OK",
        400 => "Bad Request",
        403 => "Forbidden",
        404 => "Not Found",
        405 => "Method Not Allowed",
        410 => "Gone",
        413 => "Content Too Large",
        431 => "Request Header Fields Too Large",
        503 => "Service Unavailable",
        505 => "HTTP Version Not Supported",
        _ => "Error",
    }
}

/// Scripts and styles of this program alone; no other page may show or read it.
const HEADERS_OF_ALL: &str = "Cache-Control: no-store\r\nX-Content-Type-Options: nosniff\r\nX-Frame-Options: DENY\r\n\
    Referrer-Policy: no-referrer\r\nCross-Origin-Resource-Policy: same-origin\r\n\
    Content-Security-Policy: default-src 'self'; img-src 'self' data:; frame-ancestors 'none'; base-uri 'none'; \
    form-action 'none'\r\n";

fn write(stream: &mut TcpStream, answer: &Answer, method: Method, goes_on: bool) -> io::Result<()> {
    let Answer { status, kind, body } = answer;
    let allow = if *status == 405 { "Allow: GET, HEAD\r\n" } else { "" };
    let connection = if goes_on { "keep-alive" } else { "close" };
    let mut bytes = format!(
        "HTTP/1.1 {status} {}\r\nContent-Type: {kind}\r\nContent-Length: {}\r\nConnection: {connection}\r\n\
         {allow}{HEADERS_OF_ALL}\r\n",
        reason(*status),
        body.len()
    )
    .into_bytes();
    if method == Method::Get {
        bytes.extend_from_slice(body);
    }
    stream.write_all(&bytes)
}

#[cfg(test)]
mod tests;
