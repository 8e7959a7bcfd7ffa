//! Drives the processes: times first, then instructions, which do not depend on the moment.

use super::callgrind::{Counted, Subject};
use super::calls::EMPTY_PAIR_INSTRUCTIONS;
use super::measurement::Measurement;
use super::pattern::{LIVE_BYTES, Pattern};
use super::process::{Ended, Output, Process};
use super::{Config, MicroRow, Progress, Status};
use crate::measure::{Allocator, once};
use crate::scratch::Scratch;
use crate::summary::Spread;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

const LIMIT: Duration = Duration::from_secs(30);
const COUNTS: [usize; 2] = [5_000, 30_000];

struct Candidate<'a> {
    allocator: &'a Allocator,
    variables: once::Variables,
    library: Option<PathBuf>,
    given_up: Option<Status>,
    uncounted: Option<String>,
    counted: bool,
}

impl<'a> Candidate<'a> {
    fn new(allocator: &'a Allocator) -> Self {
        let (environment, given_up) = match once::environment(allocator) {
            Ok(environment) => (environment, None),
            Err(why) => ((Vec::new(), None), Some(Status::NotServed(why))),
        };
        let (variables, library) = environment;
        Self { allocator, variables, library, given_up, uncounted: None, counted: false }
    }

    fn read(&self, output: &Output) -> Result<Measurement, Status> {
        if let Some(library) = self.library.as_deref().filter(|l| once::was_refused(l, &output.stderr)) {
            let line = output.stderr.lines().find(|line| line.contains("cannot be preloaded"));
            let why = line.map_or_else(|| library.display().to_string(), str::to_owned);
            return Err(Status::NotServed(why));
        }
        if let Some(why) = output.failure() {
            return Err(Status::Failed(why));
        }
        let result = Measurement::parse(&output.stdout).map_err(Status::Failed)?;
        let is_c_library = |path: &Path| path.file_name().is_some_and(|n| n.to_string_lossy().starts_with("libc.so"));
        // A library may wrap another one's malloc: its name proves nothing.
        let wants_c_library = self.library.as_deref().is_none_or(is_c_library);
        if is_c_library(Path::new(&result.malloc_from)) != wants_c_library {
            return Err(Status::NotServed(format!("malloc came from {}", result.malloc_from)));
        }
        Ok(result)
    }
}

#[derive(Clone, Copy)]
struct Case {
    pattern: Pattern,
    size: usize,
    threads: usize,
}

struct Driver<'a> {
    config: &'a Config<'a>,
    directory: &'a Path,
    program: PathBuf,
    candidates: Vec<Candidate<'a>>,
    done: usize,
    total: usize,
    rows: Vec<MicroRow>,
}

pub fn run(config: &Config<'_>) -> Result<Vec<MicroRow>, String> {
    let scratch = Scratch::new("what the processes write")?;
    let directory = scratch.path();
    let candidates: Vec<_> = config.allocators.iter().map(Candidate::new).collect();
    // The processes run in another directory.
    let program = std::path::absolute(&config.program).unwrap_or_else(|_| config.program.clone());
    let mut driver = Driver { config, directory, program, candidates, done: 0, total: 0, rows: Vec::new() };
    let cases = driver.cases();
    let counted: Vec<Case> = cases.iter().copied().filter(|case| driver.is_counted(*case)).collect();
    driver.total = (cases.len() * driver.rounds() + counted.len()) * config.allocators.len();
    for case in cases {
        if !driver.time(case) {
            return Ok(driver.rows);
        }
    }
    driver.count_all(&counted);
    Ok(driver.rows)
}

