//! `craton lab`: becomes the program `craton-papers`, which has the experiments.
//!
//! **What.** That program is in a separate workspace; its file is beside this one or in
//! `../lib/craton`. It gets the words behind `lab`, which the parser has checked.
//!
//! **Failure.** The program is missing: the error names the places and how to build it.

use crate::args;
use crate::failure::Failure;
use crate::place;
use std::env;
use std::os::unix::process::CommandExt;
use std::process::{Command, ExitCode};

/// The program with the experiments.
const PROGRAM: &str = "craton-papers";

pub fn lab(_: &args::Lab) -> Result<ExitCode, Failure> {
    let program = place::tool(PROGRAM)?;
    let why = Command::new(&program).args(env::args_os().skip(2)).exec();
    Err(format!("cannot start {}: {why}; `make build` makes it anew", program.display()).into())
}
