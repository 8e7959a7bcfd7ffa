//! Also for the tests of `papers/`, which include this file.

use craton_cli::signals::{ASKING, ENDING};
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::process::{Command, Output};

/// A shell ignores some signals for a background job, and tests inherit that.
pub fn with_default_signals(command: &mut Command) -> &mut Command {
    let reset = || {
        for signal in ENDING.into_iter().chain(ASKING) {
            // SAFETY: allowed between fork and exec.
            unsafe { libc::signal(signal, libc::SIG_DFL) };
        }
        Ok(())
    };
    // SAFETY: system calls only.
    unsafe { command.pre_exec(reset) }
}

#[derive(Debug)]
pub struct Said {
    /// 128 and the signal's number after a signal.
    pub status: i32,
    pub out: String,
    pub err: String,
}

pub fn said(command: &mut Command) -> Said {
    into_said(command.output().expect("the command starts"))
}

pub fn into_said(output: Output) -> Said {
    Said {
        status: output.status.code().or(output.status.signal().map(|s| 128 + s)).unwrap_or(-1),
        out: String::from_utf8_lossy(&output.stdout).into_owned(),
        err: String::from_utf8_lossy(&output.stderr).into_owned(),
    }
}
