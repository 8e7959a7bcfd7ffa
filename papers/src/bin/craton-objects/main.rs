//! `craton-objects`: one measurement of [`craton_papers::caching`], as a line of JSON.

use clap::Parser;
use craton_lab::print::print;
use craton_papers::caching::{Request, measure};
use std::process::ExitCode;

fn main() -> ExitCode {
    let found = measure(&Request::parse());
    let line = found.and_then(|found| serde_json::to_string(&found).map_err(|e| format!("the result is no JSON: {e}")));
    match line {
        Ok(line) if print("craton-objects", &format!("{line}\n")) => ExitCode::SUCCESS,
        Ok(_) => ExitCode::FAILURE,
        Err(why) => {
            eprintln!("craton-objects: {why}");
            ExitCode::FAILURE
        }
    }
}

#[cfg(test)]
mod tests;
