use super::outcome::{Counts, durations, ended_test};
use std::fs;
use std::io::{BufRead, BufReader, Read};
use std::path::PathBuf;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::thread;
use std::time::{Duration, Instant};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    Computes,
    /// For other programs: more threads than cores.
    Waits,
}

#[derive(Clone, Debug)]
pub struct Job {
    /// Its last duration's key, too.
    pub name: String,
    pub program: PathBuf,
    pub args: Vec<String>,
    pub env: Vec<(String, String)>,
    pub dir: PathBuf,
    pub kind: Kind,
    pub threads: usize,
    /// Variables that name the libraries that it needs.
    pub needs: Vec<&'static str>,
}

#[derive(Debug)]
pub struct Finished {
    pub name: String,
    pub kind: Kind,
    pub counts: Counts,
    pub took: Duration,
    /// By the processors, as last seen.
    pub computed: Duration,
    pub tests: Vec<(String, Duration)>,
    pub failure: Option<String>,
}

pub fn run(job: &Job, limit: Duration) -> Finished {
    let start = Instant::now();
    let ended = execute(job, start, limit);
    let took = start.elapsed();
    let Ended { output, ends, computed, end } = ended.unwrap_or_else(Ended::before_its_start);
    let read = Counts::read(&output);
    let mut counts = read.unwrap_or_default();
    let why = match end {
        Err(why) => Some(why),
        Ok(status) if !status.success() => Some(format!("ended with {status}")),
        Ok(_) if read.is_none() => Some("printed no closing line".to_owned()),
        Ok(_) => None,
    };
    if why.is_some() && counts.failed == 0 {
        counts.failed = 1;
    }
    let failure = why.map(|why| format!("{output}\n{}: {why}", job.name));
    let tests = durations(&ends, job.threads);
    Finished { name: job.name.clone(), kind: job.kind, counts, took, computed, tests, failure }
}

struct Ended {
    output: String,
    ends: Vec<(String, Duration)>,
    computed: Duration,
    end: Result<ExitStatus, String>,
}

impl Ended {
    fn before_its_start(why: String) -> Self {
        Self { output: String::new(), ends: Vec::new(), computed: Duration::ZERO, end: Err(why) }
    }
}

fn execute(job: &Job, start: Instant, limit: Duration) -> Result<Ended, String> {
    let mut command = Command::new(&job.program);
    command.args(&job.args).envs(job.env.iter().map(|(k, v)| (k, v))).current_dir(&job.dir);
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().map_err(|e| format!("cannot start {}: {e}", job.program.display()))?;
    let stdout = lines(child.stdout.take(), start);
    let stderr = lines(child.stderr.take(), start);
    let (end, computed) = wait(&mut child, start + limit);
    let end = end.ok_or_else(|| format!("did not end in {} s and was killed", limit.as_secs()));
    // A process that a test left behind may hold the pipes.
    let patience = Duration::from_secs(5);
    let (mut output, mut ends) = (String::new(), Vec::new());
    let deadline = Instant::now() + patience;
    for pipe in [stdout, stderr] {
        while let Ok((line, moment)) = pipe.recv_timeout(deadline.saturating_duration_since(Instant::now())) {
            if let Some(test) = ended_test(&line) {
                ends.push((test.to_owned(), moment));
            }
            output += &line;
            output.push('\n');
        }
    }
    Ok(Ended { output, ends, computed, end })
}

fn wait(child: &mut Child, deadline: Instant) -> (Option<ExitStatus>, Duration) {
    let stat = format!("/proc/{}/stat", child.id());
    let mut computed = Duration::ZERO;
    loop {
        computed = fs::read_to_string(&stat).ok().and_then(|stat| computed_by(&stat)).unwrap_or(computed);
        match child.try_wait() {
            Ok(Some(status)) => return (Some(status), computed),
            Ok(None) if Instant::now() < deadline => thread::sleep(Duration::from_millis(10)),
            _ => {
                let _ = child.kill();
                let _ = child.wait();
                return (None, computed);
            }
        }
    }
}

/// By a process and its ended children, from its line in `/proc`: see proc(5).
fn computed_by(stat: &str) -> Option<Duration> {
    let behind_name = stat.rsplit_once(") ")?.1.split(' ');
    let times = behind_name.skip(11).take(4).map(|ticks| ticks.parse::<u64>().ok());
    Some(Duration::from_millis(10 * times.sum::<Option<u64>>()?))
}

fn lines(pipe: Option<impl Read + Send + 'static>, start: Instant) -> Receiver<(String, Duration)> {
    let (send, receive) = channel();
    let pipe = pipe.map(BufReader::new);
    thread::spawn(move || {
        for line in pipe.into_iter().flat_map(|pipe| pipe.split(b'\n')).map_while(Result::ok) {
            let line = String::from_utf8_lossy(&line).into_owned();
            if send.send((line, start.elapsed())).is_err() {
                break;
            }
        }
    });
    receive
}

#[cfg(test)]
mod tests;
