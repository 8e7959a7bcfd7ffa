//! `kill -9` under load: every acknowledged write is there after a restart.

use crate::process::{Client, Reply, Running};
use crate::random::Random;
use craton_kv::Tree;
use craton_kv::heap::HeapStore;
use craton_os::persistent_file::{Cached, FileOptions, PersistentFile};
use craton_pheap::{Heap, Model, Options};
use std::collections::BTreeMap;
use std::ffi::CString;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::thread;
use std::time::{Duration, Instant};

const KEYS: u64 = 3000;
const DEPTH: usize = 24;
const WRITERS: u64 = 3;
/// Acknowledged writes before most kills.
const LEAST: u64 = 40;

/// A key's last acknowledged value, and those of writes in flight.
type Possible = BTreeMap<u64, Vec<Option<Vec<u8>>>>;

/// No other writes its keys.
struct Writer {
    name: u64,
    random: Random,
    possible: Possible,
    acknowledged: u64,
}

impl Writer {
    fn key(&self, i: u64) -> String {
        // Some keys share a prefix longer than inner nodes hold.
        let middle = if i.is_multiple_of(3) { "a-rather-long-beginning-of-many-keys-" } else { "" };
        format!("{middle}{}:{i}", self.name)
    }

    /// A command, and its effect on the key.
    fn next(&mut self) -> (String, u64, Option<Vec<u8>>) {
        let i = self.random.below(KEYS);
        let key = self.key(i);
        match self.random.below(10) {
            0..=2 => (format!("DEL {key}\r\n"), i, None),
            n => {
                let long = if n == 9 && self.random.below(20) == 0 { 20_000 } else { 30 };
                let value = format!("{:x}", self.random.next()).repeat(1 + self.random.below(long) as usize / 16);
                (format!("SET {key} {value}\r\n"), i, Some(value.into_bytes()))
            }
        }
    }

    /// `all`: what the writers of a run have acknowledged.
    fn write(&mut self, port: u16, all: &AtomicU64) {
        let Some(mut client) = Client::new(port) else { return };
        loop {
            let commands: Vec<_> = (0..DEPTH).map(|_| self.next()).collect();
            for (_, i, value) in &commands {
                self.possible.entry(*i).or_insert_with(|| vec![None]).push(value.clone());
            }
            let text: String = commands.iter().map(|(text, ..)| text.as_str()).collect();
            if client.send(text.as_bytes()).is_none() {
                return;
            }
            for (text, i, _) in &commands {
                match client.reply() {
                    Some(Reply::Line(line)) => assert!(!line.starts_with('-'), "{text}: {line}"),
                    Some(reply) => panic!("{text}: {reply:?}"),
                    None => return,
                }
                // The value before is gone.
                if let Some(possible) = self.possible.get_mut(i) {
                    possible.remove(0);
                }
                self.acknowledged += 1;
                all.fetch_add(1, Relaxed);
            }
        }
    }

    /// Each value must be possible, and is known then.
    fn check(&mut self, client: &mut Client) -> u64 {
        let keys: Vec<u64> = self.possible.keys().copied().collect();
        let mut present = 0;
        for some in keys.chunks(500) {
            let text: String = some.iter().map(|i| format!("GET {}\r\n", self.key(*i))).collect();
            client.send(text.as_bytes()).unwrap();
            for i in some {
                let Some(Reply::Bulk(found)) = client.reply() else { panic!("GET {}", self.key(*i)) };
                let possible = &self.possible[i];
                assert!(possible.contains(&found), "{}: {found:?}, possible: {possible:?}", self.key(*i));
                present += u64::from(found.is_some());
                self.possible.insert(*i, vec![found]);
            }
        }
        present
    }
}

