use super::outcome::{Counts, durations, ended_test};
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
    pub needs_library: bool,
}

#[derive(Debug)]
pub struct Finished {
    pub name: String,
    pub kind: Kind,
    pub counts: Counts,
    pub took: Duration,
    pub tests: Vec<(String, Duration)>,
    pub failure: Option<String>,
}

pub fn run(job: &Job, limit: Duration) -> Finished {
    let start = Instant::now();
    let ended = execute(job, start, limit);
    let took = start.elapsed();
    let (output, ends, end) = match ended {
        Ok(ended) => ended,
        Err(error) => (String::new(), Vec::new(), Err(error)),
    };
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
    Finished { name: job.name.clone(), kind: job.kind, counts, took, tests: durations(&ends, job.threads), failure }
}

type Ended = (String, Vec<(String, Duration)>, Result<ExitStatus, String>);

fn execute(job: &Job, start: Instant, limit: Duration) -> Result<Ended, String> {
    let mut command = Command::new(&job.program);
    command.args(&job.args).envs(job.env.iter().map(|(k, v)| (k, v))).current_dir(&job.dir);
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().map_err(|e| format!("cannot start {}: {e}", job.program.display()))?;
    let stdout = lines(child.stdout.take(), start);
    let stderr = lines(child.stderr.take(), start);
    let end =
        wait(&mut child, start + limit).ok_or_else(|| format!("did not end in {} s and was killed", limit.as_secs()));
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
    Ok((output, ends, end))
}

fn wait(child: &mut Child, deadline: Instant) -> Option<ExitStatus> {
    loop {
        match child.try_wait() {
            Ok(Some(status)) => return Some(status),
            Ok(None) if Instant::now() < deadline => thread::sleep(Duration::from_millis(10)),
            _ => {
                let _ = child.kill();
                let _ = child.wait();
                return None;
            }
        }
    }
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
