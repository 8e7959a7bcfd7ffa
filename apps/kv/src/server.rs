//! The server: threads that wait for sockets, and what they share.
//!
//! **Threads.** Each worker waits for its own connections and runs their commands; the tree takes
//! all workers at once. The first worker accepts and hands connections out in turn. On a disk a
//! thread flushes the log, with an interval; without one workers do, one at a time. Of fewer than
//! four workers the first gets each connection once that writes. The keeper reads directories,
//! frees cleared trees, gives free memory back, and makes sync points of the heap.
//! **Failure.** A connection's fault ends that connection. A full disk refuses writes until it has
//! room; any other failure of the log or of a sync point ends the server.

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
use connection::Connection;
use group::Group;
use mio::net::TcpListener;
use mio::{Poll, Waker};
use std::io;
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
    /// Writes are refused until the log has room.
    pub is_full: AtomicBool,
}

pub struct Disk<S> {
    /// Between flushes of the log.
    pub interval: Duration,
    pub log: Arc<Log>,
    pub sync: SyncHeap<S>,
    /// Between sync points of the heap.
    pub log_bytes: u64,
    /// Of each file of the log, at the start.
    pub fill_bytes: u64,
}

/// A sync point, made after all gates are closed and the function was called.
pub type SyncHeap<S> = fn(&S, &Gates, &dyn Fn()) -> Result<(), StoreError>;

type Job<S> = Box<dyn FnOnce(&Shared<S>) + Send>;

pub(crate) struct Shared<S: Store> {
    context: Context<S>,
    group: Option<Group>,
    gates: Gates,
    /// The log, if workers flush it.
    led: Option<Arc<Log>>,
    is_stopping: AtomicBool,
    failed: Mutex<Option<StoreError>>,
    wakers: Vec<Waker>,
    /// Accepted, or of another worker, by worker.
    handed: Vec<Mutex<Vec<Connection>>>,
    on_shutdown: Box<dyn Fn() + Send + Sync>,
}

impl<S: Store> Shared<S> {
    fn hand(&self, worker: usize, connection: Connection) {
        self.handed[worker].lock().unwrap_or_else(PoisonError::into_inner).push(connection);
        self.wake(worker);
    }

    fn wake(&self, worker: usize) {
        // A worker that cannot be woken has ended.
        let _ = self.wakers[worker].wake();
    }

    /// Makes a requested sync point of the log, if workers do.
    pub(crate) fn lead(&self, worker: usize) -> bool {
        let (Some(group), Some(log)) = (&self.group, &self.led) else { return false };
        group.lead(worker, || self.flush(log), |other| self.wake(other))
    }

    fn flush(&self, log: &Log) -> Result<(), StoreError> {
        self.context.counters.syncs.fetch_add(1, Ordering::Relaxed);
        let flushed = log.flush();
        let is_full = flushed.is_err_and(StoreError::is_full);
        self.context.counters.is_full.store(is_full, Ordering::Relaxed);
        flushed.inspect_err(|why| {
            if !is_full {
                self.fail(*why);
            }
        })
    }

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
    /// `SHUTDOWN` or a failed sync point calls `on_shutdown`.
    pub fn start(
        tree: Tree<S>,
        listener: std::net::TcpListener,
        mut about: About,
        disk: Option<Disk<S>>,
        on_shutdown: Box<dyn Fn() + Send + Sync>,
    ) -> io::Result<Self> {
        listener.set_nonblocking(true)?;
        let listener = TcpListener::from_std(listener);
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
            is_full: AtomicBool::new(false),
        };
        let handed = (0..about.threads).map(|_| Mutex::default()).collect();
        let context = Context { tree, cursors: Default::default(), counters, has_dead: AtomicBool::new(false), about };
        let shared = Arc::new(Shared {
            context,
            group: disk.as_ref().map(|_| Group::default()),
            gates: Gates::new(threads),
            led: disk.as_ref().filter(|disk| disk.interval.is_zero()).map(|disk| Arc::clone(&disk.log)),
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
            Some(Disk { interval, log, .. }) if !interval.is_zero() => {
                let (interval, log) = (*interval, Arc::clone(log));
                Some(spawn("log", Box::new(move |shared: &Shared<S>| flush_log(shared, interval, &log)))?)
            }
            _ => None,
        };
        let keeper = spawn("keeper", Box::new(move |shared: &Shared<S>| keep(shared, disk.as_ref())))?;
        Ok(Self { shared, workers, keeper, syncer })
    }

