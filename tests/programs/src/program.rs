//! Running one program to its end.

use crate::build::library;
use crate::running::Running;
use crate::segment::Stats;
use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::path::PathBuf;
use std::time::Duration;

/// A program to run: arguments, environment, with the library or not, and a time limit.
#[derive(Clone, Debug)]
pub struct Program {
    pub(crate) command: OsString,
    pub(crate) args: Vec<OsString>,
    /// Variables to set, or to take out.
    pub(crate) env: BTreeMap<OsString, Option<OsString>>,
    pub(crate) dir: Option<PathBuf>,
    pub(crate) stdin: Vec<u8>,
    pub(crate) options: String,
    pub(crate) limit: Duration,
}

impl Program {
    /// A program by name or path, without the library, with five minutes: enough at load 40.
    /// `LD_PRELOAD` and `CRATON_OPTIONS` of the test's environment do not reach it.
    pub fn new(command: impl AsRef<OsStr>) -> Self {
        let mut env = BTreeMap::new();
        env.insert("LD_PRELOAD".into(), None);
        Self {
            command: command.as_ref().to_owned(),
            args: Vec::new(),
            env,
            dir: None,
            stdin: Vec::new(),
            options: String::new(),
            limit: Duration::from_secs(300),
        }
    }

    /// Adds an argument.
    #[must_use]
    pub fn arg(mut self, arg: impl AsRef<OsStr>) -> Self {
        self.args.push(arg.as_ref().to_owned());
        self
    }

    /// Adds arguments.
    #[must_use]
    pub fn args<A: AsRef<OsStr>>(mut self, args: impl IntoIterator<Item = A>) -> Self {
        self.args.extend(args.into_iter().map(|a| a.as_ref().to_owned()));
        self
    }

    /// Sets a variable of the environment.
    #[must_use]
    pub fn env(mut self, key: impl AsRef<OsStr>, value: impl AsRef<OsStr>) -> Self {
        self.env.insert(key.as_ref().to_owned(), Some(value.as_ref().to_owned()));
        self
    }

    /// Takes a variable out of the environment.
    #[must_use]
    pub fn env_remove(mut self, key: impl AsRef<OsStr>) -> Self {
        self.env.insert(key.as_ref().to_owned(), None);
        self
    }

    /// Sets the folder to run in.
    #[must_use]
    pub fn dir(mut self, dir: impl Into<PathBuf>) -> Self {
        self.dir = Some(dir.into());
        self
    }

    /// Gives the program this text as its standard input, which is otherwise empty.
    #[must_use]
    pub fn stdin(mut self, text: impl Into<Vec<u8>>) -> Self {
        self.stdin = text.into();
        self
    }

    /// Options for Craton (`key=value,key=value`), besides the `stats_file` of every program and
    /// those of `CRATON_TEST_OPTIONS` in the test's environment.
    #[must_use]
    pub fn options(mut self, options: &str) -> Self {
        self.options = options.to_owned();
        self
    }

    /// Preloads the shared library. Without this a program has Craton only if it is linked with it.
    #[must_use]
    pub fn preloaded(self) -> Self {
        self.env("LD_PRELOAD", library())
    }

    /// How long the program may take, in seconds.
    #[must_use]
    pub fn timeout(mut self, seconds: u64) -> Self {
        self.limit = Duration::from_secs(seconds);
        self
    }

    /// Starts the program and lets it run beside the test.
    pub fn start(self) -> Running {
        Running::start(self)
    }

    /// Runs the program to its end. Panics at its time limit, or when processes remain that hold
    /// its output open.
    pub fn run(self) -> Output {
        self.start().wait()
    }
}

/// The result of a program.
#[derive(Clone, Debug)]
pub struct Output {
    /// The program with its arguments.
    pub command: String,
    /// Its exit status, unless a signal ended it.
    pub status: Option<i32>,
    /// The signal that ended it.
    pub signal: Option<i32>,
    /// Standard output of it and its children; invalid UTF-8 is replaced.
    pub stdout: String,
    /// Standard error of it and its children.
    pub stderr: String,
    /// The numbers of each process with Craton that left through `exit`, in that order.
    pub stats: Vec<Stats>,
}

impl Output {
    /// Fails unless the program exited with 0.
    pub fn assert_success(&self) {
        assert_eq!(self.status, Some(0), "failed:\n{self}");
    }

    /// Fails unless Craton served a process of this name, and returns the numbers of the first one.
    /// The kernel cuts a process's name at 15 bytes, and `exe` is cut likewise.
    pub fn assert_served(&self, exe: &str) -> &Stats {
        let name = &exe[..exe.len().min(15)];
        let served = self.stats.iter().find(|s| s.exe == name && s.refills > 0);
        served.unwrap_or_else(|| panic!("no process named {name:?} says that Craton served it:\n{self}"))
    }
}

impl std::fmt::Display for Output {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        writeln!(f, "{}", self.command)?;
        writeln!(f, "status {:?}, signal {:?}", self.status, self.signal)?;
        writeln!(f, "--- standard output\n{}", end_of(&self.stdout))?;
        writeln!(f, "--- standard error\n{}", end_of(&self.stderr))?;
        writeln!(f, "--- statistics")?;
        self.stats.iter().try_for_each(|s| writeln!(f, "{s:?}"))
    }
}

/// The last part of a text that may be very long.
fn end_of(text: &str) -> &str {
    let from = (text.len().saturating_sub(8000)..text.len()).find(|i| text.is_char_boundary(*i));
    &text[from.unwrap_or(0)..]
}
