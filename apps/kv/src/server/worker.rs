//! A worker: one thread, one poll, its connections.
//!
//! **Failure.** Accepting fails when descriptors run out: the listener waits until one is closed.

use super::Shared;
use super::connection::{Connection, State};
use super::group::Ticket;
use crate::store::Store;
use mio::net::TcpListener;
use mio::{Events, Interest, Poll, Token};
use std::sync::PoisonError;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

pub const WAKER: Token = Token(usize::MAX);
const LISTENER: Token = Token(usize::MAX - 1);

const CHUNK: usize = 64 << 10;

/// Where few workers flush the log, this one has the connections that write: then no other thread
/// must be woken after a flush.
const WRITER: usize = 0;

/// Workers from which on commands run side by side: that gains more than the wake-ups cost.
const MANY: usize = 4;

/// How long replies wait for more commands before a sync point.
const MOST_WAIT: Duration = Duration::from_millis(2);

/// How long replies may take to leave when the server ends.
const LAST_REPLIES: Duration = Duration::from_millis(1000);

struct Worker<'a, S: Store> {
    shared: &'a Shared<S>,
    poll: Poll,
    connections: Vec<Option<Connection>>,
    free: Vec<usize>,
    /// With more to read.
    ready: Vec<usize>,
    /// Their replies wait for a sync point.
    held: Vec<usize>,
    /// They wait for this worker to make it, since this time.
    leads: bool,
    since: Instant,
    chunk: Vec<u8>,
    i: usize,
}

pub fn run<S: Store>(shared: &Shared<S>, i: usize, poll: Poll, mut listener: Option<TcpListener>) {
    let mut events = Events::with_capacity(256);
    if let Some(listener) = &mut listener
        && let Err(why) = poll.registry().register(listener, LISTENER, Interest::READABLE)
    {
        eprintln!("craton-kv: cannot wait for connections: {why}");
        (shared.on_shutdown)();
    }
    let chunk = vec![0; CHUNK];
    let (connections, free, ready, held) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
    let (leads, since) = (false, Instant::now());
    let mut worker = Worker { shared, poll, connections, free, ready, held, leads, since, chunk, i };
    let mut next = 0;
    // The listener's queue may not be empty.
    let mut accepts = false;
    while !shared.is_stopping() {
        let wait = match (worker.ready.is_empty() && !worker.leads, accepts) {
            (false, _) => Some(Duration::ZERO),
            (true, true) => Some(Duration::from_millis(50)),
            (true, false) => None,
        };
        if worker.poll.poll(&mut events, wait).is_err_and(|why| why.kind() != std::io::ErrorKind::Interrupted) {
            break;
        }
        let again = std::mem::take(&mut worker.ready);
        let is_idle = events.is_empty() && again.is_empty();
        for event in &events {
            match event.token() {
                WAKER => worker.woken(),
                LISTENER => accepts = true,
                Token(token) => {
                    if event.is_read_closed()
                        && let Some(Some(connection)) = worker.connections.get_mut(token)
                    {
                        connection.is_ended = true;
                    }
                    worker.serve(token);
                }
            }
        }
        again.into_iter().for_each(|token| worker.serve(token));
        worker.lead(is_idle);
        if let (true, Some(listener)) = (accepts, &listener) {
            accepts = accept(shared, listener, &mut next);
        }
    }
    worker.end();
}

/// Hands connections to the workers in turn; returns whether more may wait.
fn accept<S: Store>(shared: &Shared<S>, listener: &TcpListener, next: &mut usize) -> bool {
    loop {
        match listener.accept() {
            Ok((socket, _)) => {
                // Replies leave at once; a later read finds a client that is gone.
                let _ = socket.set_nodelay(true);
                shared.context.counters.connections.fetch_add(1, Ordering::Relaxed);
                shared.context.counters.connected.fetch_add(1, Ordering::Relaxed);
                shared.hand(*next % shared.handed.len(), Connection::new(socket));
                *next += 1;
            }
            Err(why) if why.kind() == std::io::ErrorKind::WouldBlock => return false,
            Err(why) if why.kind() == std::io::ErrorKind::ConnectionAborted => {}
            Err(_) => return true,
        }
    }
}

