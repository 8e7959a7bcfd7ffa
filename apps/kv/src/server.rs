//! The server: threads that wait for sockets, and what they share.
//!
//! **Threads.** Each worker waits for its own connections and runs their commands; the tree takes
//! all workers at once. The first worker accepts and hands connections out in turn. One thread
//! makes sync points where the medium has them; one reads directories and frees cleared trees.
//! **Failure.** A connection's fault ends that connection. A failed sync point ends the server.

mod commands;
mod connection;
mod cursors;
mod glob;
mod group;
mod info;
mod reply;
mod resp;
mod worker;

pub use commands::About;

use crate::store::{Store, StoreError};
use crate::tree::Tree;
use commands::Context;
use group::Group;
use mio::net::{TcpListener, TcpStream};
use mio::{Poll, Waker};
use std::io;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

pub struct Counters {
    pub started: Instant,
    pub commands: AtomicU64,
    pub connections: AtomicU64,
    pub connected: AtomicU64,
    pub syncs: AtomicU64,
}

/// How writes are acknowledged.
pub struct SyncPoints<S> {
    /// The least time between two of them.
    pub interval: Duration,
    pub sync: fn(&S) -> Result<(), StoreError>,
}

/// What the threads share.
pub(crate) struct Shared<S: Store> {
    context: Context<S>,
    group: Option<Group>,
    is_stopping: AtomicBool,
    failed: Mutex<Option<StoreError>>,
    wakers: Vec<Waker>,
    /// Connections that were accepted for each worker.
    handed: Vec<Mutex<Vec<TcpStream>>>,
    on_shutdown: Box<dyn Fn() + Send + Sync>,
}

impl<S: Store> Shared<S> {
    fn wake(&self) {
        // A worker that cannot be woken has ended.
        self.wakers.iter().for_each(|waker| _ = waker.wake());
    }

    pub(crate) fn is_stopping(&self) -> bool {
        // ORDERING: pairs with the release in `stop`.
        self.is_stopping.load(Ordering::Acquire)
    }
}

pub struct Server<S: Store> {
    shared: Arc<Shared<S>>,
    workers: Vec<JoinHandle<()>>,
    keeper: JoinHandle<()>,
    syncer: Option<JoinHandle<()>>,
}

impl<S: Store + 'static> Server<S> {
    /// Listens, and serves the tree with `about.threads` threads. `on_shutdown` is called when a
    /// client asks the server to end, or when a sync point fails.
    pub fn start(
        tree: Tree<S>,
        address: SocketAddr,
        mut about: About,
        sync: Option<SyncPoints<S>>,
        on_shutdown: Box<dyn Fn() + Send + Sync>,
    ) -> io::Result<Self> {
        let listener = TcpListener::bind(address)?;
        about.port = listener.local_addr()?.port();
        about.threads = about.threads.max(1);
        let polls = (0..about.threads).map(|_| Poll::new()).collect::<io::Result<Vec<_>>>()?;
        let wakers = polls.iter().map(|poll| Waker::new(poll.registry(), worker::WAKER)).collect::<io::Result<_>>()?;
        let counters = Counters {
            started: Instant::now(),
            commands: AtomicU64::new(0),
            connections: AtomicU64::new(0),
            connected: AtomicU64::new(0),
            syncs: AtomicU64::new(0),
        };
        let handed = (0..about.threads).map(|_| Mutex::default()).collect();
        let context = Context { tree, cursors: Default::default(), counters, has_dead: AtomicBool::new(false), about };
        let shared = Arc::new(Shared {
            context,
            group: sync.as_ref().map(|_| Group::default()),
            is_stopping: AtomicBool::new(false),
            failed: Mutex::new(None),
            wakers,
            handed,
            on_shutdown,
        });
        let mut listener = Some(listener);
        let mut workers = Vec::new();
        for (i, poll) in polls.into_iter().enumerate() {
            let (shared, listener) = (Arc::clone(&shared), listener.take());
            let name = format!("worker {i}");
            workers.push(thread::Builder::new().name(name).spawn(move || worker::run(&shared, i, poll, listener))?);
        }
        let keeper = {
            let shared = Arc::clone(&shared);
            thread::Builder::new().name("keeper".to_owned()).spawn(move || keep(&shared))?
        };
        let syncer = match sync {
            Some(points) => {
                let shared = Arc::clone(&shared);
                Some(thread::Builder::new().name("sync".to_owned()).spawn(move || make_sync_points(&shared, &points))?)
            }
            None => None,
        };
        Ok(Self { shared, workers, keeper, syncer })
    }

    /// The port on which it listens.
    pub fn port(&self) -> u16 {
        self.shared.context.about.port
    }

    /// Ends: connections get the replies of what was done, and the store comes back.
    pub fn stop(self) -> Result<S, StoreError> {
        // ORDERING: pairs with the acquire in `is_stopping`.
        self.shared.is_stopping.store(true, Ordering::Release);
        self.shared.wake();
        self.keeper.thread().unpark();
        let threads = self.workers.into_iter().chain([self.keeper]);
        threads.for_each(|thread| _ = thread.join());
        if let Some(group) = &self.shared.group {
            group.stop();
        }
        if let Some(syncer) = self.syncer {
            let _ = syncer.join();
        }
        let shared = Arc::into_inner(self.shared).ok_or(StoreError::System(0))?;
        let failed = shared.failed.into_inner().unwrap_or_else(std::sync::PoisonError::into_inner);
        failed.map_or_else(|| Ok(shared.context.tree.into_store()), Err)
    }
}

/// Reads the directories that no request has read, then frees what is cleared.
fn keep<S: Store>(shared: &Shared<S>) {
    let Context { tree, has_dead, .. } = &shared.context;
    // A damaged directory is reported to the client that asks for its keys.
    let _ = tree.len();
    while !shared.is_stopping() {
        // ORDERING: pairs with the release in `commands::flush`.
        if has_dead.swap(false, Ordering::Acquire) {
            let _ = tree.free_dead();
        }
        thread::park_timeout(Duration::from_millis(100));
    }
}

fn make_sync_points<S: Store>(shared: &Shared<S>, points: &SyncPoints<S>) {
    let Some(group) = &shared.group else { return };
    let sync = || {
        let result = (points.sync)(shared.context.tree.store());
        shared.context.counters.syncs.fetch_add(1, Ordering::Relaxed);
        if let Err(why) = result {
            *shared.failed.lock().unwrap_or_else(std::sync::PoisonError::into_inner) = Some(why);
        }
        result
    };
    group.run(points.interval, sync, || shared.wake());
    if shared.failed.lock().is_ok_and(|failed| failed.is_some()) {
        (shared.on_shutdown)();
    }
}
