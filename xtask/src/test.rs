//! Builds the tests and runs their programs side by side, slowest first by
//! `target/test-seconds.txt`, so that a waiting test does not idle the machine.

mod build;
mod job;
mod outcome;
mod plan;
mod pool;

use crate::library::{HEAPS_LIBRARY, LIBRARY, heaps_library, library};
use job::{Finished, Job, Kind};
use outcome::Counts;
pub use plan::Extent;
use pool::{Event, Pool};
use std::collections::HashMap;
use std::fs;
use std::path::Path;
use std::process::ExitCode;
use std::sync::mpsc::{Sender, channel};
use std::thread;
use std::time::Duration;

const SLOWEST: usize = 15;

pub fn run(extent: Extent) -> ExitCode {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("xtask/ lies in the repository's root");
    let target = std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| root.join("target"), |dir| root.join(dir));
    let times = target.join("test-seconds.txt");
    let mut last: HashMap<String, f64> = plan::SLOW.map(|(name, seconds)| (name.to_owned(), seconds)).into();
    last.extend(read_times(&times));
    let limit = Duration::from_secs(if extent == Extent::Nightly { 4 * 3600 } else { 1800 });
    let (send, events) = channel();
    let builders = start_builders(root, &target, extent, &send);

    let mut summary = Summary::default();
    let broken = Pool::new(last.clone(), limit).run((send, events), builders, |finished| {
        last.insert(finished.name.clone(), finished.took.as_secs_f64());
        summary.add(finished);
    });
    write_times(&times, &last);
    summary.print(&broken)
}

fn start_builders(root: &Path, target: &Path, extent: Extent, send: &Sender<Event>) -> usize {
    let (root, plans) = (root.to_owned(), plan::plans(extent, target));
    let needs_library = extent != Extent::Units;
    if needs_library {
        let (send, root) = (send.clone(), root.clone());
        thread::spawn(move || {
            let built = library(&root).map_or_else(Event::Broken, |path| Event::Library(LIBRARY, path));
            send_all(&send, [built, Event::Done]);
        });
    }
    let send = send.clone();
    thread::spawn(move || {
        let jobs = |plan| build::build(&root, plan, extent == Extent::Nightly).map_or_else(Event::Broken, Event::Built);
        let (first, others) = plans.split_first().expect("there is a plan");
        send_all(&send, [jobs(first)]);
        if needs_library {
            let built = heaps_library(&root, plan::UNWINDING);
            send_all(&send, [built.map_or_else(Event::Broken, |path| Event::Library(HEAPS_LIBRARY, path))]);
        }
        send_all(&send, others.iter().map(jobs));
        let doc = needs_library.then(|| Event::Built(vec![doc_tests(&root)]));
        send_all(&send, doc.into_iter().chain([Event::Done]));
    });
    1 + usize::from(needs_library)
}

fn send_all(send: &Sender<Event>, events: impl IntoIterator<Item = Event>) {
    events.into_iter().for_each(|event| send.send(event).expect("the pool waits for builders"));
}

fn doc_tests(root: &Path) -> Job {
    Job {
        name: "doc tests".to_owned(),
        program: build::cargo(),
        args: ["test", "--workspace", "--doc"].map(str::to_owned).to_vec(),
        env: vec![plan::UNWINDING.map(str::to_owned).into()],
        dir: root.to_owned(),
        kind: Kind::Computes,
        threads: Kind::Computes.threads(),
        needs: Vec::new(),
    }
}

#[derive(Default)]
struct Summary {
    counts: Counts,
    tests: Vec<(Duration, String)>,
    failures: Vec<String>,
}

impl Summary {
    fn add(&mut self, finished: Finished) {
        let Counts { passed, failed, ignored } = finished.counts;
        let name = &finished.name;
        if passed + failed + ignored > 0 {
            let (took, computed) = (finished.took.as_secs_f64(), finished.computed.as_secs_f64());
            println!(
                "{took:6.1} s, {computed:6.1} s of computing  {name}: {passed} ok, {failed} not, {ignored} left out"
            );
        }
        self.counts = self.counts.plus(finished.counts);
        self.tests.extend(finished.tests.into_iter().map(|(test, took)| (took, format!("{name} {test}"))));
        if let Some(failure) = finished.failure {
            println!("{failure}");
            self.failures.push(finished.name);
        }
    }

    fn print(mut self, broken: &[String]) -> ExitCode {
        self.tests.sort_by(|a, b| b.cmp(a));
        println!("\nthe slowest tests:");
        for (took, name) in self.tests.iter().take(SLOWEST) {
            println!("{:6.1} s  {name}", took.as_secs_f64());
        }
        for name in &self.failures {
            println!("failed: {name}");
        }
        for why in broken {
            println!("failed: {why}");
        }
        let failed = self.counts.failed + broken.len() as u64;
        println!("\n{} tests left out here; `make nightly` runs them", self.counts.ignored);
        println!("{} passed, {failed} failed", self.counts.passed);
        if failed == 0 && self.counts.passed > 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE }
    }
}

fn read_times(path: &Path) -> HashMap<String, f64> {
    let text = fs::read_to_string(path).unwrap_or_default();
    let line = |line: &str| line.split_once(' ').and_then(|(s, name)| Some((name.to_owned(), s.parse().ok()?)));
    text.lines().filter_map(line).collect()
}

fn write_times(path: &Path, times: &HashMap<String, f64>) {
    let mut lines: Vec<String> = times.iter().map(|(name, seconds)| format!("{seconds:.1} {name}\n")).collect();
    lines.sort();
    if let Err(error) = fs::write(path, lines.concat()) {
        eprintln!("xtask: cannot write {}: {error}", path.display());
    }
}
