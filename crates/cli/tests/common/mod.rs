//! The program and the library, for the tests that run both.
//!
//! **What.** The library is built once a test program; each test runs `craton` with `CRATON_LIBRARY` set to it.

#![allow(dead_code, reason = "each test program uses a part")]

use std::ffi::OsStr;
use std::fs;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::OnceLock;

/// `libcraton.so`, built from these sources.
pub fn library() -> &'static Path {
    static LIBRARY: OnceLock<PathBuf> = OnceLock::new();
    LIBRARY.get_or_init(|| {
        let own = Path::new(env!("CARGO_BIN_EXE_craton"));
        let target = own.parent().and_then(Path::parent).expect("a program built by cargo lies in target/PROFILE");
        let mut cargo = Command::new(env!("CARGO"));
        cargo.args(["build", "--quiet", "--release", "-p", "craton-preload", "--target-dir"]).arg(target);
        cargo.current_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/../.."));
        assert!(cargo.status().unwrap().success(), "the library cannot be built");
        target.join("release/libcraton.so")
    })
}

/// Builds the lab's programs beside `craton`.
pub fn lab_programs() {
    static BUILT: OnceLock<()> = OnceLock::new();
    BUILT.get_or_init(|| {
        let own = Path::new(env!("CARGO_BIN_EXE_craton"));
        let target = own.parent().and_then(Path::parent).expect("a program built by cargo lies in target/PROFILE");
        let mut cargo = Command::new(env!("CARGO"));
        cargo.args(["build", "--quiet", "-p", "craton-lab", "--bins", "--target-dir"]).arg(target);
        cargo.current_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/../.."));
        assert!(cargo.status().unwrap().success(), "the lab's programs cannot be built");
    });
}

/// `craton` with these arguments, and an environment without what would disturb.
pub fn craton<S: AsRef<OsStr>>(args: impl IntoIterator<Item = S>) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_craton"));
    command
        .args(args)
        .env("CRATON_LIBRARY", library())
        .env_remove("LD_PRELOAD")
        .env_remove("CRATON_OPTIONS")
        .env_remove("CRATON_PEERS");
    command
}

/// The command without the signals that whoever runs the tests ignores: a shell does so for what it runs behind `&`.
pub fn heeding_signals(command: &mut Command) -> &mut Command {
    let heed = || {
        for signal in [libc::SIGINT, libc::SIGTERM, libc::SIGHUP] {
            // SAFETY: a system call that is allowed between fork and exec.
            unsafe { libc::signal(signal, libc::SIG_DFL) };
        }
        Ok(())
    };
    // SAFETY: the function makes system calls only.
    unsafe { command.pre_exec(heed) }
}

/// What a command that has ended said.
pub struct Said {
    /// Its exit status; 128 and the signal's number after a signal.
    pub status: i32,
    /// Standard output.
    pub out: String,
    /// Standard error.
    pub err: String,
}

/// Runs to the end.
pub fn said(command: &mut Command) -> Said {
    into_said(command.output().expect("the command starts"))
}

/// What the output of a command that has ended holds.
pub fn into_said(output: Output) -> Said {
    Said {
        status: output.status.code().or(output.status.signal().map(|s| 128 + s)).unwrap_or(-1),
        out: String::from_utf8_lossy(&output.stdout).into_owned(),
        err: String::from_utf8_lossy(&output.stderr).into_owned(),
    }
}

/// A directory for a test, removed when dropped.
pub struct Place(pub PathBuf);

impl Place {
    /// An empty one.
    pub fn new(name: &str) -> Self {
        let path = std::env::temp_dir().join(format!("craton-cli-test-{name}-{}", std::process::id()));
        let _ = fs::remove_dir_all(&path);
        fs::create_dir_all(&path).unwrap();
        Self(path)
    }

    /// A path in it, as text.
    pub fn path(&self, name: &str) -> String {
        self.0.join(name).to_str().unwrap().to_owned()
    }

    /// Compiles a C program into it.
    pub fn compile(&self, name: &str, source: &str, flags: &[&str]) -> String {
        let (program, file) = (self.path(name), self.path(&format!("{name}.c")));
        fs::write(&file, source).unwrap();
        assert!(Command::new("gcc").args(["-O0", "-o", &program, &file]).args(flags).status().unwrap().success());
        program
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}
