//! One run of the command on one allocator. Samples take at most 1/50 of a CPU.
//!
//! **Unsafe.** Calls `poll` and `kill`.

use super::launcher::{self, Ended, Report};
use super::server::{Driver, Load, Outcome};
use super::{Allocator, Plan, Run, STDERR_BYTES, Status, proof, sample};
use std::ffi::{OsStr, OsString};
use std::io::{self, PipeReader, Read};
use std::os::fd::AsRawFd;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::Ordering::Relaxed;
use std::time::{Duration, Instant};

const SAMPLE_PERIOD: Duration = Duration::from_millis(20);
const SHORTEST_PERIOD: Duration = Duration::from_millis(2);
/// The status of a program that turns SIGTERM into an exit.
const TERMINATED: i32 = 128 + libc::SIGTERM;
/// A multiple of a sample's processor time.
const SAMPLE_REST: u32 = 50;

pub fn run(plan: &Plan<'_>, allocator: &Allocator, index: usize) -> Option<Run> {
    run_with(plan, allocator, index, None).map(|(run, _)| run)
}

/// Also returns the largest process's name, if it ran without the library.
pub fn run_proven(plan: &Plan<'_>, allocator: &Allocator, proof: &proof::Directory) -> Option<(Run, Option<String>)> {
    run_with(plan, allocator, 0, Some(proof))
}

fn run_with(
    plan: &Plan<'_>,
    allocator: &Allocator,
    index: usize,
    proof: Option<&proof::Directory>,
) -> Option<(Run, Option<String>)> {
    let prepared = Prepared::new(plan, allocator, proof);
    let watched = match prepared.as_ref().map_err(String::clone).and_then(|p| Watched::start(plan, p, proof.is_some()))
    {
        Ok(watched) => watched.finish(plan),
        Err(why) => return Some((Run::without(&allocator.name, index, Status::CannotStart(why)), None)),
    };
    if watched.killed == Some(Reason::Stop) {
        return None;
    }
    let (status, load) = watched.verdict(&plan.command);
    let ended = watched.ended.unwrap_or_default();
    let mut stderr = String::from_utf8_lossy(&watched.stderr).into_owned();
    if let Some(Outcome::NotReady(_, output) | Outcome::LoadFailed { output, .. }) = &watched.outcome {
        stderr.push_str(output);
    }
    let refused = prepared.is_ok_and(|p| p.refused(&stderr));
    let largest_without = watched.samples.largest_without();
    let samples = watched.samples.into_samples();
    let wall_s = load.map_or(ended.wall_ns as f64 / 1e9, |load| load.seconds());
    let peak = sample::peak(&samples).unwrap_or_default();
    // A server's memory is the sum over its processes, which the kernel keeps no record of.
    let record_bytes = if plan.server.is_some() { 0 } else { ended.peak_rss_kib * 1024 };
    let steady = load.map_or((wall_s / 2.0, f64::MAX), |load| ((load.start_s + load.end_s) / 2.0, load.end_s));
    let run = Run {
        allocator: allocator.name.clone(),
        index,
        wall_s,
        user_s: ended.user_us as f64 / 1e6,
        sys_s: ended.sys_us as f64 / 1e6,
        // The kernel's record lags behind by a few pages.
        peak_rss_bytes: record_bytes.max(peak.rss_bytes),
        steady_rss_bytes: sample::steady_rss_bytes(&samples, steady.0, steady.1),
        minor_faults: ended.minor_faults,
        major_faults: ended.major_faults,
        hugepage_bytes: peak.hugepage_bytes,
        hugepage_coverage: (peak.anonymous_bytes > 0).then(|| peak.hugepage_bytes as f64 / peak.anonymous_bytes as f64),
        load: load.map(|load| Load { after_bytes: sample::after_load(&samples, load.end_s), ..load }),
        samples,
        status: if status == Status::Ok && refused { Status::NotServed } else { status },
        stderr,
    };
    Some((run, largest_without))
}

struct Prepared {
    variables: Vec<(OsString, OsString)>,
    preload: Option<PathBuf>,
}

impl Prepared {
    fn new(plan: &Plan<'_>, allocator: &Allocator, proof: Option<&proof::Directory>) -> Result<Self, String> {
        if plan.command.is_empty() {
            return Err("there is no command; name a program to run".to_owned());
        }
        let (mut variables, preload) = environment(allocator)?;
        variables.extend(proof.into_iter().flat_map(proof::Directory::variables));
        Ok(Self { variables, preload })
    }

    fn refused(&self, stderr: &str) -> bool {
        self.preload.as_deref().is_some_and(|library| was_refused(library, stderr))
    }
}

pub type Variables = Vec<(OsString, OsString)>;