    pub fn port(&self) -> u16 {
        self.shared.context.about.port
    }

    /// Executed commands are answered.
    pub fn stop(self) -> Result<Tree<S>, StoreError> {
        // ORDERING: pairs with the acquire in `is_stopping`.
        self.shared.is_stopping.store(true, Ordering::Release);
        (0..self.workers.len()).for_each(|worker| self.shared.wake(worker));
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

/// Between two steps of giving memory back.
const MAINTAIN_MS: u64 = 50;

/// On a full disk.
const RETRY: Duration = Duration::from_secs(1);

fn keep<S: Store>(shared: &Shared<S>, disk: Option<&Disk<S>>) {
    let Context { tree, has_dead, .. } = &shared.context;
    if let Some(disk) = disk {
        // If refused, flushes are slower.
        let _ = disk.log.fill(disk.fill_bytes);
    }
    let mut maintain_ms = 0;
    let mut heap = HeapSync { has_begun: false, next: Instant::now() };
    // A request reports a damaged directory.
    let _ = tree.len();
    while !shared.is_stopping() {
        // ORDERING: pairs with the release in `commands::flush`.
        if has_dead.swap(false, Ordering::Acquire) {
            let _ = tree.free_dead();
        }
        let now_ms = shared.context.counters.started.elapsed().as_millis() as u64;
        if now_ms >= maintain_ms {
            tree.store().maintain(now_ms);
            maintain_ms = now_ms + MAINTAIN_MS;
        }
        if shared.context.counters.is_full.load(Ordering::Relaxed) {
            shared.lead(usize::MAX);
        }
        if let Some(disk) = disk
            && (heap.has_begun || disk.log.bytes() > disk.log_bytes)
            && heap.next <= Instant::now()
            && let Err(why) = heap.sync(shared, disk)
        {
            if why.is_full() {
                // The log still takes writes.
                heap.next = Instant::now() + RETRY;
            } else {
                shared.fail(why);
            }
        }
        thread::park_timeout(Duration::from_millis(20));
    }
}

struct HeapSync {
    /// A generation of the log has begun, but its sync point failed: the next one names the same
    /// generation, since the log before is in use until then.
    has_begun: bool,
    /// Not before.
    next: Instant,
}

impl HeapSync {
    /// Voids the older log.
    fn sync<S: Store>(&mut self, shared: &Shared<S>, disk: &Disk<S>) -> Result<(), StoreError> {
        let tree = &shared.context.tree;
        if self.has_begun {
            (disk.sync)(tree.store(), &shared.gates, &|| {})?;
        } else {
            let next = tree.generation()? + 1;
            disk.log.prepare(next)?;
            let begun = Mutex::new(Ok(false));
            let lock = || begun.lock().unwrap_or_else(PoisonError::into_inner);
            let begin = || *lock() = tree.begin_generation(next).map(|()| true);
            let synced = (disk.sync)(tree.store(), &shared.gates, &begin);
            self.has_begun = (*lock())?;
            synced?;
        }
        self.has_begun = false;
        Ok(())
    }
}

fn flush_log<S: Store>(shared: &Shared<S>, interval: Duration, log: &Log) {
    let Some(group) = &shared.group else { return };
    group.run(interval, || shared.flush(log), |worker| shared.wake(worker));
}
