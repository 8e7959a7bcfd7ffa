//! A process with a time limit, polled every millisecond, so that nothing of this program runs
//! beside it.

use std::ffi::OsString;
use std::fs::{self, File};
use std::io::{self, Read, Seek, SeekFrom};
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::{Duration, Instant};

const PERIOD: Duration = Duration::from_millis(1);
const KEPT_BYTES: u64 = 64 << 10;

#[derive(Debug)]
pub enum Ended {
    Done(Output),
    TimedOut,
    Stopped,
}

#[derive(Debug)]
pub struct Output {
    pub status: ExitStatus,
    pub stdout: String,
    pub stderr: String,
}

impl Output {
    pub fn failure(&self) -> Option<String> {
        let how = match (self.status.signal(), self.status.code()) {
            (_, Some(0)) => return None,
            (Some(signal), _) => format!("signal {signal}"),
            (_, code) => format!("exit {}", code.unwrap_or(-1)),
        };
        let last = self.stderr.lines().map(str::trim).rfind(|line| line.chars().any(char::is_alphabetic));
        Some(last.map_or(how.clone(), |last| format!("{how}: {last}")))
    }
}

pub struct Process {
    child: Child,
    outputs: [PathBuf; 2],
    end: Instant,
}

impl Process {
    pub fn start(
        command: &[OsString],
        variables: &[(OsString, OsString)],
        directory: &Path,
        name: &str,
        limit: Duration,
    ) -> io::Result<Self> {
        let outputs = [directory.join(format!("{name}.stdout")), directory.join(format!("{name}.stderr"))];
        let (program, arguments) = command.split_first().ok_or(io::ErrorKind::InvalidInput)?;
        let child = Command::new(program)
            .args(arguments)
            .envs(variables.iter().map(|(key, value)| (key, value)))
            .current_dir(directory)
            .process_group(0)
            .stdin(Stdio::null())
            .stdout(File::create(&outputs[0])?)
            .stderr(File::create(&outputs[1])?)
            .spawn()?;
        Ok(Self { child, outputs, end: Instant::now() + limit })
    }

    pub fn finish(mut self, stop: &AtomicBool) -> io::Result<Ended> {
        loop {
            if let Some(status) = self.child.try_wait()? {
                let [stdout, stderr] = [read_end(&self.outputs[0])?, read_end(&self.outputs[1])?];
                return Ok(Ended::Done(Output { status, stdout, stderr }));
            }
            if stop.load(Relaxed) {
                return Ok(Ended::Stopped);
            }
            if Instant::now() >= self.end {
                return Ok(Ended::TimedOut);
            }
            std::thread::sleep(PERIOD);
        }
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
        for path in &self.outputs {
            let _ = fs::remove_file(path);
        }
    }
}

fn read_end(path: &Path) -> io::Result<String> {
    let mut file = File::open(path)?;
    let length = file.metadata()?.len();
    file.seek(SeekFrom::Start(length.saturating_sub(KEPT_BYTES)))?;
    let mut bytes = Vec::new();
    file.read_to_end(&mut bytes)?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

#[cfg(test)]
mod tests;