pub fn environment(allocator: &Allocator) -> Result<(Variables, Option<PathBuf>), String> {
    let mut variables = allocator.env.clone();
    for (key, _) in &variables {
        if key.is_empty() || key.as_bytes().contains(&b'=') {
            return Err(format!("{key:?} is no name of an environment variable"));
        }
    }
    let own = variables.iter().rev().find(|(key, _)| key == "LD_PRELOAD").map(|(_, value)| value.clone());
    let preload = allocator.preload.as_deref().map(library).transpose()?;
    // The launcher has no library: other entries of LD_PRELOAD are passed on too.
    let mut list = preload.as_ref().map(|p| p.clone().into_os_string()).unwrap_or_default();
    if let Some(others) = own.or_else(|| std::env::var_os("LD_PRELOAD")).filter(|o| !o.is_empty()) {
        if !list.is_empty() {
            list.push(":");
        }
        list.push(others);
    }
    if !list.is_empty() {
        variables.push(("LD_PRELOAD".into(), list));
    }
    Ok((variables, preload))
}

pub fn was_refused(library: &Path, stderr: &str) -> bool {
    let name = library.to_string_lossy();
    stderr.lines().any(|l| l.contains(&*name) && l.contains("cannot be preloaded"))
}

pub fn library(path: &Path) -> Result<PathBuf, String> {
    let text = path.as_os_str().as_bytes();
    let absolute = if text.contains(&b'/') {
        let absolute = std::path::absolute(path).map_err(|e| format!("{}: {e}", path.display()))?;
        std::fs::File::open(&absolute).map_err(|e| format!("cannot read the library {}: {e}", absolute.display()))?;
        absolute
    } else {
        path.to_owned()
    };
    if absolute.as_os_str().as_bytes().iter().any(|b| matches!(b, b' ' | b':')) {
        return Err(format!(
            "{}: LD_PRELOAD ends a path at a space or a colon; copy the library to another place",
            absolute.display()
        ));
    }
    Ok(absolute)
}