impl Driver<'_> {
    fn rounds(&self) -> usize {
        if self.config.quick { 1 } else { 3 }
    }

    fn cases(&self) -> Vec<Case> {
        let mut cases = Vec::new();
        for &pattern in &self.config.patterns {
            for &threads in self.config.threads.iter().filter(|threads| pattern.runs_on(**threads)) {
                for &size in self.config.sizes.iter().filter(|size| pattern.takes(**size)) {
                    cases.push(Case { pattern, size, threads });
                }
            }
        }
        cases
    }

    fn is_counted(&self, case: Case) -> bool {
        let Config { counted_patterns, counted_sizes, .. } = self.config;
        case.threads == 1 && counted_patterns.contains(&case.pattern) && counted_sizes.contains(&case.size)
    }

    fn progress(&mut self, candidate: usize, case: Case, counting: bool) {
        (self.config.progress)(Progress {
            allocator: &self.config.allocators[candidate].name,
            pattern: case.pattern,
            size_bytes: case.size,
            counting,
            done: self.done,
            total: self.total,
        });
    }

    fn command(&self, case: Case, repetitions: usize, with_loop: &str) -> Vec<OsString> {
        let Case { pattern, size, threads } = case;
        let mut command = vec![self.program.clone().into_os_string()];
        for word in [
            pattern.name().as_str(),
            "--size",
            &size.to_string(),
            "--threads",
            &threads.to_string(),
            "--repetitions",
            &repetitions.to_string(),
            "--loop",
            with_loop,
        ] {
            command.push(word.into());
        }
        command
    }

    fn time(&mut self, case: Case) -> bool {
        let mut results: Vec<Vec<Measurement>> = vec![Vec::new(); self.candidates.len()];
        let mut failures: Vec<Option<Status>> = self.candidates.iter().map(|s| s.given_up.clone()).collect();
        for _ in 0..self.rounds() {
            for candidate in 0..self.candidates.len() {
                if self.config.stop.load(Relaxed) {
                    return false;
                }
                if failures[candidate].is_none() {
                    self.progress(candidate, case, false);
                    match self.once(candidate, case) {
                        Some(Ok(result)) => results[candidate].push(result),
                        Some(Err(why)) => failures[candidate] = Some(why),
                        None => return false,
                    }
                }
                self.done += 1;
            }
        }
        for (candidate, (results, failure)) in self.candidates.iter_mut().zip(results.iter().zip(failures)) {
            if let Some(Status::NotServed(_)) = failure {
                candidate.given_up.clone_from(&failure);
            }
            self.rows.extend(rows(&candidate.allocator.name, case, results, failure));
        }
        true
    }

    fn once(&self, candidate: usize, case: Case) -> Option<Result<Measurement, Status>> {
        let candidate = &self.candidates[candidate];
        let mut command = self.command(case, if self.config.quick { 5 } else { 7 }, "also");
        command.extend(["--count".into(), count(case, self.config.quick).to_string().into()]);
        let started = Process::start(&command, &candidate.variables, self.directory, "timed", LIMIT);
        Some(match started.and_then(|process| process.finish(self.config.stop)) {
            Err(e) => Err(Status::Failed(format!("cannot start {}: {e}", self.program.display()))),
            Ok(Ended::Stopped) => return None,
            Ok(Ended::TimedOut) => Err(Status::Failed(format!("took longer than {} s", LIMIT.as_secs()))),
            Ok(Ended::Done(output)) => candidate.read(&output),
        })
    }

    fn count_all(&mut self, cases: &[Case]) {
        for &pattern in &self.config.counted_patterns {
            let mut loop_instructions = None;
            for case in cases.iter().copied().filter(|case| case.pattern == pattern) {
                for candidate in 0..self.candidates.len() {
                    if !self.is_timed(candidate, case) {
                        self.done += 1;
                        continue;
                    }
                    self.progress(candidate, case, true);
                    // The same for each size and allocator.
                    if loop_instructions.is_none() {
                        match self.count_loop(case) {
                            None => return,
                            Some(result) => loop_instructions = Some(result),
                        }
                    }
                    let Some(result) = self.count(candidate, case) else { return };
                    let total = loop_instructions.clone().unwrap_or_else(|| Err("no loop".to_owned()));
                    self.record(candidate, case, total.and_then(|of_loop| Ok((result?, of_loop))));
                    self.done += 1;
                }
            }
        }
    }

    fn row(&mut self, candidate: usize, case: Case) -> Option<&mut MicroRow> {
        let name = &self.config.allocators[candidate].name;
        let is_row = |row: &&mut MicroRow| row.allocator == *name && row.pattern == case.pattern.name();
        let mut rows = self.rows.iter_mut().filter(is_row);
        rows.find(|row| row.size_bytes == case.size && row.threads == case.threads)
    }

    fn is_timed(&mut self, candidate: usize, case: Case) -> bool {
        self.row(candidate, case).is_some_and(|row| row.is_timed())
    }

    fn record(&mut self, candidate: usize, case: Case, counted: Result<(f64, f64), String>) {
        let Some(row) = self.row(candidate, case) else { return };
        match counted {
            Ok((all, of_loop)) => {
                row.instructions = Some(all - of_loop);
                row.loop_instructions = Some(of_loop);
            }
            Err(why) => row.status = Status::NotCounted(why),
        }
    }

    fn count(&mut self, index: usize, case: Case) -> Option<Result<f64, String>> {
        let command = self.command(case, 1, "none");
        let Self { config, directory, candidates, .. } = self;
        let candidate = &candidates[index];
        if let Some(why) = &candidate.uncounted {
            return Some(Err(why.clone()));
        }
        let check = |output: &Output| candidate.read(output).map_err(|status| status.to_string());
        let counting =
            Subject { valgrind: &config.valgrind, command, variables: &candidate.variables, directory, check: &check };
        match counting.count(COUNTS, config.stop) {
            Counted::Stopped => None,
            Counted::Instructions(number) => {
                candidates[index].counted = true;
                Some(Ok(number))
            }
            Counted::NoValgrind(why) => {
                candidates.iter_mut().for_each(|s| s.uncounted = Some(why.clone()));
                Some(Err(why))
            }
            Counted::Failed(why) => {
                if !candidates[index].counted {
                    candidates[index].uncounted = Some(why.clone());
                }
                Some(Err(why))
            }
        }
    }

    fn count_loop(&mut self, case: Case) -> Option<Result<f64, String>> {
        let check = |output: &Output| Measurement::parse(&output.stdout);
        let counting = Subject {
            valgrind: &self.config.valgrind,
            command: self.command(case, 1, "only"),
            variables: &[],
            directory: self.directory,
            check: &check,
        };
        Some(match counting.count(COUNTS, self.config.stop) {
            Counted::Stopped => return None,
            Counted::Instructions(number) => Ok(number - EMPTY_PAIR_INSTRUCTIONS),
            Counted::Failed(why) | Counted::NoValgrind(why) => Err(why),
        })
    }
}

