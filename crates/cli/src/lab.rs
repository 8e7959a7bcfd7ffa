//! `craton lab` becomes the program `craton-papers`, with the words behind `lab`, which the parser
//! has checked.

use crate::args;
use crate::failure::Failure;
use crate::place;
use std::env;
use std::os::unix::process::CommandExt;
use std::process::{Command, ExitCode};

const PROGRAM: &str = "craton-papers";

pub fn lab(_: &args::Lab) -> Result<ExitCode, Failure> {
    let program = place::tool(PROGRAM)?;
    let why = Command::new(&program).args(env::args_os().skip(2)).exec();
    Err(format!("cannot start {}: {why}; `make build` makes it anew", program.display()).into())
}