/// Of this thread: waiting for a processor costs the command nothing.
fn processor_time() -> Duration {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: a live timespec.
    unsafe { libc::clock_gettime(libc::CLOCK_THREAD_CPUTIME_ID, &mut time) };
    Duration::new(time.tv_sec as u64, time.tv_nsec as u32)
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Reason {
    Timeout,
    Stop,
}

struct Watched {
    child: Child,
    reports: PipeReader,
    errors: Option<PipeReader>,
    start: Instant,
    unread: Vec<u8>,
    /// The command's process id, once it exists.
    started: Option<u32>,
    /// Of a server.
    driver: Option<Driver>,
    outcome: Option<Outcome>,
    cannot_execute: Option<i32>,
    ended: Option<Ended>,
    killed: Option<Reason>,
    samples: sample::Record,
    stderr: Vec<u8>,
}

impl Watched {
    fn start(plan: &Plan<'_>, prepared: &Prepared, proving: bool) -> Result<Self, String> {
        launcher::keep();
        let failed = |e: io::Error| format!("cannot start the launcher: {e}");
        let (reports, report_to) = io::pipe().map_err(failed)?;
        let (errors, errors_to) = io::pipe().map_err(failed)?;
        let mut command = Command::new("/proc/self/exe");
        let processors: Vec<String> = plan.processors.iter().map(usize::to_string).collect();
        command.arg0(launcher::NAME).arg(processors.join(",")).arg(prepared.variables.len().to_string());
        for (key, value) in &prepared.variables {
            let mut pair = key.clone();
            pair.push("=");
            pair.push(value);
            command.arg(pair);
        }
        command.args(&plan.command).env_remove("LD_PRELOAD").process_group(0);
        command.stdin(Stdio::null()).stdout(report_to).stderr(errors_to);
        let child = command.spawn().map_err(failed)?;
        // Closes our writing ends: the pipes end with the launcher.
        drop(command);
        Ok(Self {
            child,
            reports,
            errors: Some(errors),
            start: Instant::now(),
            unread: Vec::new(),
            started: None,
            driver: None,
            outcome: None,
            cannot_execute: None,
            ended: None,
            killed: None,
            samples: sample::Record::watching(
                prepared.preload.as_deref().filter(|_| proving).map(proof::Watch::new),
                plan.server.is_some(),
            ),
            stderr: Vec::new(),
        })
    }

    fn finish(mut self, plan: &Plan<'_>) -> Self {
        let mut next_sample = self.start + SHORTEST_PERIOD;
        loop {
            if self.killed.is_none() {
                if plan.stop.load(Relaxed) {
                    self.kill(Reason::Stop);
                } else if plan.timeout.is_some_and(|t| self.start.elapsed() >= t) {
                    self.kill(Reason::Timeout);
                }
            }
            let (report, error) =
                self.poll(next_sample.saturating_duration_since(Instant::now()).clamp(SHORTEST_PERIOD, SAMPLE_PERIOD));
            if report && !self.read_reports() {
                break;
            }
            if error {
                self.read_errors();
            }
            if let (Some(server), Some(pid), None) = (plan.server, self.started, &self.driver) {
                self.driver = Some(Driver::start(server, pid, self.start));
            }
            if let (Some(driver), Some(_)) = (&self.driver, self.ended) {
                driver.server_is_gone();
            }
            let now = Instant::now();
            if self.started.is_some() && self.ended.is_none() && now >= next_sample {
                let elapsed = now - self.start;
                let before = processor_time();
                self.samples.sample(self.child.id(), elapsed.as_secs_f64());
                let period = (elapsed / 20).clamp(SHORTEST_PERIOD, SAMPLE_PERIOD);
                next_sample = Instant::now() + period.max((processor_time() - before) * SAMPLE_REST);
            }
        }
        let _ = self.child.wait();
        self.outcome = self.driver.take().map(|driver| {
            driver.server_is_gone();
            driver.outcome()
        });
        // Bounded: a process that left the group may write on.
        for _ in 0..64 {
            if !self.poll(Duration::ZERO).1 {
                break;
            }
            self.read_errors();
        }
        self
    }

    fn poll(&self, wait: Duration) -> (bool, bool) {
        let entry = |fd| libc::pollfd { fd, events: libc::POLLIN, revents: 0 };
        // A negative descriptor is skipped.
        let errors = self.errors.as_ref().map_or(-1, AsRawFd::as_raw_fd);
        let mut entries = [entry(self.reports.as_raw_fd()), entry(errors)];
        // SAFETY: two live entries.
        let ready = unsafe { libc::poll(entries.as_mut_ptr(), 2, wait.as_millis() as i32) };
        (ready > 0 && entries[0].revents != 0, ready > 0 && entries[1].revents != 0)
    }

    fn read_reports(&mut self) -> bool {
        let mut bytes = [0; 4 * Report::BYTES];
        let n = self.reports.read(&mut bytes).unwrap_or(0);
        self.unread.extend(&bytes[..n]);
        while let Some((first, rest)) = self.unread.split_first_chunk() {
            match Report::parse(first) {
                Some(Report::Started(pid)) => self.started = Some(pid),
                Some(Report::CannotExecute(errno)) => self.cannot_execute = Some(errno),
                Some(Report::Ended(ended)) => self.ended = Some(ended),
                None => {}
            }
            self.unread = rest.to_vec();
        }
        n > 0
    }

    fn read_errors(&mut self) {
        let mut bytes = [0; 16 * STDERR_BYTES];
        match self.errors.as_mut().map_or(Ok(0), |pipe| pipe.read(&mut bytes)) {
            Ok(0) | Err(_) => self.errors = None,
            Ok(n) => {
                self.stderr.extend(&bytes[..n]);
                self.stderr.drain(..self.stderr.len().saturating_sub(STDERR_BYTES));
            }
        }
    }

    fn kill(&mut self, why: Reason) {
        self.killed = Some(why);
        // SAFETY: touches no memory; the launcher is unreaped.
        unsafe { libc::kill(self.child.id() as libc::pid_t, libc::SIGTERM) };
    }

    /// The status of a server is that of its load, if SIGTERM or its own exit ended it.
    fn verdict(&self, command: &[OsString]) -> (Status, Option<Load>) {
        let own = self.status(command);
        match &self.outcome {
            _ if matches!(own, Status::TimedOut | Status::CannotStart(_)) => (own, None),
            None => (own, None),
            Some(Outcome::Loaded(load)) => match own {
                Status::Exit(TERMINATED) | Status::Signal(libc::SIGTERM | libc::SIGKILL) => (Status::Ok, Some(*load)),
                own => (own, Some(*load)),
            },
            Some(Outcome::NotReady(limit, _)) => (Status::NotReady(*limit), None),
            Some(Outcome::LoadFailed { why, .. }) => (Status::LoadFailed(why.clone()), None),
            Some(Outcome::Gone) => (if own == Status::Ok { Status::EndedEarly } else { own }, None),
        }
    }

    fn status(&self, command: &[OsString]) -> Status {
        let program = command.first().map_or(OsStr::new(""), OsString::as_os_str).display();
        if let Some(errno) = self.cannot_execute {
            return Status::CannotStart(format!("{program}: {}", io::Error::from_raw_os_error(errno)));
        }
        match self.ended {
            _ if self.killed == Some(Reason::Timeout) => Status::TimedOut,
            None => Status::CannotStart(format!("{program}: its launcher ended without a word; run it again")),
            Some(ended) if libc::WIFSIGNALED(ended.wait_status) => Status::Signal(libc::WTERMSIG(ended.wait_status)),
            Some(ended) => match libc::WEXITSTATUS(ended.wait_status) {
                0 => Status::Ok,
                status => Status::Exit(status),
            },
        }
    }
}
