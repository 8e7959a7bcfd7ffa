//! `craton set`: options of a running process.
//!
//! **Failure.** The first setting that the process refuses, or does not answer, ends the rest: what was said before it holds.

use crate::args;
use crate::failure::Failure;
use std::process::ExitCode;

/// Does what `craton set` was asked for.
pub fn set(args: &args::Set) -> Result<ExitCode, Failure> {
    for setting in &args.settings {
        let answer = craton_inspect::set(args.pid, setting, args.wait).map_err(Failure::Failed)?;
        answer.map_err(|why| Failure::Failed(format!("process {}: option \"{setting}\": {why}", args.pid)))?;
    }
    Ok(ExitCode::SUCCESS)
}
