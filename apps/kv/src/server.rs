//! The server: threads that wait for sockets, and what they share.
//!
//! **Threads.** Each worker waits for its own connections and runs their commands; the tree takes
//! all workers at once. The first worker accepts and hands connections out in turn. On a disk one
//! thread flushes the log; the keeper reads directories, frees cleared trees, and makes sync points
//! of the heap.
//! **Failure.** A connection's fault ends that connection. A failed sync point ends the server.

mod commands;
mod connection;
mod cursors;
mod gates;
mod glob;
mod group;
mod info;
mod reply;
mod resp;
mod worker;

pub use commands::About;
pub use gates::Gates;

use crate::log::Log;
use crate::store::{Store, StoreError};
use crate::tree::Tree;
use commands::Context;
use group::Group;
use mio::net::{TcpListener, TcpStream};
use mio::{Poll, Waker};
use std::io;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

pub struct Counters {
    pub started: Instant,
    pub commands: AtomicU64,
    pub connections: AtomicU64,
    pub connected: AtomicU64,
    pub syncs: AtomicU64,
}

/// How writes are made durable on a disk.
pub struct Disk<S> {
    /// The least time between two flushes of the log, each of which acknowledges writes.
    pub interval: Duration,
    /// The log of the tree's changes.
    pub log: Arc<Log>,
    pub sync: SyncHeap<S>,
    /// Bytes of log after which the heap has a sync point.
    pub log_bytes: u64,
}

/// Makes a sync point of the heap: of the state that it has after all gates are closed and the
/// function was called.
pub type SyncHeap<S> = fn(&S, &Gates, &dyn Fn()) -> Result<(), StoreError>;

type Job<S> = Box<dyn FnOnce(&Shared<S>) + Send>;

/// State that all threads share.
pub(crate) struct Shared<S: Store> {
    context: Context<S>,
    group: Option<Group>,
    gates: Gates,
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

    /// Ends the server with this error.
    fn fail(&self, why: StoreError) {
        *self.failed.lock().unwrap_or_else(PoisonError::into_inner) = Some(why);
        (self.on_shutdown)();
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
        disk: Option<Disk<S>>,
        on_shutdown: Box<dyn Fn() + Send + Sync>,
    ) -> io::Result<Self> {
        let listener = TcpListener::bind(address)?;
        about.port = listener.local_addr()?.port();
        about.threads = about.threads.max(1);
        let threads = about.threads;
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
            group: disk.as_ref().map(|_| Group::default()),
            gates: Gates::new(threads),
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
        let spawn = |name: &str, f: Job<S>| {
            let shared = Arc::clone(&shared);
            thread::Builder::new().name(name.to_owned()).spawn(move || f(&shared))
        };
        let syncer = match &disk {
            Some(Disk { interval, log, .. }) => {
                let (interval, log) = (*interval, Arc::clone(log));
                Some(spawn("log", Box::new(move |shared: &Shared<S>| flush_log(shared, interval, &log)))?)
            }
            None => None,
        };
        let keeper = spawn("keeper", Box::new(move |shared: &Shared<S>| keep(shared, disk.as_ref())))?;
        Ok(Self { shared, workers, keeper, syncer })
    }

    /// The port on which it listens.
    pub fn port(&self) -> u16 {
        self.shared.context.about.port
    }

    /// Ends: connections get the replies of what was done, and the tree comes back.
    pub fn stop(self) -> Result<Tree<S>, StoreError> {
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
        let failed = shared.failed.into_inner().unwrap_or_else(PoisonError::into_inner);
        failed.map_or_else(|| Ok(shared.context.tree), Err)
    }
}

/// Reads the directories that no request has read, then frees what is cleared and, on disks, makes
/// sync points of the heap.
fn keep<S: Store>(shared: &Shared<S>, disk: Option<&Disk<S>>) {
    let Context { tree, has_dead, .. } = &shared.context;
    // A damaged directory is reported to the client that asks for its keys.
    let _ = tree.len();
    while !shared.is_stopping() {
        // ORDERING: pairs with the release in `commands::flush`.
        if has_dead.swap(false, Ordering::Acquire) {
            let _ = tree.free_dead();
        }
        if let Some(disk) = disk
            && disk.log.bytes() > disk.log_bytes
            && let Err(why) = sync_heap(shared, disk.sync)
        {
            shared.fail(why);
        }
        thread::park_timeout(Duration::from_millis(20));
    }
}

/// Makes the heap durable, so that the log before is void.
fn sync_heap<S: Store>(shared: &Shared<S>, sync: SyncHeap<S>) -> Result<(), StoreError> {
    let tree = &shared.context.tree;
    let next = tree.generation()? + 1;
    let begun = Mutex::new(Ok(()));
    let begin = || *begun.lock().unwrap_or_else(PoisonError::into_inner) = tree.begin_generation(next);
    sync(tree.store(), &shared.gates, &begin)?;
    begun.into_inner().unwrap_or_else(PoisonError::into_inner)
}

fn flush_log<S: Store>(shared: &Shared<S>, interval: Duration, log: &Log) {
    let Some(group) = &shared.group else { return };
    let flush = || {
        shared.context.counters.syncs.fetch_add(1, Ordering::Relaxed);
        log.flush().inspect_err(|why| shared.fail(*why))
    };
    group.run(interval, flush, || shared.wake());
}
