//! A connection: bytes in, commands run, replies out. After bytes that break the protocol it sends
//! an error and closes.

use super::commands::{After, Context, run};
use super::reply::error;
use super::resp::{Parsed, Parser};
use crate::store::{Store, StoreError};
use mio::net::TcpStream;
use std::io::{ErrorKind, Read, Write};
use std::net::Shutdown;
use std::sync::atomic::Ordering;

/// Unsent replies up to which commands run.
const MOST_OUTPUT: usize = 4 << 20;

/// Larger empty buffers are freed.
const KEPT: usize = 256 << 10;

pub struct Connection {
    pub socket: TcpStream,
    parser: Parser,
    input: Vec<u8>,
    output: Vec<u8>,
    sent: usize,
    /// For the replies' sync point.
    pub ticket: Option<u64>,
    /// Whole commands wait for the client to read replies.
    is_paused: bool,
    /// `output` acknowledges a write.
    wrote: bool,
    wants_shutdown: bool,
    /// No command runs. After the last reply late input is dropped: closing the socket must not
    /// discard the reply.
    is_closing: bool,
    is_draining: bool,
    /// There may be more to read or run once the ticket is removed.
    pub has_more: bool,
    /// The stream has ended: no further event comes.
    pub is_ended: bool,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum State {
    Open,
    /// There may be more to read or run.
    Ready,
    /// The replies wait: request a ticket.
    Wrote,
    Closed,
    Shutdown,
}

impl Connection {
    pub fn new(socket: TcpStream) -> Self {
        Self {
            socket,
            parser: Parser::default(),
            input: Vec::new(),
            output: Vec::new(),
            sent: 0,
            ticket: None,
            is_paused: false,
            wrote: false,
            wants_shutdown: false,
            is_closing: false,
            is_draining: false,
            has_more: false,
            is_ended: false,
        }
    }

    /// Reads and runs once, so that others have their turn. With `holds`, replies to writes wait
    /// for a ticket.
    pub fn serve<S: Store>(&mut self, context: &Context<S>, chunk: &mut [u8], holds: bool) -> State {
        self.has_more = self.ticket.is_some();
        if self.has_more {
            return State::Open;
        }
        match self.send() {
            State::Ready if self.wants_shutdown => return State::Shutdown,
            State::Ready => {}
            other => return other,
        }
        let mut is_more = false;
        if self.is_closing {
            match self.socket.read(chunk) {
                Ok(0) => return State::Closed,
                Ok(_) => return State::Ready,
                Err(why) => return after(why.kind()),
            }
        }
        if self.is_paused {
            let waits = std::mem::take(&mut self.input);
            self.run_all(context, waits);
        } else {
            let len = match self.socket.read(chunk) {
                Ok(0) => return State::Closed,
                Ok(len) => len,
                Err(why) => return after(why.kind()),
            };
            self.receive(context, &chunk[..len]);
            // A read that did not fill the buffer got all.
            is_more = len == chunk.len() || self.is_ended;
        }
        if holds && std::mem::take(&mut self.wrote) {
            self.has_more = is_more || self.is_paused || self.is_closing || self.wants_shutdown;
            return State::Wrote;
        }
        match self.send() {
            _ if self.wants_shutdown => State::Shutdown,
            State::Ready if !is_more && !self.is_paused && !self.is_closing => State::Open,
            other => other,
        }
    }

    fn receive<S: Store>(&mut self, context: &Context<S>, data: &[u8]) {
        if self.input.is_empty() {
            let used = self.run_some(context, data);
            self.input.extend_from_slice(&data[used..]);
        } else {
            let mut waits = std::mem::take(&mut self.input);
            waits.extend_from_slice(data);
            self.run_all(context, waits);
        }
    }

    /// The rest becomes input.
    fn run_all<S: Store>(&mut self, context: &Context<S>, mut data: Vec<u8>) {
        let used = self.run_some(context, &data);
        if used == data.len() && data.capacity() > KEPT {
            data = Vec::new();
        }
        data.drain(..used.min(data.len()));
        self.input = data;
    }

    /// The bytes of whole commands.
    fn run_some<S: Store>(&mut self, context: &Context<S>, data: &[u8]) -> usize {
        let (mut used, mut commands) = (0, 0);
        self.is_paused = false;
        while used < data.len() && !self.is_closing {
            if self.output.len() >= MOST_OUTPUT {
                self.is_paused = true;
                break;
            }
            match self.parser.parse(&data[used..]) {
                Ok(Parsed::Incomplete) => break,
                Ok(Parsed::Command(len)) => {
                    let args = self.parser.args(&data[used..]);
                    used += len;
                    if args.len() == 0 {
                        continue;
                    }
                    commands += 1;
                    match run(context, args, &mut self.output) {
                        After::Read => {}
                        After::Wrote => self.wrote = true,
                        After::Close => self.is_closing = true,
                        After::Shutdown => (self.wants_shutdown, self.is_closing) = (true, true),
                    }
                }
                Err(why) => {
                    error(&mut self.output, &format!("ERR {why}"));
                    self.is_closing = true;
                }
            }
        }
        if self.is_closing {
            used = data.len();
        }
        context.counters.commands.fetch_add(commands, Ordering::Relaxed);
        used
    }

    /// `Ready`: all is sent, and more may be read.
    pub fn send(&mut self) -> State {
        while self.sent < self.output.len() {
            match self.socket.write(&self.output[self.sent..]) {
                Ok(0) => return State::Closed,
                Ok(len) => self.sent += len,
                Err(why) if why.kind() == ErrorKind::Interrupted => {}
                Err(why) => return after(why.kind()),
            }
        }
        self.sent = 0;
        self.output.clear();
        if self.output.capacity() > KEPT {
            self.output = Vec::new();
        }
        if self.is_closing && !self.is_draining {
            self.is_draining = true;
            // The next read finds a client that left.
            let _ = self.socket.shutdown(Shutdown::Write);
        }
        State::Ready
    }

    /// Replaces replies that a failed sync point made untrue.
    pub fn fail(&mut self, why: StoreError) {
        self.output.truncate(self.sent);
        let kind = if why.is_full() { "OOM" } else { "ERR" };
        error(&mut self.output, &format!("{kind} not durable: {why}"));
        self.is_closing = true;
    }
}

fn after(kind: ErrorKind) -> State {
    match kind {
        ErrorKind::WouldBlock => State::Open,
        ErrorKind::Interrupted => State::Ready,
        _ => State::Closed,
    }
}
