//! The program `craton-kv`. An error is one line and exit status 1; wrong usage is 2.

mod disk;
mod file;
mod options;

use clap::Parser;
use craton_base::{Medium, Promise, Space};
use craton_kv::heap::HeapStore;
use craton_kv::log::{Log, NO_LOG, Record, ReplayError};
use craton_kv::server::{About, Disk, Gates, Server, SyncHeap};
use craton_kv::{StoreError, Tree, When};
use craton_os::disk_file::JOURNAL_EXTENSION;
use craton_pheap::Heap;
use disk::DiskParts;
use options::Options;
use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::iterator::Signals;
use std::net::{SocketAddr, TcpListener};
use std::process::ExitCode;
use std::sync::{Arc, mpsc};
use std::time::Instant;

fn main() -> ExitCode {
    let options = Options::parse();
    let address = SocketAddr::from((options.listen, options.port));
    // First: a port in use must leave no heap behind.
    let served = TcpListener::bind(address)
        .map_err(|why| format!("cannot listen on {address}: {why}"))
        .and_then(|listener| file::with_heap(&options, Serve { options: &options, listener }));
    match served {
        Ok(()) => ExitCode::SUCCESS,
        Err(why) => {
            eprintln!("craton-kv: {why}");
            ExitCode::FAILURE
        }
    }
}

const MAKE_ROOM: &str = "make room and start again; no acknowledged write is lost";

struct Serve<'a> {
    options: &'a Options,
    listener: TcpListener,
}

impl file::UseHeap for Serve<'_> {
    fn call<M: Medium + Space + 'static>(
        self,
        heap: Heap<M>,
        promise: Promise,
        disk: Option<DiskParts<M>>,
    ) -> Result<Heap<M>, String> {
        let Options { file, listen, threads, .. } = self.options;
        let named = |why: &dyn std::fmt::Display| format!("{}: {why}", file.display());
        let started = Instant::now();
        let (model, uuid) = (heap.model(), heap.uuid());
        let (store, slot) = HeapStore::new(heap).map_err(|why| named(&why))?;
        let mut tree = Tree::open(store, slot).map_err(|why| named(&why))?;
        let mut replayed = 0;
        let is_disk = disk.is_some();
        let disk = match disk {
            Some(DiskParts { interval, files, needs_log, sync }) => {
                let log = Arc::new(Log::new(files, uuid));
                if needs_log {
                    replayed = replay(&tree, &log, self.options)?;
                } else {
                    check_journal(&tree, &log, self.options)?;
                }
                begin_log(&mut tree, &log, sync).map_err(|why| match why.is_full() {
                    true => named(&format!("{why}: {MAKE_ROOM}")),
                    false => named(&why),
                })?;
                let fill_bytes = disk::log_file_bytes(self.options);
                Some(Disk { interval, log, sync, log_bytes: self.options.log, fill_bytes })
            }
            None => None,
        };
        let about = About {
            file: file.display().to_string(),
            promise: promise_text(promise).to_owned(),
            model: model.name().to_owned(),
            threads: if *threads > 0 { *threads } else { std::thread::available_parallelism().map_or(1, |n| n.get()) },
            port: 0,
        };
        let (end, ends) = mpsc::channel();
        let mut signals = Signals::new([SIGTERM, SIGINT]).map_err(|why| format!("cannot wait for signals: {why}"))?;
        let on_signal = end.clone();
        std::thread::spawn(move || {
            // Fails only when the program ends.
            signals.forever().for_each(|_| _ = on_signal.send(()));
        });
        let server = Server::start(tree, self.listener, about, disk, Box::new(move || _ = end.send(())))
            .map_err(|why| format!("cannot serve: {why}"))?;
        println!(
            "craton-kv: {}: listening on {listen}:{}, after {:.1} ms and {replayed} records; acknowledged writes survive {}",
            file.display(),
            server.port(),
            started.elapsed().as_secs_f64() * 1e3,
            promise_text(promise),
        );
        let _ = ends.recv();
        let tree = server.stop().map_err(|why| named(&why))?;
        if is_disk {
            // Voids the log once the heap is durable.
            tree.generation().and_then(|now| tree.begin_generation(now + 1)).map_err(|why| named(&why))?;
        }
        Ok(tree.into_store().into_heap())
    }
}

fn replay<M: Medium + Space>(tree: &Tree<HeapStore<M>>, log: &Log, options: &Options) -> Result<u64, String> {
    let named = |why: StoreError| format!("{}: {why}", options.file.display());
    let generation = tree.generation().map_err(named)?;
    let mut count = 0;
    if generation & NO_LOG != 0 {
        return Ok(count);
    }
    let done = log.replay(generation, |record| {
        count += 1;
        match record {
            Record::Set { key, value } => tree.put(key, value, When::Always, None).map(drop),
            Record::Del { key } => tree.remove(key).map(drop),
            Record::Clear => tree.clear().and_then(|()| tree.free_dead()),
        }
    });
    let (file, what) = match done {
        Ok(()) => return Ok(count),
        Err(ReplayError::Store(why)) => return Err(named(why)),
        Err(ReplayError::Missing(file)) => (file, "is not the log of this heap, which was not closed".to_owned()),
        Err(ReplayError::Damaged(file, at)) => (file, format!("is damaged at byte {at}")),
        Err(ReplayError::Cut(file, len, least)) => (file, format!("was cut to {len} of {least} bytes")),
    };
    let path = disk::log_paths(&options.file)[file].display().to_string();
    if options.lose_log {
        eprintln!("craton-kv: {path}: {what}: going on without the writes that it had");
        return Ok(count);
    }
    Err(format!("{path}: {what}: restore it, or give --lose-log to go on without the writes that it had"))
}

/// Without its journal, the file is older than the log.
fn check_journal<M: Medium + Space>(tree: &Tree<HeapStore<M>>, log: &Log, options: &Options) -> Result<(), String> {
    let named = |why: StoreError| format!("{}: {why}", options.file.display());
    let generation = tree.generation().map_err(named)? & !NO_LOG;
    if log.newest().map_err(named)?.is_none_or(|newest| newest < generation) {
        return Ok(());
    }
    let journal = disk::beside(&options.file, JOURNAL_EXTENSION).display().to_string();
    let what = "is missing, and the log is newer than the heap";
    if options.lose_log {
        eprintln!("craton-kv: {journal}: {what}: going on without the last writes");
        return Ok(());
    }
    Err(format!("{journal}: {what}: restore it, or give --lose-log to go on without the last writes"))
}

fn begin_log<M: Medium + Space>(
    tree: &mut Tree<HeapStore<M>>,
    log: &Arc<Log>,
    sync: SyncHeap<HeapStore<M>>,
) -> Result<(), StoreError> {
    // Both files may be in use until then.
    let next = (tree.generation()? & !NO_LOG) + 2;
    let synced = |tree: &Tree<_>| sync(tree.store(), &Gates::new(0), &|| {});
    tree.begin_generation(next | NO_LOG)?;
    synced(tree)?;
    log.prepare(next)?;
    tree.set_log(Arc::clone(log));
    tree.begin_generation(next)?;
    synced(tree)
}

fn promise_text(promise: Promise) -> &'static str {
    match promise {
        Promise::PowerFailure => "a power failure",
        Promise::ProcessCrash => "the end of the process, but no power failure",
        Promise::PowerFailureAtSync => "a power failure",
    }
}
