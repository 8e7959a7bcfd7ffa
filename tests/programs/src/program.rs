//! Running one program to its end.

use crate::build::library;
use crate::running::Running;
use crate::segment::Stats;
use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::path::PathBuf;
use std::time::Duration;

/// A program to run: arguments, environment, the library or not, and how long it may take.
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
    /// A program by name or path, without the library, with five minutes of time: enough at load
    /// 40. An `LD_PRELOAD` or `CRATON_OPTIONS` of the test's own environment does not reach it.
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

    /// Options for Craton (`key=value,key=value`) beside the `stats_file` that every program has,
    /// and those for all programs that the test's own environment has in `CRATON_TEST_OPTIONS`.
    #[must_use]
    pub fn options(mut self, options: &str) -> Self {
        self.options = options.to_owned();
        self
    }

    /// Has the dynamic linker load the shared library first. Without this a program has Craton only
    /// if it is linked with it.
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

    /// Runs the program to its end. Panics when it takes too long, or leaves processes behind that
    /// hold on to its output.
    pub fn run(self) -> Output {
        self.start().wait()
    }
}

/// What came of a program.
#[derive(Clone, Debug)]
pub struct Output {
    /// The program with its arguments.
    pub command: String,
    /// Its exit status, unless a signal ended it.
    pub status: Option<i32>,
    /// The signal that ended it.
    pub signal: Option<i32>,
    /// What it and its children wrote on standard output; what is no UTF-8 is replaced.
    pub stdout: String,
    /// What it and its children wrote on standard error.
    pub stderr: String,
    /// The numbers of each process that Craton was in and that left through `exit`, in the order in which they did.
    pub stats: Vec<Stats>,
}

impl Output {
    /// Fails unless the program exited with 0.
    pub fn assert_success(&self) {
        assert_eq!(self.status, Some(0), "failed:\n{self}");
    }

    /// Fails unless a process of this name said that Craton served it, and returns the numbers of
    /// the first one that did. The kernel cuts a process's name at 15 bytes, and `exe` is cut
    /// likewise.
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
