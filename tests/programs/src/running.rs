//! A program while it runs.
//!
//! **Unsafe.** Signals its child's process group.

use crate::program::{Output, Program};
use crate::segment::{Stats, live_segment, try_live_segment};
use std::fs;
use std::io::{Read, Write};
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::thread;
use std::time::{Duration, Instant};
use tempfile::TempDir;

#[derive(Debug)]
pub struct Running {
    child: Child,
    command: String,
    end: Instant,
    limit: Duration,
    stdout: Receiver<Vec<u8>>,
    stderr: Receiver<Vec<u8>>,
    folder: TempDir,
    /// Its number may then be another's.
    reaped: bool,
}

impl Running {
    pub(crate) fn start(program: Program) -> Self {
        let folder = TempDir::new().expect("a temporary folder can be made");
        let mut options = format!("stats_file={}", folder.path().join("stats").display());
        let of_all = std::env::var("CRATON_TEST_OPTIONS").unwrap_or_default();
        for more in [&of_all, &program.options].into_iter().filter(|more| !more.is_empty()) {
            options = format!("{options},{more}");
        }
        let mut command = Command::new(&program.command);
        command.args(&program.args).env("CRATON_OPTIONS", options).process_group(0);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        for (key, value) in &program.env {
            match value {
                Some(value) => command.env(key, value),
                None => command.env_remove(key),
            };
        }
        if let Some(dir) = &program.dir {
            command.current_dir(dir);
        }
        // A runner in the background ignores these, and python's tests of interrupts fail. SAFETY:
        // allowed between fork and exec.
        unsafe {
            command.pre_exec(|| {
                for signal in [libc::SIGINT, libc::SIGQUIT] {
                    libc::signal(signal, libc::SIG_DFL);
                }
                Ok(())
            });
        }
        let text = format!("{:?}", command);
        let mut child = command.spawn().unwrap_or_else(|e| panic!("cannot start {text}: {e}"));
        let mut stdin = child.stdin.take().expect("standard input is a pipe");
        thread::spawn(move || drop(stdin.write_all(&program.stdin)));
        let stdout = read_all(child.stdout.take().expect("standard output is a pipe"));
        let stderr = read_all(child.stderr.take().expect("standard error is a pipe"));
        let end = Instant::now() + program.limit;
        Self { child, command: text, end, limit: program.limit, stdout, stderr, folder, reaped: false }
    }

    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    pub fn segment(&self) -> Stats {
        live_segment(self.pid())
    }

    /// Panics when the process ends before, or at its time limit.
    pub fn segment_when(&mut self, asked: impl Fn(&Stats) -> bool) -> Stats {
        loop {
            // The library may not be loaded yet.
            let now = try_live_segment(self.pid());
            match now {
                Ok(stats) if asked(&stats) => return stats,
                _ if self.has_ended() || Instant::now() >= self.end => {
                    self.fail("has not come to the numbers asked for", &format!("{now:?}\n"))
                }
                _ => thread::sleep(Duration::from_millis(2)),
            }
        }
    }

    pub fn signal(&self, signal: i32) {
        let pid = i32::try_from(self.pid()).expect("a process number fits");
        // SAFETY: touches no memory; an unreaped process keeps its number.
        assert_eq!(unsafe { libc::kill(pid, signal) }, 0, "cannot signal {}", self.command);
    }

    pub fn has_ended(&mut self) -> bool {
        self.ended().is_some()
    }

    pub fn wait(mut self) -> Output {
        let status = loop {
            if let Some(status) = self.ended() {
                break status;
            }
            if Instant::now() >= self.end {
                let state = self.state();
                self.fail("has not ended", &state);
            }
            thread::sleep(Duration::from_millis(2));
        };
        let left = || self.end.saturating_duration_since(Instant::now()).max(Duration::from_secs(1));
        let (Ok(stdout), Ok(stderr)) = (self.stdout.recv_timeout(left()), self.stderr.recv_timeout(left())) else {
            self.fail("has left processes behind that hold its output", "");
        };
        let stats = fs::read_to_string(self.folder.path().join("stats")).unwrap_or_default();
        Output {
            command: self.command.clone(),
            status: status.code(),
            signal: status.signal(),
            stdout: String::from_utf8_lossy(&stdout).into_owned(),
            stderr: String::from_utf8_lossy(&stderr).into_owned(),
            stats: stats.lines().map(Stats::from_json).collect(),
        }
    }

    fn ended(&mut self) -> Option<ExitStatus> {
        let status = self.child.try_wait().expect("a child can be waited for");
        self.reaped |= status.is_some();
        status
    }

    fn fail(&mut self, what: &str, more: &str) -> ! {
        self.kill();
        let mut text = String::new();
        for (name, pipe) in [("output", &self.stdout), ("error", &self.stderr)] {
            let bytes = pipe.recv_timeout(Duration::from_secs(5)).unwrap_or_default();
            text += &format!("--- standard {name}\n{}\n", String::from_utf8_lossy(&bytes));
        }
        panic!("{} {what} after {:?} and was killed\n{more}{text}", self.command, self.limit);
    }

    fn state(&self) -> String {
        let tasks = fs::read_dir(format!("/proc/{}/task", self.pid()));
        let lines = tasks.into_iter().flatten().flatten().take(20).map(|task| {
            let read = |file: &str| fs::read_to_string(task.path().join(file)).unwrap_or_default();
            format!("thread {}: in {}, system call {}", task.file_name().display(), read("wchan"), read("syscall"))
        });
        lines.collect()
    }

    fn kill(&mut self) {
        let group = i32::try_from(self.child.id()).expect("a process number fits");
        // SAFETY: touches no memory. While a member lives, or the leader is unreaped, the number is
        // its.
        unsafe { libc::kill(-group, libc::SIGKILL) };
        if !self.reaped {
            drop(self.child.wait());
            self.reaped = true;
        }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        if !self.reaped {
            self.kill();
        }
    }
}

fn read_all(mut pipe: impl Read + Send + 'static) -> Receiver<Vec<u8>> {
    let (send, receive) = channel();
    thread::spawn(move || {
        let mut bytes = Vec::new();
        drop(pipe.read_to_end(&mut bytes));
        drop(send.send(bytes));
    });
    receive
}
