//! The program `craton-kv`: opens the heap file, serves it, closes it.
//!
//! **Threads.** This one waits for the end: a signal, `SHUTDOWN`, or a failed sync point.
//! **Failure.** One line that names the file or the option, exit status 1; wrong usage is 2.

mod file;
mod options;

use clap::Parser;
use craton_base::{Medium, Promise, Space};
use craton_kv::heap::HeapStore;
use craton_kv::log::{Log, Record};
use craton_kv::server::{About, Disk, Gates, Server, SyncHeap};
use craton_kv::{StoreError, Tree, When};
use craton_pheap::Heap;
use options::Options;
use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::iterator::Signals;
use std::process::ExitCode;
use std::sync::{Arc, mpsc};
use std::time::Instant;

fn main() -> ExitCode {
    let options = Options::parse();
    match file::with_heap(&options, Serve { options: &options }) {
        Ok(()) => ExitCode::SUCCESS,
        Err(why) => {
            eprintln!("craton-kv: {why}");
            ExitCode::FAILURE
        }
    }
}

/// Serves a heap, whatever its medium.
struct Serve<'a> {
    options: &'a Options,
}

impl file::UseHeap for Serve<'_> {
    fn call<M: Medium + Space + 'static>(
        self,
        heap: Heap<M>,
        promise: Promise,
        disk: Option<file::DiskParts<M>>,
    ) -> Result<Heap<M>, String> {
        let Options { file, listen, port, threads, .. } = self.options;
        let named = |why: &dyn std::fmt::Display| format!("{}: {why}", file.display());
        let started = Instant::now();
        let (model, uuid) = (heap.model(), heap.uuid());
        let (store, slot) = HeapStore::new(heap).map_err(|why| named(&why))?;
        let mut tree = Tree::open(store, slot).map_err(|why| named(&why))?;
        let mut replayed = 0;
        let is_disk = disk.is_some();
        let disk = match disk {
            Some(file::DiskParts { interval, files, sync }) => {
                let log = Arc::new(Log::new(files, uuid));
                replayed = replay(&mut tree, &log, sync).map_err(|why| named(&why))?;
                Some(Disk { interval, log, sync, log_bytes: self.options.log })
            }
            None => None,
        };
        let about = About {
            file: file.display().to_string(),
            promise: promise_text(promise).to_owned(),
            model: model.name().to_owned(),
            threads: if *threads > 0 { *threads } else { std::thread::available_parallelism().map_or(1, |n| n.get()) },
            port: *port,
        };
        let (end, ends) = mpsc::channel();
        let mut signals = Signals::new([SIGTERM, SIGINT]).map_err(|why| format!("cannot wait for signals: {why}"))?;
        let on_signal = end.clone();
        std::thread::spawn(move || {
            // The receiver is gone only when the program ends.
            signals.forever().for_each(|_| _ = on_signal.send(()));
        });
        let address = (*listen, *port).into();
        let server = Server::start(tree, address, about, disk, Box::new(move || _ = end.send(())))
            .map_err(|why| format!("cannot listen on {address}: {why}"))?;
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
            // The log is void once the heap is durable as it is now.
            tree.generation().and_then(|now| tree.begin_generation(now + 1)).map_err(|why| named(&why))?;
        }
        Ok(tree.into_store().into_heap())
    }
}

/// Does the records of the log again, and makes the heap durable; their number.
fn replay<M: Medium + Space>(
    tree: &mut Tree<HeapStore<M>>,
    log: &Arc<Log>,
    sync: SyncHeap<HeapStore<M>>,
) -> Result<u64, StoreError> {
    let generation = tree.generation()?;
    let replayed = log.replay(generation, |record| match record {
        Record::Set { key, value } => tree.put(key, value, When::Always, None).map(drop),
        Record::Del { key } => tree.remove(key).map(drop),
        Record::Clear => tree.clear().and_then(|()| tree.free_dead()),
    })?;
    tree.set_log(Arc::clone(log));
    // Two files may have been read; the next one to be written is the older of them.
    tree.begin_generation(generation + 2)?;
    sync(tree.store(), &Gates::new(0), &|| {})?;
    Ok(replayed)
}

fn promise_text(promise: Promise) -> &'static str {
    match promise {
        Promise::PowerFailure => "a power failure",
        Promise::ProcessCrash => "the end of the process, no power failure",
        Promise::PowerFailureAtSync => "a power failure, from their sync point on",
    }
}
