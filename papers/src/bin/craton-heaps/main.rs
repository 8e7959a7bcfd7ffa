//! `craton-heaps`: one task of [`craton_papers::measure_heap`], as a line of JSON.

use clap::Parser;
use craton_lab::print::print;
use craton_papers::{HeapTask, measure_heap};
use std::process::ExitCode;

#[derive(Parser)]
#[command(name = "craton-heaps", about = "One load on one persistent heap")]
struct Command {
    #[command(flatten)]
    task: HeapTask,
}

fn main() -> ExitCode {
    let found = measure_heap(&Command::parse().task);
    let line = found.and_then(|found| serde_json::to_string(&found).map_err(|e| format!("the result is no JSON: {e}")));
    match line {
        Ok(line) if print("craton-heaps", &format!("{line}\n")) => ExitCode::SUCCESS,
        Ok(_) => ExitCode::FAILURE,
        Err(why) => {
            eprintln!("craton-heaps: {why}");
            ExitCode::FAILURE
        }
    }
}