/// For a millisecond or two at usual costs.
fn count(case: Case, quick: bool) -> usize {
    let size = case.size;
    let usual_ns = match case.pattern {
        Pattern::Pair | Pattern::LiveRandom => 20 + size / 64,
        Pattern::BatchLifo(_) | Pattern::BatchFifo(_) | Pattern::TouchedPair => 20 + size / 16,
        Pattern::Remote => 50 + size / 32,
        Pattern::Calloc => 20 + size / 16,
        Pattern::ReallocGrow => 100 + size / 4,
        Pattern::UsableSize => 5,
        Pattern::Cold => return (LIVE_BYTES / size).clamp(1, if quick { 10_000 } else { 100_000 }),
    };
    (if quick { 1_000_000 } else { 2_000_000 }) / usual_ns
}

fn rows(allocator: &str, case: Case, results: &[Measurement], failure: Option<Status>) -> Vec<MicroRow> {
    let results = if failure.is_some() { &[] } else { results };
    let status = failure.unwrap_or(Status::Ok);
    let of = |figure: &dyn Fn(&Measurement) -> Option<f64>| Spread::of(results.iter().filter_map(figure));
    let row = |pattern: String, medians: Option<Spread>, min: Option<Spread>, of_loop: Option<Spread>| MicroRow {
        allocator: allocator.to_owned(),
        pattern,
        size_bytes: case.size,
        threads: case.threads,
        ns_median: medians.map_or(0.0, |s| s.median),
        ns_min: min.map_or(0.0, |s| s.min),
        loop_ns: of_loop.map_or(0.0, |s| s.median),
        instructions: None,
        loop_instructions: None,
        status: status.clone(),
    };
    let mut rows =
        vec![row(case.pattern.name(), of(&|r| Some(r.ns_median)), of(&|r| Some(r.ns_min)), of(&|r| r.loop_ns))];
    if case.pattern == Pattern::Cold {
        let first = of(&|r| r.steps.first().map(|step| step.1));
        rows.push(row("cold-first".to_owned(), first, first, None));
    }
    rows
}
