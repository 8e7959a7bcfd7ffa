use crate::build::library;
use crate::running::Running;
use crate::segment::Stats;
use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::path::PathBuf;
use std::time::Duration;

#[derive(Clone, Debug)]
pub struct Program {
    pub(crate) command: OsString,
    pub(crate) args: Vec<OsString>,
    pub(crate) env: BTreeMap<OsString, Option<OsString>>,
    pub(crate) dir: Option<PathBuf>,
    pub(crate) stdin: Vec<u8>,
    pub(crate) options: String,
    pub(crate) limit: Duration,
}

impl Program {
    /// Five minutes are enough at load 40.
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

    #[must_use]
    pub fn arg(mut self, arg: impl AsRef<OsStr>) -> Self {
        self.args.push(arg.as_ref().to_owned());
        self
    }

    #[must_use]
    pub fn args<A: AsRef<OsStr>>(mut self, args: impl IntoIterator<Item = A>) -> Self {
        self.args.extend(args.into_iter().map(|a| a.as_ref().to_owned()));
        self
    }

    #[must_use]
    pub fn env(mut self, key: impl AsRef<OsStr>, value: impl AsRef<OsStr>) -> Self {
        self.env.insert(key.as_ref().to_owned(), Some(value.as_ref().to_owned()));
        self
    }

    #[must_use]
    pub fn env_remove(mut self, key: impl AsRef<OsStr>) -> Self {
        self.env.insert(key.as_ref().to_owned(), None);
        self
    }

    #[must_use]
    pub fn dir(mut self, dir: impl Into<PathBuf>) -> Self {
        self.dir = Some(dir.into());
        self
    }

    #[must_use]
    pub fn stdin(mut self, text: impl Into<Vec<u8>>) -> Self {
        self.stdin = text.into();
        self
    }

    /// Besides every program's `stats_file` and the test's `CRATON_TEST_OPTIONS`.
    #[must_use]
    pub fn options(mut self, options: &str) -> Self {
        self.options = options.to_owned();
        self
    }

    #[must_use]
    pub fn preloaded(self) -> Self {
        self.env("LD_PRELOAD", library())
    }

    #[must_use]
    pub fn timeout(mut self, seconds: u64) -> Self {
        self.limit = Duration::from_secs(seconds);
        self
    }

    pub fn start(self) -> Running {
        Running::start(self)
    }

    /// Panics at the time limit, or when processes hold the output open.
    pub fn run(self) -> Output {
        self.start().wait()
    }
}

#[derive(Clone, Debug)]
pub struct Output {
    pub command: String,
    pub status: Option<i32>,
    pub signal: Option<i32>,
    pub stdout: String,
    pub stderr: String,
    /// Of each process with Craton that left through `exit`.
    pub stats: Vec<Stats>,
}

impl Output {
    pub fn assert_success(&self) {
        assert_eq!(self.status, Some(0), "failed:\n{self}");
    }

    /// The kernel cuts names at 15 bytes.
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

fn end_of(text: &str) -> &str {
    let from = (text.len().saturating_sub(8000)..text.len()).find(|i| text.is_char_boundary(*i));
    &text[from.unwrap_or(0)..]
}