fn kill_often(runs: u64, seed: u64, options: &[&str]) {
    let is_disk = options.contains(&"--sync");
    let folder = tempfile::tempdir_in(if is_disk { Path::new("/tmp") } else { folder() }).unwrap();
    let file = folder.path().join("kill.heap");
    let mut random = Random::new(seed);
    let mut writers: Vec<Writer> = (0..WRITERS)
        .map(|name| Writer { name, random: Random::new(seed + 100 + name), possible: Possible::new(), acknowledged: 0 })
        .collect();
    for run in 0..runs {
        let server = Running::start(&file, options);
        if run > 0 {
            let mut client = Client::new(server.port).unwrap();
            let present: u64 = writers.iter_mut().map(|writer| writer.check(&mut client)).sum();
            assert_eq!(client.ask("DBSIZE"), Some(Reply::Line(format!(":{present}"))));
        }
        let (port, all) = (server.port, &AtomicU64::new(0));
        thread::scope(|scope| {
            writers.iter_mut().for_each(|writer| drop(scope.spawn(move || writer.write(port, all))));
            if run % 4 == 0 {
                thread::sleep(Duration::from_micros(random.below(2_000)));
            } else {
                // Mostly enough for splits.
                let least = LEAST + random.below(if is_disk { 300 } else { 8_000 });
                let start = Instant::now();
                while all.load(Relaxed) < least {
                    assert!(start.elapsed() < Duration::from_secs(120), "{} of {least} writes", all.load(Relaxed));
                    thread::sleep(Duration::from_micros(50));
                }
            }
            server.kill();
        });
    }
    let acknowledged: u64 = writers.iter().map(|writer| writer.acknowledged).sum();
    assert!(acknowledged >= runs / 2 * LEAST, "{acknowledged} writes in {runs} runs");
    let server = Running::start(&file, options);
    let mut client = Client::new(server.port).unwrap();
    writers.iter_mut().for_each(|writer| _ = writer.check(&mut client));
    assert_eq!(server.terminate(), 0);
    check_file(&file);
    println!("{runs} runs, {acknowledged} acknowledged writes");
}

/// No object is lost or used twice.
fn check_file(file: &Path) {
    let path = CString::new(file.as_os_str().as_bytes()).unwrap();
    let medium = Cached::new(PersistentFile::open(&path, FileOptions::new(1 << 34)).unwrap());
    let (heap, report) = Heap::open(medium, Options::default()).unwrap();
    assert!(report.clean);
    let (store, slot) = HeapStore::new(heap).unwrap();
    let tree = Tree::open(store, slot).unwrap();
    let census = tree.check().unwrap();
    let stats = tree.store().heap().stats();
    let objects = stats.small + stats.large;
    match tree.store().heap().model() {
        // A leaf's stale slot may keep a free object.
        Model::Gc => assert!(objects >= census.objects),
        Model::Log | Model::Frames => assert_eq!(objects, census.objects),
    }
}

/// In memory, if possible: a killed process leaves the pages either way.
pub fn folder() -> &'static Path {
    let shm = Path::new("/dev/shm");
    if shm.is_dir() { shm } else { Path::new("/tmp") }
}

#[test]
fn acknowledged_writes_survive_30_kills() {
    kill_often(30, 1, &[]);
}

#[test]
fn acknowledged_writes_survive_kills_with_write_back() {
    kill_often(10, 2, &["--write-back", "flush", "--threads", "3"]);
}

#[test]
fn acknowledged_writes_survive_kills_of_a_collected_heap() {
    kill_often(8, 7, &["--model", "gc"]);
}

#[test]
fn acknowledged_writes_survive_kills_of_a_heap_of_frames() {
    kill_often(8, 8, &["--model", "frames", "--most", "4G"]);
}

#[test]
fn acknowledged_writes_survive_kills_on_a_disk() {
    // Kills meet sync points of the heap too.
    kill_often(12, 4, &["--sync", "always", "--log", "128K"]);
    kill_often(4, 5, &["--sync", "3"]);
}

#[test]
#[ignore = "nightly: minutes"]
fn acknowledged_writes_survive_500_kills_on_a_disk() {
    kill_often(500, 6, &["--sync", "always", "--log", "128K"]);
}

#[test]
#[ignore = "nightly: minutes"]
fn acknowledged_writes_survive_1000_kills() {
    kill_often(1000, 3, &[]);
}