impl<S: Store> Worker<'_, S> {
    /// Takes handed connections, and checks tickets.
    fn woken(&mut self) {
        self.add_handed();
        self.decide();
        if !self.held.is_empty() {
            // They requested it during the last sync point.
            self.want_lead();
        }
    }

    /// This worker must make a sync point.
    fn want_lead(&mut self) {
        if !self.leads && self.shared.led.is_some() {
            (self.leads, self.since) = (true, Instant::now());
        }
    }

    /// Sends replies whose sync point is done.
    fn decide(&mut self) {
        let Some(group) = &self.shared.group else { return };
        for token in std::mem::take(&mut self.held) {
            let Some(Some(connection)) = self.connections.get_mut(token) else { continue };
            match connection.ticket.map(|ticket| group.state_of(ticket)) {
                Some(Ticket::Waits) => {
                    self.held.push(token);
                    continue;
                }
                Some(Ticket::Failed(why)) => connection.fail(why),
                Some(Ticket::Durable) | None => {}
            }
            connection.ticket = None;
            if connection.has_more {
                self.serve(token);
            } else {
                match connection.send() {
                    State::Ready => {}
                    other => self.after(token, other),
                }
            }
        }
    }

    /// Makes the sync point for its connections once it is idle: one for many commands takes as
    /// long as one for few.
    fn lead(&mut self, is_idle: bool) {
        let waited = self.since.elapsed();
        if !self.leads || !is_idle && waited < MOST_WAIT {
            return;
        }
        if waited < MOST_WAIT && self.shared.group.as_ref().is_some_and(|group| !group.is_due(waited)) {
            // The clients may need this processor.
            std::thread::yield_now();
            return;
        }
        self.leads = false;
        // Another leader wakes this worker.
        if self.shared.lead(self.i) {
            self.decide();
        }
    }

    fn add_handed(&mut self) {
        let handed = std::mem::take(&mut *self.shared.handed[self.i].lock().unwrap_or_else(PoisonError::into_inner));
        handed.into_iter().for_each(|connection| self.add(connection));
    }

    fn add(&mut self, mut connection: Connection) {
        let token = self.free.pop().unwrap_or(self.connections.len());
        if token == self.connections.len() {
            self.connections.push(None);
        }
        let interest = Interest::READABLE | Interest::WRITABLE;
        if self.poll.registry().register(&mut connection.socket, Token(token), interest).is_err() {
            self.free.push(token);
            self.shared.context.counters.connected.fetch_sub(1, Ordering::Relaxed);
            return;
        }
        let waits = connection.ticket.is_some();
        self.connections[token] = Some(connection);
        if waits {
            self.held.push(token);
        }
    }

    /// Requests a sync point for a connection that wrote; few workers first move it to one of them.
    fn hold(&mut self, token: usize) {
        let Some(group) = &self.shared.group else { return };
        let gathers = self.shared.led.is_some() && self.shared.handed.len() < MANY;
        let moves = gathers && self.i != WRITER;
        let Some(Some(connection)) = self.connections.get_mut(token) else { return };
        connection.ticket = Some(group.ticket(if moves { WRITER } else { self.i }));
        if moves
            && self.poll.registry().deregister(&mut connection.socket).is_ok()
            && let Some(connection) = self.connections[token].take()
        {
            self.free.push(token);
            self.shared.hand(WRITER, connection);
            return;
        }
        self.held.push(token);
        self.want_lead();
    }

    fn serve(&mut self, token: usize) {
        let Some(Some(connection)) = self.connections.get_mut(token) else { return };
        let gate = self.shared.group.as_ref().map(|_| self.shared.gates.enter(self.i));
        let state = connection.serve(&self.shared.context, &mut self.chunk, self.shared.group.is_some());
        drop(gate);
        self.after(token, state);
    }

    fn after(&mut self, token: usize, state: State) {
        match state {
            State::Open => {}
            State::Ready => self.ready.push(token),
            State::Wrote => self.hold(token),
            State::Closed => self.close(token),
            State::Shutdown => {
                self.close(token);
                (self.shared.on_shutdown)();
            }
        }
    }

    fn close(&mut self, token: usize) {
        if let Some(mut connection) = self.connections[token].take() {
            let _ = self.poll.registry().deregister(&mut connection.socket);
            self.free.push(token);
            self.shared.context.counters.connected.fetch_sub(1, Ordering::Relaxed);
        }
    }

    /// Sends the last replies, for a while, and closes all connections.
    fn end(mut self) {
        let end = Instant::now() + LAST_REPLIES;
        let mut events = Events::with_capacity(256);
        while Instant::now() < end {
            self.add_handed();
            self.shared.lead(self.i);
            let mut waits = false;
            for connection in self.connections.iter_mut().flatten() {
                let ticket = connection.ticket.zip(self.shared.group.as_ref());
                match ticket.map(|(ticket, group)| group.state_of(ticket)) {
                    Some(Ticket::Waits) => waits = true,
                    Some(Ticket::Failed(why)) => {
                        connection.ticket = None;
                        connection.fail(why);
                    }
                    _ => {
                        connection.ticket = None;
                        waits |= connection.send() == State::Open;
                    }
                }
            }
            if !waits {
                break;
            }
            let _ = self.poll.poll(&mut events, Some(Duration::from_millis(20)));
        }
    }
}
